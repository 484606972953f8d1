"""Judging 10,000 operations in memory: flashes and the resets after them, as the card drivers record them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.rows import Row, in_turn, processor_note
from harness.judgement.judge import Judgement, judge
from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import (
    Claim,
    Completion,
    Evidence,
    Intent,
    Observation,
    Promise,
    Record,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
)

OPERATIONS = 10_000
#: Each scenario is a flash and a reset; one in so many is reported as done although nothing landed.
_PER_SCENARIO = 2
_LIES = 10
_OLD, _NEW = 0x23000410010310, 0x23000410010311
_SYSFS = "/sys/bus/pci/devices/0000:b2:00.0/fpga_region/region0/dfl-fme.0"


def measure(rounds: int) -> list[Row]:
    """Return the row; the peer shows that the time is linear in the number of operations."""
    tenth, whole = history(OPERATIONS // 10), history(OPERATIONS)
    _check(judge(whole))
    of_whole, of_tenth = in_turn((lambda: judge(whole), lambda: judge(tenth)), rounds)
    return [
        Row(
            "judge 10,000",
            f"{OPERATIONS} operations in {OPERATIONS // _PER_SCENARIO} scenarios, {len(whole)} records",
            "ms",
            of_whole,
            200,
            peer="10 x judging 1,000 of them",
            peer_result=of_tenth.scaled(10),
            note=processor_note(lambda: judge(whole)),
        )
    ]


def _check(judgement: Judgement) -> None:
    """Make sure that what is timed is real work with the right result."""
    scenarios = OPERATIONS // _PER_SCENARIO
    lies = scenarios // _LIES
    assert judgement.count_outcomes() == {Outcome.FAILED: lies, Outcome.AS_INTENDED: OPERATIONS - lies}
    assert judgement.count_verdicts() == {
        VerdictKind.FALSE_SUCCESS: lies,
        VerdictKind.MATCH: OPERATIONS - lies,
    }


def history(operations: int) -> list[Record]:
    """Return the records of so many operations, numbered from 1."""
    records: list[Record] = []
    for number in range(operations // _PER_SCENARIO):
        records += _scenario(number, len(records) + 1)
    return records


def _scenario(number: int, first: int) -> Iterator[Record]:
    subject = Subject(
        "card", f"node{number % 50}/card{number % 10}", "node", "0000:b2:00.0", "64:4c:36:00:00:01"
    )
    common: dict[str, Any] = {"subject": subject}
    name = f"scenario {number}"
    lands = number % _LIES != 0
    flash, reset = first + 1, first + 6
    parameters = {"image": _image(), "name": "A/csk0"}
    yield ScenarioStarted(seq=first, scenario=name, subject=subject, expects={"outcome": "AS_INTENDED"})
    promise = Promise("lands", source="UG 683519")
    yield Intent(seq=flash, operation="flash", parameters=parameters, promise=promise, **common)
    yield _observed(first + 2, "before", flash, 12, _OLD, common)
    done = {"result": "done", "phase": "", "error": ""}
    said = Evidence("[INFO] Secure update OK", "fpgasupdate -y image.bin 0000:b2:00.0", 0)
    yield Claim(seq=first + 3, reporter="fpgasupdate", statement=done, evidence=said, intent=flash, **common)
    yield Completion(seq=first + 4, intent=flash, how="returned")
    yield _observed(first + 5, "after", flash, 13, _OLD, common)
    back = Promise("returns", source="OPAE rsu")
    yield Intent(seq=reset, operation="reset", parameters={"kind": "bmcimg"}, promise=back, **common)
    yield _observed(first + 7, "before", reset, 13, _OLD, common)
    said = Evidence("RSU operation complete", "rsu bmcimg 0000:b2:00.0", 0)
    yield Claim(seq=first + 8, reporter="rsu", statement=done, evidence=said, intent=reset, **common)
    yield Completion(seq=first + 9, intent=reset, how="returned")
    yield _observed(first + 10, "after-reset", reset, 13, _NEW if lands else _OLD, common)
    yield ScenarioEnded(seq=first + 11, scenario=name)


def _observed(
    seq: int, moment: str, intent: int, count: int, bitstream_id: int, common: dict[str, Any]
) -> Observation:
    values = {
        "address": "0000:b2:00.0",
        "identity": "64:4c:36:00:00:01",
        "driver": "dfl-pci",
        "device_id": 0x0B30,
        "bitstream_id": bitstream_id,
        "boot_page": "user",
        **{f"{section}_root": "" for section in ("sr", "bmc", "pr")},
        **{f"{section}_cancelled": [] for section in ("sr", "bmc", "pr")},
        "flash_count": count,
        "bmc_version": "D.2.0.6",
        "bmcfw_version": "D.2.0.20",
        "update_status": "idle",
        "update_error": "",
        "remaining_size": 0,
        "boot_id": "3b7ab2a1-0f0c-4c5e-9d3e-0f1d2c3b4a59",
    }
    sources = {field: f"{_SYSFS}/{field}" for field in values}
    return Observation(
        seq=seq, probe="sysfs", moment=moment, values=values, sources=sources, intent=intent, **common
    )


def _image() -> dict[str, Any]:
    return {
        "name": "A/csk0",
        "effect": "user-image",
        "section": "SR",
        "bitstream_id": _NEW,
        "csk_id": 0,
        "unsigned": False,
    }

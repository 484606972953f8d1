"""500 cards on 50 hosts, all emulated by one process: a truth sweep, and the memory of both sides.

Measured in a process of its own (``python -m benchmarks.many_cards ROUNDS``), so that its memory is that of
a harness and not of whatever was measured before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import labs
from benchmarks.rows import Row, Samples, in_turn, seconds_of
from harness.cards.looking import CardReader
from harness.judgement.values import Unknown
from harness.lab.running import RunningLab

HOSTS, CARDS = 50, 10
_FIFTH = HOSTS // 5
_ADDRESSES = [labs.address(card) for card in range(CARDS)]


def measure(rounds: int) -> list[Row]:
    """Return the rows of time, of its being linear, and of memory."""
    command = [sys.executable, "-m", "benchmarks.many_cards", str(rounds)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    whole, fifth = Samples(tuple(found["whole"])), Samples(tuple(found["fifth"]))
    lab, own = found["lab_mib"], found["own_mib"]
    cards = f"{HOSTS * CARDS} cards on {HOSTS} hosts"
    start, first = found["start_ms"], found["first_ms"]
    note = f"started in {start:.0f} ms; the first sweep, with its logins, took {first:.0f} ms"
    peer = f"5 x {_FIFTH * CARDS} cards on {_FIFTH} hosts"
    scaled = fifth.scaled(HOSTS / _FIFTH)
    return [
        Row("500 cards, sweep", f"every field of {cards}, warm", "ms", whole, 1000, note=note),
        Row(
            "500 cards, linear",
            "takes no longer per card than a fifth of them",
            "ms",
            whole,
            1.1,
            "ratio",
            peer,
            scaled,
        ),
        Row(
            "500 cards, memory",
            "the lab's process and the harness's together (PSS), after the sweeps",
            "MiB",
            Samples((lab + own,)),
            150,
            peer="the lab's process alone",
            peer_result=Samples((lab,)),
        ),
    ]


def _sweep(readers: Sequence[CardReader]) -> None:
    for reader in readers:
        for truth in reader.truths(_ADDRESSES).values():
            assert not isinstance(truth.flash_count, Unknown)


def _measured(lab: RunningLab, rounds: int) -> dict[str, Any]:
    hosts = [labs.reach(lab, f"node{number}") for number in range(HOSTS)]
    readers = [CardReader(host, "/sys") for host in hosts]
    first = seconds_of(lambda: _sweep(readers)) * 1000
    whole, fifth = in_turn((lambda: _sweep(readers), lambda: _sweep(readers[:_FIFTH])), rounds, warm_up=0)
    assert lab.process_id is not None
    found = {
        "first_ms": first,
        "whole": whole.values,
        "fifth": fifth.values,
        "lab_mib": _mib(lab.process_id),
        "own_mib": _mib(os.getpid()),
    }
    for host in hosts:
        host.close()
    return found


def _mib(pid: int) -> float:
    """Return the memory of a process in MiB, and of what it shares with others its share (PSS)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Measure, and print what was found as JSON."""
    opened = labs.started(HOSTS, CARDS)
    entered: list[RunningLab] = []
    start = seconds_of(lambda: entered.append(opened.__enter__()))
    try:
        print(json.dumps(_measured(entered[0], int(sys.argv[1])) | {"start_ms": start * 1000}))
    finally:
        opened.__exit__(None, None, None)


if __name__ == "__main__":
    main()

"""Records of made-up runs, for what reports show of them: a flash that did nothing and says OK, good ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.judgement.records import (
    Claim,
    Completion,
    Evidence,
    Fault,
    Intent,
    Observation,
    Promise,
    Record,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
)

#: Seconds after the start of a scenario at which its records were made.
TIMES = {"intent": 0.5, "before": 1.0, "armed": 1.5, "fired": 2.0, "claim": 4.0, "done": 4.5, "after": 5.0}
OLD, NEW = 0x23000410010310, 0x23000411010311


class Run:
    """A run whose records are numbered as a history numbers them."""

    def __init__(self, lab: str = "emulated") -> None:
        self.records: list[Record] = []
        self._began = 1_700_000_000.0
        self._add(0.0, RunStarted(run="20231114-221320-7", lab=lab, versions={"harness": "0.1.0"}))

    def _add(self, after: float, record: Any) -> Any:
        kept = replace(record, seq=len(self.records) + 1, time=self._began + after)
        self.records.append(kept)
        return kept

    def flash(
        self,
        scenario: str,
        device: str,
        *,
        lies: bool = True,
        text: str = "Secure update OK\n",
        **expects: Any,
    ) -> None:
        """Add a scenario: fpgasupdate says OK; where it lies, the card still runs the old image."""
        card = Subject("card", device, device.partition("/")[0], "0000:b2:00.0", "64:4c:36:00:00:01")
        self._add(0.0, ScenarioStarted(scenario=scenario, subject=card, expects=expects))
        image = {"name": "A/csk0", "effect": "user-image", "section": "SR", "bitstream_id": NEW}
        asked = Intent(operation="flash", subject=card, parameters={"image": image}, promise=Promise("lands"))
        intent = self._add(TIMES["intent"], asked).seq
        self._see(TIMES["before"], card, intent, "before", flash_count=5, bitstream_id=OLD)
        if lies:
            fault = Fault(point="start", action="ignore-upload", subject=card, state="armed", intent=intent)
            self._add(TIMES["armed"], fault)
            self._add(TIMES["fired"], replace(fault, state="fired"))
        said = {"result": "done", "phase": "programming", "error": ""}
        evidence = Evidence(text, "fpgasupdate image.bin 0000:b2:00.0", 0)
        self._add(
            TIMES["claim"],
            Claim(reporter="fpgasupdate", subject=card, statement=said, evidence=evidence, intent=intent),
        )
        self._add(TIMES["done"], Completion(intent=intent, how="returned"))
        count = 5 if lies else 6
        self._see(TIMES["after"], card, intent, "after", flash_count=count, bitstream_id=OLD)
        reset = Intent(operation="reset", subject=card, promise=Promise("returns"))
        intent = self._add(6.0, reset).seq
        self._see(6.5, card, intent, "before", flash_count=count, bitstream_id=OLD)
        word = {"result": "done", "phase": "", "error": ""}
        told = Evidence("RSU operation complete\n", "rsu bmcimg 0000:b2:00.0", 0)
        self._add(7.0, Claim(reporter="rsu", subject=card, statement=word, evidence=told, intent=intent))
        self._add(7.5, Completion(intent=intent, how="returned"))
        runs = OLD if lies else NEW
        self._see(8.0, card, intent, "after-reset", flash_count=count, bitstream_id=runs)
        self._add(9.0, ScenarioEnded(scenario=scenario))
        self._began += 10.0

    def _see(self, after: float, card: Subject, intent: int, moment: str, **values: Any) -> None:
        values = {"address": card.address, "identity": card.identity, "boot_page": "user"} | values
        sources = {name: f"/sys/card/{name}" for name in values}
        self._add(
            after,
            Observation(
                probe="sysfs", subject=card, moment=moment, values=values, sources=sources, intent=intent
            ),
        )

    def blocked(self, scenario: str, reason: str) -> None:
        """Add a scenario that could not run."""
        self._add(0.0, ScenarioStarted(scenario=scenario, subject=None))
        self._add(0.1, ScenarioEnded(scenario=scenario, state="BLOCKED", reason=reason))

    def end(self) -> list[Record]:
        """End the run; return its records."""
        self._add(0.0, RunEnded())
        return self.records


LIE: dict[str, Any] = {"outcome": "FAILED", "verdicts": {"fpgasupdate": "FALSE_SUCCESS"}}

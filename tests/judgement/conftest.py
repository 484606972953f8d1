"""Builds the records of made-up scenarios, as the drivers write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.judgement.judge import ScenarioJudgement, judge_scenario
from harness.judgement.records import (
    Claim,
    Completion,
    Evidence,
    Fault,
    Intent,
    Observation,
    Promise,
    Record,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
)
from tests.judgement.cloud_records import ABC, IMAGE_11, Cloud

LANDS = Promise("lands")
ROOT_A = "aa" * 32
ROOT_B = "bb" * 32
OLD, NEW, OTHER, FACTORY = 0x23000410010310, 0x23000411010311, 0x23000410010309, 0x23001410010310
CARD = Subject("card", "subcloud1/card0", "subcloud1", "0000:b2:00.0", "64:4c:36:00:00:01")

#: What a card shows before anything happens: keyed with root A, five updates behind it.
STATE: dict[str, Any] = {
    "address": "0000:b2:00.0",
    "identity": "64:4c:36:00:00:01",
    "bitstream_id": OLD,
    "boot_page": "user",
    "sr_root": ROOT_A,
    "bmc_root": "77" * 32,
    "pr_root": "",
    "sr_cancelled": [],
    "bmc_cancelled": [],
    "pr_cancelled": [],
    "flash_count": 5,
    "bmc_version": "D.2.0.6",
    "bmcfw_version": "D.2.0.19",
}
IMAGES: dict[str, dict[str, Any]] = {
    "A/csk0": {"effect": "user-image", "section": "SR", "bitstream_id": NEW},
    "other": {"effect": "user-image", "section": "SR", "bitstream_id": OTHER},
    "nameless": {"effect": "user-image", "section": "SR", "bitstream_id": {"unknown": "no descriptor"}},
    "bmc": {"effect": "bmc-image", "section": "BMC", "bmc_version": "D.2.0.7", "bmcfw_version": "D.2.0.21"},
    "root-key-B": {"effect": "root-key", "section": "SR", "programs_root": ROOT_B},
    "cancel-3": {"effect": "key-cancellation", "section": "SR", "cancel_id": 3},
    "raw-file": {"effect": "unparsed", "section": ""},
}


class Story:
    """One scenario; every method adds the records of one event."""

    def __init__(self, **expects: Any) -> None:
        self.records: list[Record] = []
        self.add(ScenarioStarted(scenario="made-up", subject=CARD, expects=expects))

    def add(self, record: Any) -> Any:
        numbered = replace(record, seq=len(self.records) + 1, time=float(len(self.records)))
        self.records.append(numbered)
        return numbered

    def observe(self, moment: str, intent: int | None, **values: Any) -> None:
        values = STATE | values
        sources = {name: f"/sys/card/{name}" for name in values}
        self.add(
            Observation(probe="D", subject=CARD, moment=moment, values=values, sources=sources, intent=intent)
        )

    def flash(
        self,
        image: str = "A/csk0",
        result: str | None = "done",
        *,
        promise: Promise | None = LANDS,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
        error: str = "",
        auth_code: str = "",
        how: str | None = "returned",
        raised: dict[str, str] | None = None,
    ) -> int:
        """``after``: what differs from :data:`STATE`; by default the flash count rose by one."""
        facts = {"name": image, **IMAGES[image]}
        intent = self.add(
            Intent(operation="flash", subject=CARD, parameters={"image": facts}, promise=promise)
        ).seq
        self.observe("before", intent, **(before or {}))
        if result is not None:
            self.say("fpgasupdate", intent, result=result, error=error)
        if auth_code:
            self.say("kernel-log", intent, auth_code=auth_code)
        if how is not None:
            self.add(Completion(intent=intent, how=how, error=raised or {}))
        self.observe("after", intent, **({"flash_count": 6} if after is None else after))
        return int(intent)

    def reset(self, result: str | None = "done", *, promise: Promise | None = None, **after: Any) -> int:
        intent = self.add(Intent(operation="reset", subject=CARD, promise=promise)).seq
        self.observe("before", intent)
        if result is not None:
            self.say("rsu", intent, result=result)
        self.add(Completion(intent=intent, how="returned"))
        self.observe("after-reset", intent, **after)
        return int(intent)

    def say(self, reporter: str, intent: int | None, **statement: Any) -> None:
        evidence = Evidence("what it printed", command=reporter, exit_code=None)
        self.add(
            Claim(reporter=reporter, subject=CARD, statement=statement, evidence=evidence, intent=intent)
        )

    def fault(self, state: Any, point: str = "programming", action: str = "sigterm") -> None:
        self.add(Fault(point=point, action=action, subject=CARD, state=state))

    def end(self, state: str = "finished", reason: str = "") -> ScenarioJudgement:
        self.add(ScenarioEnded(scenario="made-up", state=state, reason=reason))
        return judge_scenario(self.records)


@pytest.fixture(scope="session")
def tell() -> Callable[..., Story]:
    """Begins a scenario; ``tell(outcome="FAILED")`` states what it expects."""
    return Story


@pytest.fixture
def one() -> Cloud:
    """A subcloud that holds the one image that is applied to the label of its card."""
    cloud = Cloud("sub")
    cloud.look()
    cloud.label("sub", **ABC)
    cloud.apply(cloud.upload(IMAGE_11), **ABC)
    cloud.orchestrate(sub="complete")
    cloud.write("sub", "image-11")
    cloud.look()
    return cloud

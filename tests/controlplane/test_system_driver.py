"""Operations on a system: recorded as intents, what it says as claims, and waiting with a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.served_system import Serve, Served
from support.starlingx_lab import CARD, RECIPES

from harness.controlplane.cli import CliWay
from harness.controlplane.driver import SystemDriver
from harness.controlplane.gate import Gate
from harness.controlplane.protocol import ControlPlane, Upload
from harness.controlplane.rest import RestWay
from harness.errors import ConfigurationError, ControlPlaneError, DeadlineError
from harness.images.recipes import build
from harness.judgement.records import Claim, Completion, Intent
from harness.record.history import History, read_history

IMAGE = build(RECIPES["unsigned"])


@dataclass(frozen=True)
class Entry:
    """A card that permits all."""

    name: str = "card0"
    address: str = CARD
    identity: str | None = None
    irreversible: frozenset[str] = frozenset({"root-key", "key-cancellation"})


@dataclass
class Bench:
    served: Served
    driver: SystemDriver
    history: History

    def uploaded(self) -> str:
        """Upload an image and apply it to all; return its uuid."""
        image = self.driver.upload(Upload(IMAGE, "a.bin", "functional", bitstream_id="0x2"))
        self.driver.apply(image.uuid)
        return image.uuid

    def of(self, kind: type[Any], operation: str = "") -> list[Any]:
        found = [record for record in self.history.records if isinstance(record, kind)]
        return [record for record in found if operation in ("", getattr(record, "operation", ""))]


@pytest.fixture
def begin(serve: Serve, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def give(way: str = "rest", **system: Any) -> Bench:
        served = serve(**system)
        history = History(tmp_path / "history.jsonl")
        gate = Gate("system1", {("controller-0", CARD): Entry()}, real=False)
        asked = RestWay("system1", served.login) if way == "rest" else CliWay("system1", served.controller())
        made.append(Bench(served, SystemDriver(asked, gate, history), history))
        return made[-1]

    yield give
    for found in made:
        found.driver.close()
        found.history.close()


def test_driver_is_a_control_plane(begin: Callable[..., Bench]) -> None:
    found: ControlPlane = begin().driver
    assert found.name == "system1"


@pytest.mark.parametrize("way", ["rest", "cli"])
def test_update_ends_when_it_is_over_and_not_when_it_is_answered(
    begin: Callable[..., Bench], way: str
) -> None:
    bench = begin(way)
    uuid = bench.uploaded()
    (state,) = bench.driver.update_and_wait("controller-0", deadline=60)
    assert (state.image_uuid, state.status) == (uuid, "completed")
    assert bench.driver.host("controller-0").reboot_needed is True
    answers = [
        claim.statement["device_image_update"]
        for claim in bench.of(Claim)
        if claim.subject.name == "system1/host/controller-0"
    ]
    assert (answers[0], answers[-1]) == ("pending", "")  # the first is the stale answer to the update


def test_nothing_to_write_is_said_at_once(begin: Callable[..., Bench]) -> None:
    bench = begin()
    with pytest.raises(ConfigurationError, match="nothing to write on controller-0"):
        bench.driver.update_and_wait("controller-0", deadline=60)
    assert bench.of(Intent) == []


def test_wait_that_ends_late_says_what_was_seen_last(begin: Callable[..., Bench]) -> None:
    """The conductor is down: the update was accepted, and nothing follows."""
    bench = begin()
    uuid = bench.uploaded()
    bench.served.trouble("conductor", False)
    with pytest.raises(DeadlineError, match=f"update of controller-0 ends; last seen: .*{uuid}: pending"):
        bench.driver.update_and_wait("controller-0", deadline=0.5)
    (intent,) = bench.of(Intent, "wait-until")
    completion = next(record for record in bench.of(Completion) if record.intent == intent.seq)
    assert completion.how == "timed-out"
    bench.served.trouble("conductor", True)


def test_failure_is_a_claim_and_the_next_update_tries_again(begin: Callable[..., Bench]) -> None:
    """A release that reports failures; the image is one that the card does not take."""
    bench = begin(release="corrected")
    image = bench.driver.upload(Upload(b"garbage", "a.bin", "functional", bitstream_id="0x2"))
    bench.driver.apply(image.uuid)
    for _ in range(2):
        (state,) = bench.driver.update_and_wait("controller-0", deadline=60)
        assert state.status == "failed"


def test_wait_goes_on_while_the_system_is_away(begin: Callable[..., Bench]) -> None:
    bench = begin()
    bench.driver.lock("controller-0")
    bench.served.trouble("refuse-requests", 2)
    locked = bench.driver.wait_for_host(
        "controller-0", lambda seen: seen.administrative == "locked", "is locked", deadline=30
    )
    assert locked.availability == "online"


def test_what_is_asked_and_said_is_in_the_history(begin: Callable[..., Bench]) -> None:
    bench = begin()
    uuid = bench.uploaded()
    bench.driver.states()
    upload, apply = bench.of(Intent)
    assert upload.operation == "image-upload"
    assert upload.parameters["fields"]["bitstream_id"] == "0x2"
    assert (apply.operation, apply.subject.name) == ("image-apply", f"system1/{uuid}")
    assert [record.how for record in bench.of(Completion)] == ["returned", "returned"]
    answered, applied, state = bench.of(Claim)
    assert (answered.reporter, answered.intent) == ("sysinv", upload.seq)
    assert applied.statement["applied"] is True
    assert '"applied": true' in applied.evidence.text.replace('":true', '": true')
    assert (state.subject.name, state.subject.address) == (
        f"system1/state/controller-0/{CARD}/{uuid}", CARD
    )  # fmt: skip
    assert (state.statement["status"], state.intent) == ("pending", None)


def test_refusal_of_the_system_is_the_completion(begin: Callable[..., Bench]) -> None:
    bench = begin()
    with pytest.raises(ControlPlaneError):
        bench.driver.abort("controller-0")
    (completion,) = bench.of(Completion)
    assert completion.how == "raised"
    assert "not in the process of updating" in completion.error["message"]


@pytest.mark.parametrize("way", ["rest", "cli"])
def test_history_is_read_back_as_it_was(begin: Callable[..., Bench], way: str) -> None:
    bench = begin(way)
    bench.uploaded()
    bench.driver.images()
    assert list(read_history(bench.history.path)) == list(bench.history.records)

"""Operations on a system: recorded as intents, what it says as claims, and waiting with a deadline."""

from __future__ import annotations

import hashlib
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
from harness.errors import ConfigurationError, ControlPlaneError, DeadlineError, NotOfferedError
from harness.images.recipes import build
from harness.judgement.records import Claim, Completion, Intent, Observation, Subject
from harness.record.history import History, read_history

IMAGE = build(RECIPES["unsigned"])


@dataclass(frozen=True)
class Entry:
    """A card that permits all."""

    name: str = "card0"
    address: str = CARD
    identity: str | None = None
    irreversible: frozenset[str] = frozenset({"root-key", "key-cancellation"})
    wear: None = None


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


@pytest.mark.parametrize(("way", "first"), [("rest", ["pending"]), ("cli", ["pending", "in-progress", ""])])
def test_update_ends_when_it_is_over_and_not_when_it_is_answered(
    begin: Callable[..., Bench], way: str, first: list[str]
) -> None:
    """The first claim is the answer to the update: of before; the command asks for the host once more."""
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
    assert answers[0] in first
    assert answers[-1] == ""


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


def test_wait_for_what_is_not_offered_ends_at_once(begin: Callable[..., Bench]) -> None:
    bench = begin("cli")
    bench.served.lab.machine.condition("missing-fm", True)
    with pytest.raises(NotOfferedError, match="no command `fm`"):
        bench.driver.wait_until("an alarm", lambda way: way.alarms(), bool, deadline=30)


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


@dataclass
class Truth:
    """What was read from a card of the test."""

    sources: dict[str, str]

    def values(self) -> dict[str, Any]:
        return {"bitstream_id": 5, "address": CARD}


class Card:
    """A card of the test."""

    subject = Subject("card", "host1/card0", "host1", CARD)

    def truth(self) -> Truth:
        return Truth({"bitstream_id": "/sys/a"})


@pytest.mark.parametrize("way", ["rest", "cli"])
def test_look_records_all_that_is_said_and_held(begin: Callable[..., Bench], way: str) -> None:
    bench = begin(way)
    uuid = bench.uploaded()
    bench.driver.assign_labels("controller-0", CARD, {"k": "v"})
    bench.driver.look([("controller-0", Card())])
    (intent,) = bench.of(Intent, "look")
    assert intent.parameters["asked"] == ["image", "state", "label", "device", "host", "alarm"]
    said = [claim for claim in bench.of(Claim) if claim.intent == intent.seq]
    names = [claim.subject.name.removeprefix("system1/") for claim in said]
    kinds = list(dict.fromkeys(name.partition("/")[0] for name in names))
    assert kinds == intent.parameters["asked"]
    assert f"image/{uuid}" in names
    assert f"device/controller-0/{CARD}" in names
    device = next(claim for claim in said if claim.subject.address == CARD and "root_key" in claim.statement)
    assert isinstance(device.statement["bitstream_id"], str)  # a list of the command does not show it
    (held,) = [record for record in bench.of(Observation) if record.probe == "card"]
    assert (held.intent, held.values["system"], held.values["hostname"]) == (
        intent.seq, "system1", "controller-0"
    )  # fmt: skip


def test_look_goes_on_where_one_list_is_refused(begin: Callable[..., Bench]) -> None:
    """Removing a label that carries an image makes the list of all images fail (section 4.8)."""
    bench = begin()
    image = bench.driver.upload(Upload(IMAGE, "a.bin", "functional", bitstream_id="0x2"))
    bench.driver.assign_labels("controller-0", CARD, {"k": "v"})
    bench.driver.apply(image.uuid, [("k", "v")])
    bench.driver.remove_labels("controller-0", CARD, ["k"])
    with pytest.raises(ControlPlaneError, match="No device label entry found for None"):
        bench.driver.look()
    (intent,) = bench.of(Intent, "look")
    said = [claim.subject.name for claim in bench.of(Claim) if claim.intent == intent.seq]
    assert f"system1/device/controller-0/{CARD}" in said
    assert "system1/host/controller-0" in said


def test_what_an_image_is_by_its_bytes_is_an_observation(begin: Callable[..., Bench]) -> None:
    bench = begin()
    image = bench.driver.upload(Upload(IMAGE, "a.bin", "functional", bitstream_id="0x2"), promise="unchanged")
    (seen,) = bench.of(Observation)
    assert seen.subject.name == f"system1/image/{image.uuid}"
    assert seen.values["promise"] == "unchanged"
    assert seen.values["image"]["effect"] == "user-image"
    assert seen.values["image"]["sha256"] == hashlib.sha256(IMAGE).hexdigest()


def test_records_have_the_time_of_the_lab(begin: Callable[..., Bench]) -> None:
    bench = begin()
    driver = SystemDriver(
        RestWay("system1", bench.served.login),
        Gate("system1", {}, real=False),
        bench.history,
        clock=lambda: 1234.5,
    )
    driver.look()
    driver.close()
    assert {record.source_time for record in bench.of(Intent) + bench.of(Claim)} == {1234.5}

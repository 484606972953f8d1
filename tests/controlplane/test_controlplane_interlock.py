"""What cannot be undone reaches a card by the control plane only where the inventory permits it by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.served_system import Serve, Served
from support.starlingx_lab import CARD, RECIPES

from harness.controlplane.driver import SystemDriver
from harness.controlplane.gate import Gate
from harness.controlplane.protocol import DeviceImage, Upload
from harness.controlplane.rest import RestWay
from harness.errors import RefusedError
from harness.images.recipes import build
from harness.judgement.records import Completion, Intent
from harness.judgement.values import Unknown
from harness.record.history import History

OTHER = "0000:aa:00.0"
BOTH = frozenset({"root-key", "key-cancellation"})


@dataclass(frozen=True)
class Entry:
    """A card of the inventory."""

    address: str
    irreversible: frozenset[str] = frozenset()
    identity: str | None = "64:4c:36:00:00:01"
    name: str = "card0"
    wear: None = None


@dataclass
class Bench:
    """Two cards in one host, of which some permit something; and the driver of their system."""

    served: Served
    driver: SystemDriver
    history: History
    gate: Gate

    def upload(self, recipe: str, kind: str = "functional") -> DeviceImage:
        needed = {
            "functional": "bitstream_id",
            "root-key": "key_signature",
            "key-revocation": "revoke_key_id",
        }
        content = b"some bytes" if recipe == "garbage" else build(RECIPES[recipe])
        field = {needed[kind]: 0 if kind == "key-revocation" else "1"}
        return self.driver.upload(Upload(content, f"{recipe}.bin", kind, **field))  # type: ignore[arg-type]

    def statuses(self) -> list[tuple[str, str]]:
        return sorted((str(state.address), state.status) for state in self.driver.states())


@pytest.fixture
def bench(serve: Serve, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def give(
        first: frozenset[str] = frozenset(),
        second: frozenset[str] = frozenset(),
        *,
        real: bool = False,
        allowed: frozenset[str] = frozenset(),
        unknown: bool = False,
    ) -> Bench:
        served = serve(cards=2)
        cards = {("controller-0", CARD): Entry(CARD, first)}
        if not unknown:
            cards["controller-0", OTHER] = Entry(OTHER, second)
        history = History(tmp_path / "history.jsonl")
        gate = Gate("system1", cards, real=real, allowed=allowed)
        driver = SystemDriver(RestWay("system1", served.login), gate, history)
        made.append(Bench(served, driver, history, gate))
        return made[-1]

    yield give
    for found in made:
        found.driver.close()
        found.history.close()


def test_both_cards_are_where_the_tests_have_them(bench: Callable[..., Bench]) -> None:
    devices = bench().driver.devices("controller-0")
    assert {CARD, OTHER} <= {device.address for device in devices if device.device_id == "0b30"}


@pytest.mark.parametrize(
    ("recipe", "kind", "permits", "passes"),
    [
        ("A/csk0", "functional", frozenset(), True),
        ("unsigned", "functional", frozenset(), True),
        ("root-key-A", "root-key", frozenset(), False),
        ("root-key-A", "root-key", frozenset({"key-cancellation"}), False),
        ("root-key-A", "root-key", frozenset({"root-key"}), True),
        ("cancel-A-csk0", "key-revocation", frozenset({"root-key"}), False),
        ("cancel-A-csk0", "key-revocation", frozenset({"key-cancellation"}), True),
        ("root-key-A", "functional", frozenset(), False),  # the bytes decide, not what is said of them
        ("garbage", "functional", frozenset(), False),  # what cannot be parsed counts as irreversible
        ("garbage", "functional", BOTH, True),
    ],
)
def test_upload_is_judged_by_the_bytes(
    bench: Callable[..., Bench], recipe: str, kind: str, permits: frozenset[str], passes: bool
) -> None:
    found = bench(second=permits)
    if passes:
        found.upload(recipe, kind)
        assert len(found.driver.images()) == 1
    else:
        with pytest.raises(RefusedError, match="cannot be undone"):
            found.upload(recipe, kind)
        assert found.driver.images() == []


def test_image_goes_only_to_cards_that_permit_it(bench: Callable[..., Bench]) -> None:
    found = bench(second=BOTH)
    uuid = found.upload("root-key-A", "root-key").uuid
    with pytest.raises(RefusedError, match="cannot be undone"):
        found.driver.apply(uuid)  # to all
    found.driver.assign_labels("controller-0", CARD, {"k": "forbidden", "all": "1"})
    found.driver.assign_labels("controller-0", OTHER, {"k": "permitted", "all": "1"})
    for label in (("k", "forbidden"), ("all", "1")):
        with pytest.raises(RefusedError):
            found.driver.apply(uuid, [label])
    assert found.statuses() == []
    found.driver.apply(uuid, [("k", "permitted")])
    assert found.statuses() == [(OTHER, "pending")]


def test_label_brings_an_image_that_was_applied_to_it_before(bench: Callable[..., Bench]) -> None:
    found = bench(second=BOTH)
    uuid = found.upload("root-key-A", "root-key").uuid
    found.driver.apply(uuid, [("later", "1")])
    with pytest.raises(RefusedError):
        found.driver.assign_labels("controller-0", CARD, {"later": "1"})
    assert found.statuses() == []
    found.driver.assign_labels("controller-0", CARD, {"other": "1"})
    found.driver.assign_labels("controller-0", OTHER, {"later": "1"})
    assert found.statuses() == [(OTHER, "pending")]


def test_image_whose_bytes_were_not_read_counts_as_irreversible(bench: Callable[..., Bench]) -> None:
    """Somebody else uploaded and applied it; all that is known of it is what the system says."""
    found = bench(second=BOTH)
    uuid = found.served.lab.upload("A/csk0")
    with pytest.raises(RefusedError, match="bytes the harness has not read"):
        found.driver.apply(uuid)
    found.served.lab.apply(uuid)
    with pytest.raises(RefusedError, match="bytes the harness has not read"):
        found.driver.update("controller-0")
    assert found.statuses() == [(OTHER, "pending"), (CARD, "pending")]


@pytest.mark.parametrize(
    ("recipe", "passes"), [("A/csk0", True), ("root-key-A", False), ("cancel-A-csk0", False), ("", False)]
)
def test_image_of_somebody_else_is_judged_by_the_bytes_that_the_controller_gives(
    bench: Callable[..., Bench], recipe: str, passes: bool
) -> None:
    found = bench()
    uuid = found.served.lab.upload(recipe, "root-key")
    given = found.served.lab.system.images_folder / f"root-key-8086-0b30-{uuid}.bit"
    found.gate.read_with(lambda asked: given.read_bytes() if asked == uuid else Unknown("none"))
    if passes:
        found.driver.apply(uuid)
        found.driver.update("controller-0")
    else:
        with pytest.raises(RefusedError, match="cannot be undone"):
            found.driver.apply(uuid)
        assert found.statuses() == []


def test_what_the_controller_gives_is_read_each_time(bench: Callable[..., Bench]) -> None:
    """Somebody may exchange the file between an apply and an update."""
    found = bench()
    uuid = found.served.lab.upload("A/csk0")
    given = [build(RECIPES["A/csk0"])]
    found.gate.read_with(lambda asked: given[0])
    found.driver.apply(uuid)
    given[0] = build(RECIPES["root-key-A"])
    with pytest.raises(RefusedError, match="cannot be undone"):
        found.driver.update("controller-0")


def test_device_that_is_no_card_of_the_inventory(bench: Callable[..., Bench]) -> None:
    found = bench(first=BOTH, unknown=True)
    uuid = found.upload("root-key-A", "root-key").uuid
    with pytest.raises(RefusedError, match=f"{OTHER} of controller-0 .* is no card of the inventory"):
        found.driver.apply(uuid)


def test_deleted_image_is_forgotten(bench: Callable[..., Bench]) -> None:
    found = bench()
    uuid = found.upload("A/csk0").uuid
    found.driver.apply(uuid)
    found.driver.remove(uuid)
    found.driver.delete(uuid)
    found.served.lab.upload("root-key-A", "root-key", uuid=uuid)
    with pytest.raises(RefusedError):
        found.driver.apply(uuid)


def test_real_hardware_needs_the_command_line_as_well(bench: Callable[..., Bench]) -> None:
    with pytest.raises(RefusedError, match="real hardware"):
        bench(first=BOTH, second=BOTH, real=True).upload("root-key-A", "root-key")


def test_real_hardware_with_the_command_line(bench: Callable[..., Bench]) -> None:
    found = bench(first=BOTH, second=BOTH, real=True, allowed=frozenset({"root-key"}))
    found.driver.apply(found.upload("root-key-A", "root-key").uuid)
    assert len(found.statuses()) == 2


def test_refusal_is_in_the_history(bench: Callable[..., Bench]) -> None:
    found = bench()
    with pytest.raises(RefusedError):
        found.upload("root-key-A", "root-key")
    (intent,) = [record for record in found.history.records if isinstance(record, Intent)]
    (completion,) = [record for record in found.history.records if isinstance(record, Completion)]
    assert (intent.operation, intent.parameters["filename"]) == ("image-upload", "root-key-A.bin")
    assert (completion.intent, completion.how, completion.error["kind"]) == (intent.seq, "raised", "refused")

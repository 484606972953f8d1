"""No strategy is applied past the interlock: each card that may get what cannot be undone must permit it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.starlingx_lab import RECIPES

from harness.controlplane.changes import Change, PermitMaker
from harness.controlplane.cloud_driver import CloudDriver
from harness.controlplane.cloud_gate import CloudGate
from harness.controlplane.cloud_protocol import Step, Strategy, StrategyChange
from harness.controlplane.gate import Gate
from harness.controlplane.protocol import (
    EVERY_DEVICE,
    DeviceImage,
    DeviceImageState,
    DeviceLabel,
    HostState,
    Label,
    PciDevice,
)
from harness.errors import RefusedError, UnreachableError
from harness.hosts.permits import genuine
from harness.images.recipes import build
from harness.judgement.records import Completion, Evidence, Intent
from harness.record.history import History

HOST = "controller-0"
#: What each kind of image may do that cannot be undone; the bytes of the last are read by nobody.
NEEDS = {
    "A/csk0": frozenset[str](),
    "root-key-A": frozenset({"root-key"}),
    "cancel-A-csk0": frozenset({"key-cancellation"}),
    "unread": frozenset({"root-key", "key-cancellation"}),
}
LABELS: tuple[Label, ...] = (("site", "1"), ("site", "2"))


@cache
def content(recipe: str) -> bytes:
    return build(RECIPES[recipe])


@dataclass(frozen=True)
class Entry:
    """A card of the inventory."""

    address: str
    irreversible: frozenset[str]
    identity: str | None = "64:4c:36:00:00:01"
    name: str = "card0"
    wear: None = None


@dataclass(frozen=True)
class Image:
    """An image on the controller. ``labels``: none of one that is applied to every device."""

    uuid: str
    recipe: str
    applied: bool = True
    labels: tuple[Label, ...] = ()

    def shown(self) -> DeviceImage:
        labels = (self.labels or (EVERY_DEVICE,)) if self.applied else None
        return DeviceImage(self.uuid, applied=self.applied, applied_labels=labels)


@dataclass
class Card:
    permits: frozenset[str] = frozenset()
    labels: tuple[Label, ...] = ()
    owed: tuple[str, ...] = ()
    address: str = "0000:b2:00.0"


@dataclass
class FakeSystem:
    """What a subcloud, or the controller, shows."""

    cards: list[Card] = field(default_factory=list)
    shown: list[DeviceImage] = field(default_factory=list)
    answers: bool = True

    def _checked(self, found: list[Any]) -> list[Any]:
        if not self.answers:
            raise UnreachableError("It does not answer.")
        return found

    def images(self) -> list[DeviceImage]:
        return self._checked(self.shown)

    def hosts(self) -> list[HostState]:
        return self._checked([HostState(HOST)])

    def devices(self, hostname: str) -> list[PciDevice]:
        return self._checked([self.device(hostname, card.address) for card in self.cards])

    def device(self, hostname: str, device: str) -> PciDevice:
        return PciDevice(f"pci_{device}", device, hostname, device_id="0b30")

    def labels(self) -> list[DeviceLabel]:
        return self._checked(
            [
                DeviceLabel(key, value, HOST, f"pci_{card.address}")
                for card in self.cards
                for key, value in card.labels
            ]
        )

    def states(self) -> list[DeviceImageState]:
        return self._checked(
            [
                DeviceImageState("pending", HOST, card.address, uuid)
                for card in self.cards
                for uuid in card.owed
            ]
        )


@dataclass
class FakeCloud:
    """dcmanager: its steps, and what was asked of it with which permit."""

    shown_steps: list[Step]
    state: str = "initial"
    name: str = "central"
    reporter: str = "dcmanager"
    evidence: Evidence = field(default_factory=lambda: Evidence(""))
    done: list[StrategyChange] = field(default_factory=list)

    def steps(self) -> list[Step]:
        return self.shown_steps

    def strategy(self) -> Strategy:
        return Strategy("firmware", self.state)

    def carry_out(self, change: StrategyChange, permits: PermitMaker) -> Strategy:
        action = change.act.removeprefix("strategy-")
        words = ["POST", "/sw-update-strategy/actions?type=firmware", f'{{"action": "{action}"}}']
        if change.act == "strategy-create":
            words = ["POST", "/sw-update-strategy/", "{}"]
        elif change.act == "strategy-delete":
            words = ["DELETE", "/sw-update-strategy?type=firmware", "null"]
        genuine(permits.command(self.name, words)).check_command(self.name, words)
        self.done.append(change)
        return self.strategy()


@dataclass
class Bench:
    driver: CloudDriver
    gate: CloudGate
    below: dict[str, Gate]
    cloud: FakeCloud
    history: History


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    opened: list[History] = []

    def give(
        images: Sequence[Image],
        subclouds: dict[str, FakeSystem],
        steps: Sequence[str] = (),
        **options: Any,
    ) -> Bench:
        central = FakeSystem(shown=[image.shown() for image in images])
        cloud = FakeCloud([Step(name, "initial") for name in steps])
        entries = {
            name: {(HOST, card.address): Entry(card.address, card.permits) for card in system.cards}
            for name, system in subclouds.items()
        }
        every = {
            (f"{name}/{host}", address): entry
            for name, mine in entries.items()
            for (host, address), entry in mine.items()
        }
        options = {"real": False} | options
        gate = CloudGate("central", every, cloud, **options)  # type: ignore[arg-type]
        for image in images:
            if image.recipe != "unread":
                gate.learn(image.uuid, content(image.recipe))
        below = {
            name: Gate(name, mine, above=(gate, central), **options)  # type: ignore[arg-type]
            for name, mine in entries.items()
        }
        for name, system in subclouds.items():
            gate.add(name, below[name], system)  # type: ignore[arg-type]
        history = History(tmp_path / f"history{len(opened)}.jsonl")
        opened.append(history)
        driver = CloudDriver(cloud, gate, central, history)  # type: ignore[arg-type]
        return Bench(driver, gate, below, cloud, history)

    yield give
    for history in opened:
        history.close()


# -- what may be -------------------------------------------------------------------------------------------

PERMITS = st.sets(st.sampled_from(("root-key", "key-cancellation"))).map(frozenset)
SOME_LABELS = st.lists(st.sampled_from(LABELS), unique=True, max_size=2).map(tuple)
IMAGES = st.lists(
    st.builds(Image, st.just(""), st.sampled_from(sorted(NEEDS)), st.booleans(), SOME_LABELS), max_size=3
).map(lambda images: [replace(image, uuid=f"image-{at}") for at, image in enumerate(images)])


@st.composite
def clouds(draw: st.DrawFn) -> tuple[list[Image], dict[str, FakeSystem], list[str]]:
    images = draw(IMAGES)
    owed = st.lists(st.sampled_from([image.uuid for image in images]), max_size=1) if images else st.just([])
    cards = st.builds(Card, PERMITS, SOME_LABELS, owed.map(tuple))
    systems = {}
    for at in range(draw(st.integers(1, 3))):
        mine = draw(st.lists(cards, min_size=1, max_size=2))
        for number, card in enumerate(mine):
            card.address = f"0000:b{number}:00.0"
        systems[f"subcloud{at}"] = FakeSystem(mine, answers=draw(st.integers(0, 4)) > 0)
    return images, systems, draw(st.lists(st.sampled_from(sorted(systems)), unique=True))


def forbidden(images: list[Image], subclouds: dict[str, FakeSystem], steps: list[str]) -> bool:
    """Whether a card of a subcloud that has a step may get what it does not permit, said once more."""
    for name in steps or subclouds:
        system = subclouds[name]
        for card in system.cards:
            for image in images:
                reached = image.applied and (
                    not system.answers or not image.labels or set(image.labels) & set(card.labels)
                )
                owed = system.answers and image.uuid in card.owed
                if (reached or owed) and NEEDS[image.recipe] - card.permits:
                    return True
    return False


@settings(max_examples=80, deadline=None)
@given(case=clouds())
def test_a_strategy_is_applied_where_every_card_permits_it_and_nowhere_else(
    case: tuple[list[Image], dict[str, FakeSystem], list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("cloud")
    made = bench.__wrapped__(folder)  # type: ignore[attr-defined]
    found = next(made)(*case)
    try:
        if forbidden(*case):
            with pytest.raises(RefusedError, match="cannot be undone"):
                found.driver.apply_strategy()
            assert found.cloud.done == []
            (end,) = [record for record in found.history.records if isinstance(record, Completion)]
            assert (end.how, end.error["kind"]) == ("raised", "refused")
        else:
            found.driver.apply_strategy()
            assert [change.act for change in found.cloud.done] == ["strategy-apply"]
        (intent,) = [record for record in found.history.records if isinstance(record, Intent)]
        assert (intent.operation, intent.subject.name) == ("strategy-apply", "central/strategy/firmware")
    finally:
        made.close()


# -- single cases ------------------------------------------------------------------------------------------

ROOT = Image("root", "root-key-A")
KEYED = frozenset({"root-key"})


def test_other_changes_of_a_strategy_bring_nothing_to_a_card(bench: Callable[..., Bench]) -> None:
    found = bench([ROOT], {"subcloud1": FakeSystem([Card()])}, ["subcloud1"])
    found.driver.create_strategy()
    found.driver.abort_strategy()
    found.driver.delete_strategy()
    acts = [change.act for change in found.cloud.done]
    assert acts == ["strategy-create", "strategy-abort", "strategy-delete"]


def test_a_subcloud_that_is_not_in_the_inventory(bench: Callable[..., Bench]) -> None:
    found = bench([ROOT], {"subcloud1": FakeSystem([Card(KEYED)])}, ["subcloud1", "elsewhere"])
    with pytest.raises(RefusedError, match=r"the subcloud elsewhere, .* is not in the inventory"):
        found.driver.apply_strategy()


def test_real_cards_need_the_command_line_as_well(bench: Callable[..., Bench]) -> None:
    subclouds = {"subcloud1": FakeSystem([Card(KEYED)])}
    with pytest.raises(RefusedError, match="real hardware"):
        bench([ROOT], subclouds, real=True).driver.apply_strategy()
    bench([ROOT], subclouds, real=True, allowed=KEYED).driver.apply_strategy()


def test_a_label_that_is_given_later_brings_what_the_controller_has_applied(
    bench: Callable[..., Bench],
) -> None:
    """Nothing carries the label when the strategy begins; what has it later is checked then."""
    image = replace(ROOT, labels=LABELS[:1])
    system = FakeSystem([Card()])
    found = bench([image], {"subcloud1": system}, ["subcloud1"])
    found.driver.apply_strategy()
    change = Change("label-assign", HOST, system.cards[0].address, labels=LABELS[:1])
    with pytest.raises(RefusedError, match="subcloud1, image root: "):
        found.below["subcloud1"].permits(change, system)  # type: ignore[arg-type]
    harmless = replace(change, labels=LABELS[1:])
    found.below["subcloud1"].permits(harmless, system)  # type: ignore[arg-type]


@pytest.mark.parametrize(("state", "refused"), [("initial", False), ("applying", True), ("complete", False)])
def test_an_image_that_is_applied_while_a_strategy_runs(
    bench: Callable[..., Bench], state: str, refused: bool
) -> None:
    """It may still be taken along; before and after that the next strategy is what brings it."""
    cards = {"subcloud1": FakeSystem([Card()]), "subcloud2": FakeSystem([Card(KEYED)])}
    found = bench([replace(ROOT, applied=False)], cards, ["subcloud1"])
    found.cloud.state = state
    change = Change("image-apply", ROOT.uuid)
    central = FakeSystem()
    if refused:
        with pytest.raises(RefusedError, match="subcloud1"):
            found.gate.permits(change, central)  # type: ignore[arg-type]
    else:
        found.gate.permits(change, central)  # type: ignore[arg-type]


def test_an_image_of_a_subclouds_own_under_the_uuid_of_the_controllers(bench: Callable[..., Bench]) -> None:
    """It has the uuid, so that nothing is fetched from the vault: its own bytes are written."""
    image = Image("same", "A/csk0")
    found = bench([image], {"subcloud1": FakeSystem([Card()])}, ["subcloud1"])
    found.driver.apply_strategy()
    found.below["subcloud1"].learn("same", content("root-key-A"))
    with pytest.raises(RefusedError, match="subcloud1, image same: "):
        found.driver.apply_strategy()

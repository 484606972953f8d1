"""The same card operations on the emulated lab, over its SSH face."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cards.discovery import FoundCard, discover
from harness.cards.driver import CardDriver
from harness.errors import LinkLostError, RefusedError
from harness.hosts.connect import connect
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.judgement.records import Claim, Completion, Promise
from harness.judgement.values import Unknown
from harness.lab.running import RunningLab, start_lab

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
LANDS = Promise("lands", source="test")
NAME = "node1/card0"
INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    hosts:
      node1:
        emulated: {}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:77:00
            irreversible: [root-key, key-cancellation]
            emulated: {}
"""


@pytest.fixture(scope="module")
def small_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    file = tmp_path_factory.mktemp("inventory") / "inventory.yaml"
    file.write_text(INVENTORY)
    with start_lab(load_inventory(file)) as running:
        yield running


@pytest.fixture
def emulated(small_lab: RunningLab, kept: Any) -> Iterator[Callable[[], CardDriver]]:
    """Makes drivers of a card that is as it was shipped, each with a connection of its own."""
    assert small_lab.bench is not None
    small_lab.bench.fit(NAME, {})
    entry = small_lab.entry.host("node1")
    made: list[CardDriver] = []

    def driver() -> CardDriver:
        host = connect(entry, small_lab.access("node1"))
        made.append(CardDriver(host, entry.card("card0"), kept, real=False, settle=0.5))
        made[-1].locate()
        return made[-1]

    yield driver
    for each in made:
        each.host.close()


def in_phase(lab: RunningLab, phase: str, act: Callable[[], object]) -> Callable[[str], None]:
    """Hold ``phase`` of the next update, and ``act`` while the card is in it."""
    bench = lab.bench
    assert bench is not None
    bench.hold(NAME, phase)

    def at_phase(seen: str) -> None:
        if seen == ("programming" if phase == "copying" else phase):
            bench.wait_held(NAME, phase)
            try:
                act()
            finally:
                bench.release(NAME)

    return at_phase


def test_discovery_and_truth(emulated: Callable[[], CardDriver]) -> None:
    card = emulated()
    assert discover(card.host) == [FoundCard("0000:b2:00.0", "64:4c:36:00:77:00")]
    unread = {name for name, value in card.truth().values().items() if isinstance(value, Unknown)}
    assert unread == {"hw_errinfo", "retimer_a_version", "retimer_b_version"}  # not of generation D


def test_a_card_off_the_bus_has_no_legal_value(
    emulated: Callable[[], CardDriver], small_lab: RunningLab
) -> None:
    """Also not where the kernel's text looks legal: erased flash reads as no root, no ids, a count of 0."""
    card = emulated()
    assert small_lab.bench is not None
    small_lab.bench.condition(NAME, "all-ones", True)
    known = {name for name, value in card.truth().values().items() if not isinstance(value, Unknown)}
    kept_by_the_kernel = {"address", "driver", "generation", "device_id", "boot_id"}
    assert known == kept_by_the_kernel | {"update_status", "update_error", "remaining_size"}


def test_a_flash_lands_with_the_reset(emulated: Callable[[], CardDriver]) -> None:
    card = emulated()
    result = card.flash(build(RECIPES["A/csk0"]), "A/csk0", LANDS)
    assert result.statement.result == "done"
    assert isinstance(result.before.flash_count, int)
    assert result.after.flash_count == result.before.flash_count + 1
    assert result.after.bitstream_id == result.before.bitstream_id
    assert card.reset().after.bitstream_id == RECIPES["A/csk0"].bitstream_id
    claimed, truth = card.report(), card.truth().values()
    assert {name: truth[name] for name in claimed.keys() & truth.keys()} == {
        name: claimed[name] for name in claimed.keys() & truth.keys()
    }
    assert claimed.keys() >= {"bitstream_id", "sr_root", "sr_cancelled", "flash_count", "boot_page"}


def test_a_refusal_has_its_code_in_the_kernel_log(emulated: Callable[[], CardDriver]) -> None:
    card = emulated()
    assert card.flash(build(RECIPES["root-key-A"]), "root-key-A", LANDS).after.sr_root
    card.reset()
    result = card.flash(build(RECIPES["unsigned"]), "unsigned", Promise("unchanged", ("0x11",)))
    assert (result.statement.result, result.statement.error) == ("failed", "hw-error")
    assert result.auth_code == "0x11"
    assert result.after.update_error == "programming:hw-error"


def test_a_signal_in_the_middle(emulated: Callable[[], CardDriver], small_lab: RunningLab) -> None:
    card = emulated()
    at_phase = in_phase(small_lab, "programming", lambda: card.signal("TERM"))
    result = card.flash(build(RECIPES["A/csk0"]), "A/csk0", LANDS, at_phase=at_phase)
    assert (result.statement.result, result.exit_code) == ("interrupted", 1)
    assert result.after.update_status == "idle"
    assert card.reset().after.bitstream_id == RECIPES["A/csk0"].bitstream_id


def test_a_second_updater_is_kept_out(
    emulated: Callable[[], CardDriver], small_lab: RunningLab, kept: Any
) -> None:
    card, other = emulated(), emulated()

    def second() -> None:
        with pytest.raises(RefusedError, match=r"An update of .* is running \(status transferring\)"):
            other.flash(build(RECIPES["A/csk1"]), "A/csk1", LANDS)

    at_phase = in_phase(small_lab, "transferring", second)
    result = card.flash(build(RECIPES["A/csk0"]), "A/csk0", LANDS, at_phase=at_phase)
    assert result.statement.result == "done"
    assert len(kept.of(Claim)) == 1
    assert card.reset().after.bitstream_id == RECIPES["A/csk0"].bitstream_id


def test_a_host_that_loses_its_power(
    emulated: Callable[[], CardDriver], small_lab: RunningLab, kept: Any
) -> None:
    card = emulated()
    at_phase = in_phase(
        small_lab, "transferring", lambda: small_lab.power("node1", "off", while_updating=True)
    )
    try:
        with pytest.raises(LinkLostError, match="link to node1 broke while flash"):
            card.flash(build(RECIPES["A/csk0"]), "A/csk0", LANDS, at_phase=at_phase)
    finally:
        small_lab.power("node1", "on")
    assert kept.of(Completion)[-1].how == "raised" and not kept.of(Claim)
    assert card.locate() == "0000:b2:00.0"


def test_a_card_that_moves(emulated: Callable[[], CardDriver], small_lab: RunningLab) -> None:
    card = emulated()
    assert small_lab.bench is not None
    small_lab.bench.moves_to(NAME, "0000:b3:00.0")
    assert card.reset().address == card.address == "0000:b3:00.0"

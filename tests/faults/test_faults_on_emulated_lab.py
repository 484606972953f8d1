"""Faults on an emulated card, by what can be read from it: points are met for certain, and undone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plans import lay_out

from harness.cards.driver import CardDriver
from harness.errors import HarnessError, LinkLostError
from harness.faults.injector import Injector
from harness.faults.second_updater import SecondUpdater
from harness.hosts.connect import connect
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.judgement.records import Fault
from harness.lab.running import RunningLab, start_lab
from harness.record.history import History
from harness.scenarios.promises import lands

ROOT_A = "root-key-A"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    folder = tmp_path_factory.mktemp("faults")
    lay_out(folder)
    with start_lab(load_inventory(folder / "inventory.yaml")) as running:
        yield running


@pytest.fixture(scope="module")
def image() -> Callable[[str], bytes]:
    recipes = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
    return lambda name: build(recipes[name])


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path / "history.jsonl") as kept:
        yield kept


@pytest.fixture
def card(lab: RunningLab, history: History) -> Iterator[CardDriver]:
    host, entry = lab.entry.card("one/card0")
    lab.bench.fit("one/card0", {})  # type: ignore[union-attr]
    driver = connect(host, lab.access("one"))
    yield CardDriver(driver, entry, history, real=False, settle=0.2)
    driver.close()


@pytest.fixture
def injector(card: CardDriver, lab: RunningLab, history: History) -> Iterator[Injector]:
    made = Injector(card, lab, history)
    yield made
    made.undo_all()


@pytest.fixture
def flash(card: CardDriver, injector: Injector, image: Callable[[str], bytes]) -> Callable[..., Any]:
    return lambda name="A/csk0": card.flash(image(name), name, lands("a document"), at_phase=injector.reached)


@pytest.mark.parametrize("point", ["preparing", "transferring", "programming", "authenticating", "copying"])
def test_the_card_is_in_the_phase_when_the_fault_strikes(
    card: CardDriver, lab: RunningLab, injector: Injector, flash: Callable[..., Any], point: str
) -> None:
    assert lab.bench is not None
    seen: list[Any] = []
    armed = injector.arm(point, "cancel")
    fire = armed.action.fire

    def look(*arguments: Any) -> str:
        seen.append((lab.bench.held("one/card0"), card.truth({"update_status"}).update_status))  # type: ignore[union-attr]
        return fire(*arguments)

    armed.action.fire = look  # type: ignore[method-assign]
    result = flash()
    status = "programming" if point in ("authenticating", "copying") else point
    assert seen == [(point, status)]
    # sysfs-class-firmware: cancel ends an update until the device programs; afterwards it has no effect.
    ended = point in ("preparing", "transferring")
    assert result.after.update_error == (f"{point}:user-abort" if ended else "")
    assert lab.bench.held("one/card0") is None


def test_power_cut_and_return(
    card: CardDriver, lab: RunningLab, injector: Injector, flash: Callable[..., Any]
) -> None:
    before = card.truth().boot_id
    injector.arm("transferring", "power-cut")
    with pytest.raises(LinkLostError):
        flash()
    assert injector.cut_the_link
    injector.undo()
    assert card.truth().boot_id != before
    assert card.truth().update_status == "idle"


@pytest.mark.parametrize("name", ["busy", "all-ones", "no-security-group", "ignore-upload"])
def test_a_circumstance_is_gone_after_its_undo(
    injector: Injector, flash: Callable[..., Any], name: str
) -> None:
    injector.arm("start", name)
    assert not _lands(flash)
    injector.undo_all()
    assert _lands(flash)


def _lands(flash: Callable[..., Any]) -> bool:
    """Return whether a flash goes well, as far as its error and the flash counter tell."""
    try:
        result = flash()
    except HarnessError:
        return False
    before, after = result.before.flash_count, result.after.flash_count
    counted = isinstance(before, int) and isinstance(after, int) and after == before + 1
    return counted and result.after.update_error == ""


def test_a_card_moves_at_its_next_reset_and_not_after_the_undo(card: CardDriver, injector: Injector) -> None:
    at = card.address
    injector.arm("start", "move")
    assert card.reset().address == "0000:b1:00.0"
    injector.undo_all()
    assert card.reset().address in (at, "0000:b1:00.0")


def test_the_injectors_own_acts_are_in_the_history(
    history: History, injector: Injector, flash: Callable[..., Any]
) -> None:
    injector.arm("transferring", "cancel")
    flash()
    injector.undo_all()
    faults = [record for record in history.records if isinstance(record, Fault)]
    assert [(r.state, r.detail) for r in faults] == [
        ("armed", ""),
        ("fired", "wrote 1 to the update's cancel attribute"),
        ("undone", ""),
    ]
    assert all(r.subject.name == "one/card0" for r in faults)


def test_a_second_updater_is_told_to_be_busy_and_the_first_one_goes_on(
    lab: RunningLab, card: CardDriver, history: History, image: Callable[[str], bytes]
) -> None:
    """EBUSY: Linux, drivers/base/firmware_loader/sysfs_upload.c; what it says is errno(3)'s."""
    injector = Injector(card, lab, history)
    other = SecondUpdater("tampered-payload", image("tampered-payload"))
    injector.arm("transferring", "second-updater", other)
    result = card.flash(image(ROOT_A), ROOT_A, lands("a document"), at_phase=injector.reached)
    injector.undo_all()
    assert (result.statement.result, result.after.sr_root != "") == ("done", True)
    assert result.after.flash_count == 1, "one update began, not two"
    fired = next(r for r in history.records if isinstance(r, Fault) and r.state == "fired")
    assert fired.detail == "a second updater wanted to write tampered-payload: Device or resource busy"
    assert other.let_in == ""


def test_a_second_updater_where_none_updates_is_let_in(
    lab: RunningLab, card: CardDriver, image: Callable[[str], bytes]
) -> None:
    """It is no refusal of its own: where the driver is idle it begins, and wears the card."""
    assert lab.bench is not None
    assert lab.bench.second_update("one/card0", image("unsigned")) == ""
    lab.bench.pass_time(300)
    assert card.truth().flash_count == 1

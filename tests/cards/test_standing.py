"""Before a card is written to: it is the card of the inventory, it does not update, it is not worn enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cards import FileCard, Programs, add_card

from harness.cards.driver import CardDriver
from harness.errors import RefusedError
from harness.hosts.local import LocalHost
from harness.images.recipes import build, load_recipes
from harness.inventory.model import Wear
from harness.judgement.records import Completion, Promise
from harness.leases.hold import held

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
IMAGE = build(RECIPES["A/csk0"])
LANDS = Promise("lands", source="test")
GENERATIONS = ("A", "B", "C", "D")
MAC, OTHER = "64:4c:36:00:12:a0", "64:4c:36:00:99:99"
#: Where each generation has its counter (n3000.md 4.1).
COUNTERS = {"A": "qspi_flash_count", "B": "user_flash_count", "C": "flash_count", "D": "flash_count"}
#: And where an update's status, for those that show one.
STATUS = {"B": "sec/update/status", "D": "sec/firmware/secure-update0/status"}


class Watched(LocalHost):
    """This machine; every command that had a permit is kept."""

    def __init__(self, *, tools: dict[str, str]) -> None:
        super().__init__("bench", tools=tools)
        self.acts: list[str] = []

    def run(self, argv: Any, *, permit: Any = None, **options: Any) -> Any:
        if permit is not None:
            self.acts.append(permit.act)
        return super().run(argv, permit=permit, **options)

    def put(self, source: Any, path: str, *, permit: Any, deadline: float = 600.0) -> None:
        self.acts.append(permit.act)
        super().put(source, path, permit=permit, deadline=deadline)


@pytest.fixture(autouse=True)
def firmware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the test's own for the kernel's, which not every machine has or lets one write to."""
    (tmp_path / "firmware").mkdir()
    for module in ("gate", "driver"):
        monkeypatch.setattr(f"harness.cards.{module}.FIRMWARE_FOLDER", str(tmp_path / "firmware"))


@pytest.fixture(params=GENERATIONS)
def card(request: pytest.FixtureRequest, sysfs: Path) -> FileCard:
    return add_card(sysfs, generation=request.param)


@pytest.fixture
def host(programs: Programs) -> Watched:
    return Watched(tools=programs.tools)


@pytest.fixture
def make(
    host: Watched, kept: Any, entry: Any, programs: Programs, tmp_path: Path
) -> Callable[..., CardDriver]:
    def driver(**given: Any) -> CardDriver:
        return CardDriver(
            host, entry(**given), kept, real=False, sysfs=str(programs.sysfs), tools=programs.tools,
            upload_dir=str(tmp_path), locks=str(programs.folder), settle=0.1,
        )  # fmt: skip

    return driver


def acts(driver: CardDriver, generation: str) -> list[Callable[[], object]]:
    """Everything that writes to a card; A and C are not written to without the vendor's tool."""
    found: list[Callable[[], object]] = [lambda: driver.flash(IMAGE, "A/csk0", LANDS), lambda: driver.reset()]
    if generation in STATUS:
        found.append(lambda: driver.upload(IMAGE, "A/csk0", LANDS))
    return found


def assert_all_refused(driver: CardDriver, card: FileCard, host: Watched, kept: Any, match: str) -> None:
    tried = acts(driver, card.generation)
    for act in tried:
        with pytest.raises(RefusedError, match=match):
            act()
    assert host.acts == []
    assert card.file(f"sec/security/{COUNTERS[card.generation]}").read_text() == "12\n"
    assert [done.error["kind"] for done in kept.of(Completion)] == ["refused"] * len(tried)


def test_another_card_at_the_address(make: Any, card: FileCard, host: Watched, kept: Any) -> None:
    card.write("bmc/mac_address", f"{OTHER}\n")
    assert_all_refused(
        make(), card, host, kept, f"{MAC} in the inventory, but at 0000:b2:00.0 {OTHER} answers"
    )


@pytest.mark.parametrize("text", ["ff:ff:ff:ff:ff:ff\n", "", "no address\n"])
@pytest.mark.parametrize("identity", [MAC, None])
def test_a_card_that_cannot_be_told(
    make: Any, card: FileCard, host: Watched, kept: Any, text: str, identity: str | None
) -> None:
    card.write("bmc/mac_address", text)
    assert_all_refused(make(identity=identity), card, host, kept, "Which card stands .* cannot be read")


def test_a_card_that_was_exchanged_since_it_was_read(
    make: Any, card: FileCard, host: Watched, kept: Any
) -> None:
    """The inventory does not say who it is; the run has learned it."""
    driver = make(identity=None)
    driver.truth()
    card.write("bmc/mac_address", f"{OTHER}\n")
    assert_all_refused(driver, card, host, kept, "as it was read before, but at")


@pytest.mark.parametrize("act", ["flash", "reset"])
def test_cards_that_change_places_between_the_look_and_the_act(
    make: Any, card: FileCard, host: Watched, programs: Programs, act: str
) -> None:
    """The host looks once more, as the very command begins."""
    driver, run = make(), host.run

    def exchanging(argv: Any, *, permit: Any = None, **options: Any) -> Any:
        if permit is not None and permit.act in ("flash", "reset"):
            card.write("bmc/mac_address", f"{OTHER}\n")
        return run(argv, permit=permit, **options)

    host.run = exchanging  # type: ignore[method-assign]
    with pytest.raises(RefusedError, match="no longer what stands at"):
        driver.flash(IMAGE, "A/csk0", LANDS) if act == "flash" else driver.reset()
    assert card.file(f"sec/security/{COUNTERS[card.generation]}").read_text() == "12\n"
    assert not (programs.folder / "seen.json").exists()


@pytest.mark.parametrize("card", sorted(STATUS), indirect=True)
@pytest.mark.parametrize("status", ["preparing", "programming"])
def test_a_card_that_updates(make: Any, card: FileCard, host: Watched, kept: Any, status: str) -> None:
    card.write(STATUS[card.generation], f"{status}\n")
    assert_all_refused(make(), card, host, kept, rf"An update of bench/card0 is running \(status {status}\)")


def test_a_card_that_somebody_holds(
    make: Any, card: FileCard, programs: Programs, host: Watched, kept: Any
) -> None:
    import subprocess

    argv = held(["sh", "-c", "echo here; read gone"], MAC, str(programs.folder))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "here\n"
        for act in acts(make(), card.generation):
            with pytest.raises(RefusedError, match=rf"in use: process {other.pid} "):
                act()
        other.kill()
    assert card.file(f"sec/security/{COUNTERS[card.generation]}").read_text() == "12\n"
    assert {done.error["kind"] for done in kept.of(Completion)} == {"refused"}


# -- wear ---------------------------------------------------------------------------------------------


def test_a_card_at_its_limit_takes_no_further_update(
    make: Any, card: FileCard, host: Watched, kept: Any
) -> None:
    driver = make(wear=Wear(flash_count=12))
    with pytest.raises(RefusedError, match=r"budget of 12 updates is used up \(flash counter 12\)"):
        driver.flash(IMAGE, "A/csk0", LANDS)
    assert host.acts == [] and kept.of(Completion)[-1].error["kind"] == "refused"
    assert driver.used_up().startswith("its budget of 12 updates")
    driver.reset()  # wears nothing


def test_the_counter_is_read_before_each_update(
    make: Any, programs: Programs, sysfs: Path, kept: Any
) -> None:
    add_card(sysfs)
    driver = make(wear=Wear(flash_count=14))
    assert [driver.flash(IMAGE, "x", LANDS).after.flash_count for _ in range(2)] == [13, 14]
    with pytest.raises(RefusedError, match="flash counter 14"):
        driver.flash(IMAGE, "x", LANDS)


def test_a_run_has_a_budget_of_its_own(make: Any, sysfs: Path, host: Watched) -> None:
    add_card(sysfs)
    driver = make(wear=Wear(per_run=1))
    driver.flash(IMAGE, "x", LANDS)
    with pytest.raises(RefusedError, match="budget of 1 updates in a run is used up"):
        driver.flash(IMAGE, "x", LANDS)


def test_a_counter_that_cannot_be_read_is_no_budget_left(
    make: Any, card: FileCard, host: Watched, kept: Any
) -> None:
    card.write(f"sec/security/{COUNTERS[card.generation]}", "a lot\n")
    with pytest.raises(RefusedError, match="its flash counter cannot be read"):
        make(wear=Wear(flash_count=900)).flash(IMAGE, "x", LANDS)
    assert host.acts == []

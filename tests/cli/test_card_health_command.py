"""`hil card quarantine` and `clear`: runs are kept from a card, a look lets them have it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plans import lay_out
from typer.testing import CliRunner

from harness.cli import root
from harness.errors import BlockedError, ConfigurationError, HarnessError
from harness.inventory.load import load_inventory
from harness.lab.background import background_lab
from harness.lab.bench import Bench

Hil = Callable[..., Any]


@pytest.fixture
def hil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hil:
    """Run `hil` here, in a project of its own; its result has what `hil` would tell as its exception."""
    monkeypatch.setenv("HIL_LEASES", f"sqlite:///{tmp_path}/leases.sqlite")
    monkeypatch.delenv("HIL_INVENTORY", raising=False)
    monkeypatch.chdir(tmp_path)
    lay_out(tmp_path)
    return lambda *words: CliRunner().invoke(root, [*words])


def listed(hil: Hil, card: str) -> dict[str, Any]:
    cards = json.loads(hil("card", "list", "-o", "json").stdout)
    found: dict[str, Any] = next(one for one in cards if one["name"] == card)
    return found


@pytest.mark.parametrize(("words", "state"), [((), "quarantined"), (("--maintenance",), "maintenance")])
def test_a_person_keeps_runs_from_a_card(hil: Hil, words: tuple[str, ...], state: str) -> None:
    done = hil("card", "quarantine", "one/card0", "--reason", "new cable", *words)
    assert done.exit_code == 0
    assert "hil card clear one/card0" in done.stdout
    assert "hil lab up small" in done.stdout, "a lab that does not run has nobody who heeds it"
    found = listed(hil, "one/card0")
    assert (found["health"], found["reason"]) == (state, "new cable")
    assert "@" in found["by"]
    assert found["since"] > 0
    assert listed(hil, "two/card0")["health"] == "good"
    table = hil("card", "list").stdout
    assert ": new cable\n" in table


def test_what_is_good_is_not_cleared(hil: Hil) -> None:
    told = hil("card", "clear", "one/card0", "--reason", "x", "--force").exception
    assert isinstance(told, ConfigurationError)
    assert "one/card0 is good; there is nothing to clear" in told.message


def test_a_card_is_cleared_once_its_checks_are_clean_and_its_past_is_shown(hil: Hil, tmp_path: Path) -> None:
    inventory = load_inventory(tmp_path / "inventory.yaml")
    lab = background_lab(inventory)
    doors = lab.up(inventory)
    bench = Bench(doors.control)
    try:
        assert hil("card", "quarantine", "one/card0", "--reason", "drops off").exit_code == 0
        for refused in (("flash", "one/card0", "A/csk0"), ("reset", "one/card0")):
            told = hil("card", *refused).exception
            assert isinstance(told, BlockedError)
            assert "one/card0 is quarantined since " in told.message
            assert "drops off" in told.message
            assert "hil card clear one/card0" in told.hint
        bench.power("one", "off")
        away = hil("card", "clear", "one/card0", "--reason", "hopeful").exception
        assert isinstance(away, HarnessError)
        assert away.exit_code == 3
        assert listed(hil, "one/card0")["health"] == "quarantined"
        bench.power("one", "on")
        assert (
            hil("card", "clear", "one/card0", "--reason", "cable exchanged").stdout == "one/card0 is good.\n"
        )
        assert hil("card", "reset", "one/card0").exit_code == 0
        shown = json.loads(hil("card", "show", "one/card0", "-o", "json").stdout)["health"]
        assert (shown["state"], shown["reason"]) == ("good", "cable exchanged")
        assert [(step["event"], step["after"]) for step in shown["history"]] == [
            ("clear", "good"),
            ("quarantine", "quarantined"),
        ]
        assert "health               good since " in hil("card", "show", "one/card0").stdout
    finally:
        lab.down(forget=True)


def test_what_is_said_of_a_card_during_the_look_is_not_cleared(
    hil: Hil, monkeypatch: pytest.MonkeyPatch
) -> None:
    hil("card", "quarantine", "one/card0", "--reason", "new cable")

    def looked(*_: object) -> tuple[()]:
        hil("card", "quarantine", "one/card0", "--reason", "smoke")
        return ()

    monkeypatch.setattr("harness.cli.card_health._looked", looked)
    told = hil("card", "clear", "one/card0", "--reason", "cable exchanged").exception
    assert isinstance(told, BlockedError)
    assert "changed meanwhile" in told.message
    assert (listed(hil, "one/card0")["health"], listed(hil, "one/card0")["reason"]) == (
        "quarantined",
        "smoke",
    )


def test_by_force_a_card_is_suspect_until_somebody_looked(hil: Hil) -> None:
    hil("card", "quarantine", "one/card0", "--reason", "x")
    assert hil("card", "clear", "one/card0", "--reason", "y", "--force").stdout == "one/card0 is suspect.\n"
    assert listed(hil, "one/card0")["health"] == "suspect"


def test_a_card_that_there_is_not_is_told_with_the_nearest(hil: Hil) -> None:
    told = hil("card", "quarantine", "one/card7", "--reason", "x").exception
    assert isinstance(told, ConfigurationError)
    assert "card0" in told.hint

"""What each action does, undoes, and where it cannot be done."""

from typing import Any

import pytest

from harness.errors import BlockedError, ConfigurationError, NotOfferedError
from harness.faults.actions import action, moved_address

CIRCUMSTANCES = ("busy", "all-ones", "no-security-group", "stays-away", "ignore-upload")
MOMENTARY = ("sigterm", "sigint", "cancel")


@pytest.mark.parametrize(
    ("name", "fires", "undoes"),
    [
        ("sigterm", [("signal", "TERM")], []),
        ("sigint", [("signal", "INT")], []),
        ("cancel", [("cancel",)], []),
        ("power-cut", [("power", "off")], [("power", "on"), ("close",), ("locate",)]),
        ("reboot", [("power", "reboot")], [("close",), ("locate",)]),
        ("move", [("moves-to", "0000:b1:00.0")], [("moves-to", None)]),
        *((name, [("condition", name, True)], [("condition", name, False)]) for name in CIRCUMSTANCES),
    ],
)
def test_action_and_its_undo(fakes: Any, name: str, fires: list[Any], undoes: list[Any]) -> None:
    chosen = action(name)
    detail = chosen.fire(fakes, fakes.lab)
    assert fakes.asked == fires
    assert detail
    fakes.asked.clear()
    chosen.undo(fakes, fakes.lab)
    assert fakes.asked == undoes


def test_only_power_takes_the_host_away() -> None:
    names = (*MOMENTARY, *CIRCUMSTANCES, "move", "power-cut", "reboot")
    cutting = {name for name in names if action(name).cuts_the_link}
    assert cutting == {"power-cut", "reboot"}


def test_each_is_a_fresh_one() -> None:
    assert action("power-cut") is not action("power-cut")


def test_unknown_action_is_told_with_what_is_known() -> None:
    with pytest.raises(ConfigurationError, match="'powercut'") as caught:
        action("powercut")
    assert caught.value.hint == "Did you mean 'power-cut'?"
    with pytest.raises(ConfigurationError) as caught:
        action("zzz")
    for name in (*MOMENTARY, *CIRCUMSTANCES, "move", "power-cut", "reboot"):
        assert name in caught.value.hint


@pytest.mark.parametrize("name", MOMENTARY)
def test_at_the_start_nothing_runs_that_could_be_interrupted(fakes: Any, name: str) -> None:
    with pytest.raises(ConfigurationError, match="Nothing runs at the point 'start'"):
        action(name).check("start", fakes, fakes.lab)
    action(name).check("programming", fakes, fakes.lab)


@pytest.mark.parametrize(
    ("capabilities", "possible"),
    [
        ({"power", "bench"}, {"power-cut", "reboot", "move", *CIRCUMSTANCES, *MOMENTARY}),
        ({"power"}, {"power-cut", *MOMENTARY}),
        ({"bench"}, {"move", *CIRCUMSTANCES, *MOMENTARY}),
        (set(), {*MOMENTARY}),
    ],
)
def test_what_the_lab_cannot_do_is_told_before_anything_begins(
    fakes: Any, capabilities: set[str], possible: set[str]
) -> None:
    fakes.capabilities = capabilities
    found = set()
    for name in ("power-cut", "reboot", "move", *CIRCUMSTANCES, *MOMENTARY):
        try:
            action(name).check("programming", fakes, fakes.lab)
        except NotOfferedError as error:
            assert name not in ("power-cut", *MOMENTARY), "only a bench is what a lab can never have"
            assert "that takes an emulated host" in error.message
        except BlockedError as error:
            assert name in ("power-cut", "reboot") and error.hint
        else:
            found.add(name)
    assert found == possible
    assert fakes.asked == []


def test_a_card_moves_one_bus_down() -> None:
    # starlingx/config 275cc2314: b3:00.0 came back as b2:00.0
    assert moved_address("0000:b3:00.0") == "0000:b2:00.0"
    assert moved_address("0001:10:1f.7") == "0001:0f:1f.7"
    with pytest.raises(ConfigurationError, match="no bus below"):
        moved_address("0000:00:02.0")


def test_an_update_by_ioctl_cannot_be_cancelled(fakes: Any) -> None:
    fakes.capabilities.add("ioctl")
    with pytest.raises(NotOfferedError, match="an ioctl"):
        action("cancel").check("programming", fakes, fakes.lab)
    assert fakes.asked == [], "the card was not touched"

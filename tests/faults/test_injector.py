"""Arming, firing and undoing, whatever fails meanwhile; and that all of it is in the history."""

import signal
from typing import Any

import pytest

from harness.errors import BlockedError, ConfigurationError, InfrastructureError, NotOfferedError
from harness.faults.injector import Injector


@pytest.fixture
def injector(fakes: Any) -> Injector:
    return Injector(fakes, fakes.lab, fakes)


def without_history(fakes: Any) -> list[Any]:
    """Return what was asked for but the history's records."""
    return [words for words in fakes.asked if words[0] not in ("armed", "fired", "undone", "not-reached")]


def test_a_point_is_held_then_struck_then_let_go(fakes: Any, injector: Injector) -> None:
    injector.arm("transferring", "cancel")
    assert injector.waits_for == "transferring"
    for phase in ("waiting", "preparing"):
        injector.reached(phase)
    assert fakes.asked == [("armed", "cancel"), ("hold", "transferring")]
    injector.reached("transferring")
    assert fakes.asked[2:] == [("wait", "transferring"), ("cancel",), ("fired", "cancel"), ("release",)]
    assert injector.waits_for == ""
    injector.reached("transferring")
    injector.reached("programming")
    assert len(fakes.asked) == 6, "it strikes once"


@pytest.mark.parametrize("point", ["authenticating", "copying"])
def test_points_that_only_the_card_tells_apart_come_while_the_tool_says_programming(
    fakes: Any, injector: Injector, point: str
) -> None:
    injector.arm(point, "sigterm")
    injector.reached("transferring")
    assert ("signal", "TERM") not in fakes.asked
    injector.reached("programming")
    assert without_history(fakes) == [("hold", point), ("wait", point), ("signal", "TERM"), ("release",)]


def test_on_a_real_card_it_strikes_when_the_tool_says_so(fakes: Any, injector: Injector) -> None:
    fakes.capabilities.remove("bench")
    injector = Injector(fakes, fakes.lab, fakes)
    injector.arm("transferring", "sigterm")
    injector.reached("transferring")
    assert without_history(fakes) == [("signal", "TERM")]
    with pytest.raises(NotOfferedError, match="Only a bench can tell the phase 'copying'"):
        injector.arm("copying", "cancel")
    injector.undo_all()
    assert fakes.states == [
        ("sigterm", "transferring", "armed"),
        ("sigterm", "transferring", "fired"),
        ("sigterm", "transferring", "undone"),
    ]


def test_at_the_start_it_strikes_at_once_and_nothing_is_held(fakes: Any, injector: Injector) -> None:
    injector.arm("start", "busy")
    assert fakes.asked == [("armed", "busy"), ("condition", "busy", True), ("fired", "busy")]
    injector.undo_all()
    assert fakes.asked[3:] == [("condition", "busy", False), ("undone", "busy")]


def test_several_points_are_held_one_after_the_other_in_the_order_of_the_update(
    fakes: Any, injector: Injector
) -> None:
    injector.arm("copying", "sigterm")
    injector.arm("preparing", "busy")
    injector.arm("authenticating", "cancel")
    held = [words[1] for words in fakes.asked if words[0] == "hold"]
    assert held == ["copying", "preparing", "preparing"]
    fakes.asked.clear()
    for phase in ("waiting", "preparing", "transferring", "programming"):
        injector.reached(phase)
    assert without_history(fakes) == [
        *(("wait", "preparing"), ("condition", "busy", True), ("hold", "authenticating")),
        *(("wait", "authenticating"), ("cancel",), ("hold", "copying")),
        *(("wait", "copying"), ("signal", "TERM"), ("release",)),
    ]


def test_a_point_that_never_comes_is_not_reached_and_lets_go(fakes: Any, injector: Injector) -> None:
    fakes.never = {"copying"}
    injector.arm("copying", "cancel")
    injector.reached("programming")
    assert ("cancel",) not in fakes.asked
    injector.settle()
    injector.settle()
    assert fakes.states == [("cancel", "copying", "armed"), ("cancel", "copying", "not-reached")]
    injector.undo_all()
    assert fakes.asked[-1] == ("release",)
    assert len(fakes.states) == 2, "what did not strike is not undone"


def test_what_cannot_be_done_is_not_armed(fakes: Any, injector: Injector) -> None:
    fakes.capabilities.discard("power")
    for point, name, error in (
        ("programming", "power-cut", BlockedError),
        ("start", "sigterm", ConfigurationError),
        ("nowhere", "sigterm", ConfigurationError),
        ("programming", "nothing", ConfigurationError),
    ):
        with pytest.raises(error):
            injector.arm(point, name)
    assert fakes.asked == []
    injector.undo_all()
    assert fakes.asked == []


def test_newest_is_undone_first_and_each_is_tried(fakes: Any, injector: Injector) -> None:
    injector.arm("start", "busy")
    injector.arm("start", "all-ones")
    injector.arm("start", "move")
    fakes.failing = {"moves-to"}
    fakes.asked.clear()
    with pytest.raises(InfrastructureError, match="moves-to failed"):
        injector.undo_all()
    assert without_history(fakes) == [
        ("moves-to", None),
        ("condition", "all-ones", False),
        ("condition", "busy", False),
    ]
    assert [state for state in fakes.states if state[2] == "undone"] == [
        ("all-ones", "start", "undone"),
        ("busy", "start", "undone"),
    ]
    fakes.failing = set()
    injector.undo_all()
    assert fakes.states[-1] == ("move", "start", "undone"), "it is tried again, and only that"
    assert without_history(fakes)[3:] == [("moves-to", None)]


def test_an_action_that_failed_halfway_is_undone_too(fakes: Any, injector: Injector) -> None:
    fakes.failing = {"condition"}
    with pytest.raises(InfrastructureError):
        injector.arm("start", "busy")
    fakes.failing = set()
    fakes.asked.clear()
    injector.undo_all()
    assert without_history(fakes) == [("condition", "busy", False)]
    assert not [state for state in fakes.states if state[2] in ("fired", "undone")]


def test_undo_in_between_leaves_what_still_waits(fakes: Any, injector: Injector) -> None:
    injector.arm("start", "busy")
    injector.arm("programming", "sigterm")
    injector.undo()
    assert injector.waits_for == "programming"
    assert fakes.states[-1] == ("busy", "start", "undone")
    injector.reached("programming")
    assert ("signal", "TERM") in fakes.asked
    injector.undo_all()
    assert [state[0] for state in fakes.states if state[2] == "undone"] == ["busy", "sigterm"]


def test_power_that_was_cut_is_known_until_it_is_back(fakes: Any, injector: Injector) -> None:
    injector.arm("transferring", "power-cut")
    assert not injector.cut_the_link
    injector.reached("transferring")
    assert injector.cut_the_link
    fakes.failing = {"locate"}
    with pytest.raises(InfrastructureError, match="locate failed"):
        injector.undo()
    assert injector.cut_the_link
    fakes.failing = set()
    injector.undo_all()
    assert not injector.cut_the_link
    assert [words[1] for words in fakes.asked if words[0] == "power"] == ["off", "on", "on"]


def test_ctrl_c_waits_for_the_undo(fakes: Any, injector: Injector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fakes, "locate", lambda: signal.raise_signal(signal.SIGINT), raising=False)
    injector.arm("start", "busy")
    injector.arm("transferring", "power-cut")
    injector.reached("transferring")
    with pytest.raises(KeyboardInterrupt):
        injector.undo_all()
    assert {state[0] for state in fakes.states if state[2] == "undone"} == {"busy", "power-cut"}

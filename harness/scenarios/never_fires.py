"""Faults of a scenario file that can never fire, as far as its steps tell: what `hil scenario check` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.faults.actions import Momentary, Note, action
from harness.faults.second_updater import NAME
from harness.scenarios.files import Call, ScenarioFile

if TYPE_CHECKING:
    from harness.judgement.records import Promise

#: Steps that arm something on the next update.
_ARMING = ("fault", NAME)
#: The phase in which a card takes over what it has accepted.
_COPYING = "copying"


def never_fires(scenario: ScenarioFile) -> list[str]:
    """Return what is armed in vain, each with file and line: at run time such a point is NOT_REACHED."""
    found = (text for variant in scenario.variants for text in _in_vain(list(_in_order(variant.calls))))
    return list(dict.fromkeys(found))


def _in_vain(calls: list[Call]) -> Iterator[str]:
    waiting: list[Call] = []
    for call in calls:
        if call.step.name in _ARMING:
            if why := _senseless(call):
                yield _told(call, why)
            elif call.arguments["at"] != "start":
                waiting.append(call)
        elif call.step.name == "flash":
            for each in waiting:
                if why := _not_passed(each, call):
                    yield _told(each, why)
            waiting = []
        elif call.step.name == "push" and (why := _strikes_elsewhere(call)):
            yield f"{call.place}: push: {why}"
    for each in waiting:
        yield _told(each, "no flash follows it, and only an update comes to such a point")


def _told(call: Call, why: str) -> str:
    what = " ".join(filter(None, (call.arguments.get("action"), f"at {call.arguments['at']}")))
    return f"{call.place}: {call.step.name}: {what} never fires: {why}"


def _senseless(call: Call) -> str:
    interrupts = True
    if call.step.name == "fault":
        made = action(call.arguments["action"])
        interrupts = isinstance(made, Momentary) and not isinstance(made, Note)
    if call.arguments["at"] == "start" and interrupts:
        return "nothing runs at the point start that it could interrupt"
    return ""


def _not_passed(fault: Call, flash: Call) -> str:
    """Return why the update does not come to the fault's point, if its promise tells."""
    promise: Promise = flash.arguments["promise"]
    if flash.arguments.get("by") == "firmware-upload":
        return f"the flash that follows ({flash.place}) is by firmware-upload, which announces no phase"
    if fault.arguments["at"] == _COPYING and promise.effect == "unchanged" and promise.codes:
        return f"the flash that follows ({flash.place}) is refused before the card copies anything"
    return ""


def _strikes_elsewhere(call: Call) -> str:
    from harness.faults.registry_actions import registry_action
    from harness.faults.registry_points import FaultPoint

    at, name = call.arguments.get("at"), call.arguments.get("action")
    if not at or not name:
        return ""
    strikes_in = registry_action(str(name)).strikes_in
    point = FaultPoint.parse(str(at))
    if strikes_in is None or (point.when, point.step) == ("before", strikes_in):
        return ""
    return f"{name} at {at} never fires: it strikes only at before:{strikes_in}"


def _in_order(calls: tuple[Call, ...]) -> Iterator[Call]:
    """Yield the steps in the order in which they are taken, those within others first."""
    for call in calls:
        for value in call.arguments.values():
            if isinstance(value, tuple) and value and isinstance(value[0], Call):
                yield from _in_order(value)
        yield call

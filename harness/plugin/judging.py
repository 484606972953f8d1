"""Holds a pytest item to what its scenario states, before its teardown, and tells run states apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from harness.errors import BlockedError, HarnessError, Kind
from harness.health.states import Event
from harness.judgement.model import RunState
from harness.plugin.health import SAID, said_by
from harness.plugin.scenario import SCENARIO, Scenario, device_of, new_scenario
from harness.plugin.session import SESSION

if TYPE_CHECKING:
    from harness.judgement.judge import ScenarioJudgement

#: Names of user properties: what a report of pytest, and JUnit XML made of it, carries of a scenario.
DEVICE, OUTCOME, VERDICT, AS_STATED, STATE, CAUSE, LEFT = (
    *("device", "outcome", "verdict", "as_stated"),
    *("run_state", "cause", "teardown"),
)
_EXIT_OF_STATE = {"INFRA": 3, "BLOCKED": 3, "REFUSED": 4, "BUG": 5}


@dataclass
class Failure:
    """Whether the scenario of an item failed; set when it was judged, read by the restore of its card."""

    failed: bool = False


FAILURE = pytest.StashKey[Failure]()
_STATED = pytest.StashKey[str]()


def conclude(item: pytest.Item, error: BaseException | None) -> BaseException | None:
    """End and judge the scenario of ``item`` once its setup failed or its call is over.

    :param error: what its setup or call raised.
    :returns: what pytest should see raised: ``error`` itself, a skip where the scenario does not apply, a
        failure where it is not as stated. None where all is well.
    """
    if isinstance(error, (KeyboardInterrupt, pytest.exit.Exception)):
        if (scenario := item.stash.get(SCENARIO, None)) is not None:
            state, reason = state_of(error)
            scenario.end(state, reason)
            item.stash[SAID] = (Event.DOUBT, reason)
        return error
    scenario = _scenario_of(item, failed=error is not None)
    if scenario is None and not _asks_for_lab(item):
        return error
    if error is not None and isinstance(error, pytest.skip.Exception):
        error = BlockedError(f"skipped: {error.msg}")
    state, reason = state_of(error)
    judgement = _judged(item, scenario, state, reason) if scenario is not None else None
    _describe(item, judgement, state, error)
    if (said := said_by(error, state, reason, judgement)) is not None:
        item.stash[SAID] = said
    told = _raised(error, judgement, state, reason)
    if told is not None and state != RunState.NOT_APPLICABLE:
        item.stash.setdefault(FAILURE, Failure()).failed = True
    _stop_without_history(item)
    return told


def _scenario_of(item: pytest.Item, *, failed: bool) -> Scenario | None:
    """Return the scenario of ``item``; one that failed before it began begins now, so that it is listed."""
    scenario = item.stash.get(SCENARIO, None)
    if scenario is not None:
        return scenario if scenario.begun else None
    if not failed or "hil_scenario" not in getattr(item, "fixturenames", ()):
        return None
    try:
        scenario = new_scenario(item, item.config.stash[SESSION])
        scenario.begin()
    except HarnessError:
        return None  # what kept it from beginning is what its setup failed with, too
    return scenario


def _judged(item: pytest.Item, scenario: Scenario, state: str, reason: str) -> ScenarioJudgement:
    scenario.end(state, reason)
    judgement = scenario.judge()
    item.config.hook.pytest_hil_scenario_judged(item=item, judgement=judgement)
    return judgement


def _raised(
    error: BaseException | None, judgement: ScenarioJudgement | None, state: str, reason: str
) -> BaseException | None:
    if state == RunState.NOT_APPLICABLE:
        return pytest.skip.Exception(reason, _use_item_location=True)
    if error is None and judgement is not None and not judgement.as_stated:
        return pytest.fail.Exception(
            "\n".join(f"not as stated: {why}" for why in judgement.reasons), pytrace=False
        )
    return error


def _stop_without_history(item: pytest.Item) -> None:
    """End the run where its history cannot be written: what follows would be judged from nothing."""
    failure = item.config.stash[SESSION].not_recorded
    if failure is not None:
        item.session.shouldstop = failure.message


def _describe(
    item: pytest.Item, judgement: ScenarioJudgement | None, state: str, error: BaseException | None
) -> None:
    """Put what is known of the scenario where reports of pytest take it from."""
    found = item.user_properties
    if device := device_of(item):
        found.append((DEVICE, device))
    if judgement is not None:
        if judgement.outcome is not None:
            found.append((OUTCOME, judgement.outcome.value))
        found += [(f"{VERDICT}.{name}", kind.value) for name, kind in judgement.verdicts.items()]
    if state in RunState.__members__:
        found.append((STATE, state))
        item.stash[_STATED] = f"{state}: {error}"
        if isinstance(error, HarnessError):
            found.append((CAUSE, error.kind.value))
    elif judgement is not None:
        found.append((AS_STATED, "yes" if judgement.as_stated else "no"))


def shown(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Let ``report`` say a run state in its own words, and quarantine a card whose teardown failed."""
    error = call.excinfo.value if call.excinfo is not None else None
    if call.when == "teardown":
        if error is not None and not isinstance(error, pytest.skip.Exception):
            _left_behind(item, report, error)
        return
    state = run_state_of(report)
    if report.failed and state in ("INFRA", "BLOCKED", "REFUSED"):
        report.longrepr = item.stash[_STATED]


def _left_behind(item: pytest.Item, report: pytest.TestReport, error: BaseException) -> None:
    device, session = device_of(item), item.config.stash[SESSION]
    if not _asks_for_lab(item):
        return
    state, _ = state_of(error)
    report.user_properties.append((LEFT, state))
    if isinstance(error, HarnessError):
        report.longrepr = f"the teardown failed: {error}"
    if "/" in device:
        session.quarantine(device, f"the teardown of {item.nodeid} failed: {_first_line(error)}")


def state_of(error: BaseException | None) -> tuple[str, str]:
    """Return the run state and the reason that an exception of a scenario stands for."""
    from harness.scenarios import states

    if isinstance(error, pytest.exit.Exception):
        return states.state_of(KeyboardInterrupt())
    return states.state_of(AssertionError(error.msg) if isinstance(error, pytest.fail.Exception) else error)


def exit_codes_of(report: pytest.TestReport) -> frozenset[int]:
    """Return the exit codes of `hil run` that a single report gives cause for."""
    if str(report.when) == "???":  # how xdist reports a worker that died
        return frozenset({5})
    said = dict(report.user_properties)
    if report.when == "teardown":
        state = str(said.get(LEFT, ""))
    else:
        state = str(said.get(STATE, ""))
        if said.get(CAUSE) == Kind.CONFIGURATION.value and report.failed:
            return frozenset({2, _EXIT_OF_STATE.get(state, 2)})
    if not report.failed:
        return frozenset()
    return frozenset({_EXIT_OF_STATE.get(state, 1)})


def run_state_of(report: pytest.TestReport) -> str:
    """Return the run state that a report carries, or an empty string."""
    return next((str(value) for name, value in report.user_properties if name == STATE), "")


def _asks_for_lab(item: pytest.Item) -> bool:
    return "hil" in getattr(item, "fixturenames", ())


def _first_line(error: BaseException) -> str:
    text = error.message if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
    return text.strip().partition("\n")[0]

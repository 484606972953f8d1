"""Holds a pytest item to what its scenario states, in the report of its call phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.judgement.model import RunState
from harness.plugin.scenario import SCENARIO, Scenario, state_of

if TYPE_CHECKING:
    from harness.judgement.judge import ScenarioJudgement

#: Name of the user property that holds a scenario's run state.
STATE = "run_state"


def judge_phase(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> pytest.TestReport:
    """Return ``report`` as it should read once the scenario behind ``item`` was judged.

    The setup phase ends a scenario that never got to its call; the call phase ends and judges it; the
    teardown phase never changes a verdict, it quarantines the card.
    """
    scenario = item.stash.get(SCENARIO, None)
    if scenario is None:
        return report
    if call.when == "teardown":
        if call.excinfo is not None and scenario.subject is not None:
            scenario.session.quarantined[scenario.subject.name] = (
                f"the teardown of {item.nodeid} failed: {call.excinfo.value}"
            )
        return report
    if call.when == "setup" and call.excinfo is None:
        return report
    return _judged(item, call, report, scenario)


def _judged(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, scenario: Scenario
) -> pytest.TestReport:
    state, reason = ("finished", "") if call.excinfo is None else state_of(call.excinfo.value)
    if call.excinfo is not None and call.excinfo.errisinstance(pytest.skip.Exception):
        state, reason = RunState.BLOCKED.value, f"skipped: {call.excinfo.value}"
    scenario.end(state, reason)
    judgement = scenario.judged = scenario.judge()
    item.config.hook.pytest_hil_scenario_judged(item=item, judgement=judgement)
    report.user_properties += properties(scenario, judgement, state)
    if state == RunState.NOT_APPLICABLE:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, reason)
    elif state in RunState.__members__:
        report.outcome = "failed"
        if state != RunState.BUG:
            report.longrepr = f"{state}: {reason}"
    elif report.outcome == "passed" and not judgement.as_stated:
        report.outcome = "failed"
        report.longrepr = "\n".join(f"not as stated: {why}" for why in judgement.reasons)
    if report.outcome == "failed":
        from harness.plugin.fixtures import FAILURE

        if (failure := item.stash.get(FAILURE, None)) is not None:
            failure.failed = True
    return report


def properties(scenario: Scenario, judgement: ScenarioJudgement, state: str) -> list[tuple[str, object]]:
    """Return what a report of pytest (and JUnit XML made of it) carries of a judged scenario."""
    found: list[tuple[str, object]] = []
    if scenario.subject is not None:
        found.append(("device", scenario.subject.name))
    if judgement.outcome is not None:
        found.append(("outcome", judgement.outcome.value))
    found += [(f"verdict.{reporter}", kind.value) for reporter, kind in judgement.verdicts.items()]
    if state in RunState.__members__:
        found.append((STATE, state))
    return found


def run_state_of(report: pytest.TestReport) -> str:
    """Return the run state that a report carries, or an empty string."""
    return next((str(value) for name, value in report.user_properties if name == STATE), "")

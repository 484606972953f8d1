"""Holds a pytest item to what its scenario states, in the report of its call phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.plugin.scenario import SCENARIO, Scenario, state_of

if TYPE_CHECKING:
    from harness.judgement.judge import ScenarioJudgement


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
        state, reason = "BLOCKED", f"skipped: {call.excinfo.value}"
    scenario.end(state, reason)
    judgement = scenario.judged = scenario.judge()
    item.config.hook.pytest_hil_scenario_judged(item=item, judgement=judgement)
    if state in ("finished", "interrupted"):
        if report.outcome == "passed" and not judgement.as_stated:
            report.outcome = "failed"
            report.longrepr = "\n".join(_divergence(judgement))
    else:
        report.hil_state = state
        report.outcome = "skipped" if state == "NOT_APPLICABLE" else "failed"
        report.longrepr = (
            (str(item.path), item.location[1] or 0, reason)
            if (state == "NOT_APPLICABLE")
            else (report.longrepr if state == "BUG" else f"{state}: {reason}")
        )
    if report.outcome == "failed":
        from harness.plugin.fixtures import FAILURE

        if (failure := item.stash.get(FAILURE, None)) is not None:
            failure.failed = True
    return report


def _divergence(judgement: ScenarioJudgement) -> list[str]:
    return [f"not as stated: {reason}" for reason in judgement.reasons]

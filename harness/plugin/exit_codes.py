"""What `hil run` ends with: one of the documented exit codes, from all that was reported of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import EXIT_INTERRUPTED, HarnessError, worst_exit_code
from harness.judgement.judge import Judgement
from harness.judgement.model import RunState
from harness.plugin.judging import exit_codes_of, run_state_of

_BY_PYTEST = {
    pytest.ExitCode.INTERNAL_ERROR: 5,
    pytest.ExitCode.USAGE_ERROR: 2,
    pytest.ExitCode.NO_TESTS_COLLECTED: 2,
}


class Observer:
    """A pytest plugin that keeps what is reported of a run.

    :param allow_blocked: files, folders or node ids whose scenarios may be blocked.
    """

    def __init__(self, allow_blocked: Sequence[str] = ()) -> None:
        self._allow_blocked = allow_blocked
        self._codes: set[int] = set()
        self._interrupted = False
        #: The judgement of the run; None where nothing was recorded.
        self.judgement: Judgement | None = None
        #: What became of its campaign; empty where it is none.
        self.campaign: dict[str, Any] = {}

    def exit_code(self, status: int) -> int:
        """Return the exit code of `hil run`. :param status: pytest's own."""
        if self._interrupted:
            return EXIT_INTERRUPTED
        codes = set(self._codes)
        if status in _BY_PYTEST:
            codes.add(_BY_PYTEST[pytest.ExitCode(status)])
        judgement = self.judgement
        for scenario in judgement.scenarios if judgement else ():
            accepted = scenario.run_state is RunState.BLOCKED and self._accepts(scenario.name)
            codes |= scenario.exit_codes - {3} if accepted else scenario.exit_codes
        if judgement and judgement.outside_divergences:
            codes.add(1)
        return worst_exit_code(codes)

    def _accepts(self, nodeid: str) -> bool:
        return any(is_part_of(nodeid, part) for part in self._allow_blocked)

    # -- hooks ----------------------------------------------------------------------------------------

    def pytest_hil_run_judged(self, judgement: Judgement) -> None:
        """Keep the judgement."""
        self.judgement = judgement

    def pytest_hil_campaign_over(self, campaign: Mapping[str, Any]) -> None:
        """Keep what became of a campaign."""
        self.campaign = dict(campaign)

    def pytest_hil_run_trouble(self, error: HarnessError) -> None:
        """Count an error that belongs to no scenario."""
        self._codes.add(error.exit_code)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be read as scenarios, or says itself that it is skipped."""
        if report.failed:
            self._codes.add(2)
        elif report.skipped and not self._accepts(report.nodeid):
            self._codes.add(3)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count how a scenario, or its teardown, went."""
        codes = set(exit_codes_of(report))
        if run_state_of(report) == RunState.BLOCKED and self._accepts(report.nodeid):
            codes.discard(3)
        self._codes |= codes

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """See that the run was interrupted."""
        # pytest stops itself in this way too, where collecting failed or nothing more can be recorded.
        self._interrupted |= not isinstance(excinfo.value, pytest.Session.Interrupted)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """See that a worker was interrupted."""
        self._interrupted |= error == "keyboard-interrupt"


def is_part_of(nodeid: str, part: str) -> bool:
    """Return whether the scenario ``nodeid`` is ``part``, or in that file or folder."""
    if "::" in part:
        return nodeid == part or nodeid.startswith((f"{part}[", f"{part}::"))
    return Path(nodeid.split("::", 1)[0]).is_relative_to(os.path.relpath(part))

"""Ends a run: judges its histories, writes its results and its page, and prints its summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.errors import HarnessError
from harness.plugin.indexing import INDEXING
from harness.plugin.session import SESSION

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from _pytest.terminal import TerminalReporter

    from harness.judgement.judge import Judgement
    from harness.judgement.records import Record
    from harness.plugin.run_history import RunHistory

JUDGEMENT: pytest.StashKey[Judgement] = pytest.StashKey()
TROUBLES = pytest.StashKey[list[HarnessError]]()


def finish_run(session: pytest.Session, *, interrupted: bool) -> None:
    """Close what the process opened; in the controlling process, judge the run from its histories.

    An error on the way keeps nothing else from being done; it is told, and pytest does not end with 0.
    """
    config = session.config
    hil = config.stash[SESSION]
    troubles = config.stash.setdefault(TROUBLES, [])
    history = hil.opened
    troubles += hil.finish(interrupted=interrupted)
    if not hil.worker and "run_dir" in hil.__dict__ and hil.run_dir.is_dir():
        hil.devices.forget()
        _judge(config, hil.run_dir, history, troubles)
    for error in troubles:
        config.hook.pytest_hil_run_trouble(error=error)
    if troubles and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _judge(
    config: pytest.Config, run_dir: Path, history: RunHistory | None, troubles: list[HarnessError]
) -> None:
    from harness.judgement.judge import judge
    from harness.record import runs
    from harness.report.page.writing import write_page
    from harness.report.results import write_results

    if not runs.histories(run_dir):
        return
    try:
        # What a full disk did not take is in the memory of the process that recorded it.
        lost = history is not None and history.failure is not None

        def records() -> Iterable[Record]:
            return history.records if history is not None and lost else runs.read_run(run_dir)

        judgement = judge(records())
    except HarnessError as error:
        troubles.append(error)
        return
    config.stash[JUDGEMENT] = judgement
    try:
        write_results(run_dir, judgement)
        lab = judgement.runs[0].lab if judgement.runs else ""
        indexing = config.pluginmanager.get_plugin(INDEXING)
        flaky = indexing.flaky(lab) if indexing is not None else ()
        write_page(run_dir, judgement, records(), flaky=flaky)
    except HarnessError as error:
        troubles.append(error)
    runs.point_latest_at(run_dir)
    config.hook.pytest_hil_run_judged(run_dir=run_dir, judgement=judgement)


def print_summary(reporter: TerminalReporter, config: pytest.Config) -> None:
    """Print the ten-second summary of a run that was judged, and what went wrong beside it."""
    judgement = config.stash.get(JUDGEMENT, None)
    if judgement is not None:
        from harness.report.summary import render

        run_dir = config.stash[SESSION].run_dir
        reporter.section("held to the truth", sep="=")
        for line in render(judgement, run_dir, colour=reporter._tw.hasmarkup).splitlines():
            reporter.line(line)
    else:  # nothing was recorded; what kept scenarios from running is told all the same
        for state in ("infra", "blocked", "refused"):
            for report in reporter.getreports(state):
                reporter.line(f"{report.nodeid}: {report.longrepr}")
    for error in config.stash.get(TROUBLES, []):
        reporter.line(f"ERROR: {error}", red=True)

"""Ends a run: judges its histories, writes its results and prints its summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.plugin.session import SESSION

if TYPE_CHECKING:
    from pathlib import Path

    from _pytest.terminal import TerminalReporter

    from harness.judgement.judge import Judgement
    from harness.judgement.records import Record

JUDGEMENT: pytest.StashKey[Judgement] = pytest.StashKey()


def finish_run(config: pytest.Config, *, interrupted: bool) -> None:
    """Close what the process opened; in the controlling process, judge the run from its histories."""
    session = config.stash.get(SESSION, None)
    if session is None:
        return
    if session.opened:
        from harness.judgement.records import RunEnded

        session.history.add(RunEnded(how="interrupted" if interrupted else "finished"))
    session.close()
    if session.worker or not list(session.run_dir.glob("history*.jsonl")):
        return
    from harness.judgement.judge import judge
    from harness.report.results import write_results

    judgement = judge(read_run(session.run_dir))
    config.stash[JUDGEMENT] = judgement
    write_results(session.run_dir, judgement)
    _point_latest_at(session.run_dir)
    config.hook.pytest_hil_run_judged(run_dir=session.run_dir, judgement=judgement)


def read_run(run_dir: Path) -> list[Record]:
    """Return the records of all histories in a run folder, history after history."""
    from harness.record.history import read_history

    return [record for path in sorted(run_dir.glob("history*.jsonl")) for record in read_history(path)]


def print_summary(reporter: TerminalReporter, config: pytest.Config) -> None:
    """Print the ten-second summary of a run that was judged."""
    judgement = config.stash.get(JUDGEMENT, None)
    if judgement is None:
        return
    from harness.report.summary import render

    reporter.section("held to the truth", sep="=")
    for line in render(judgement, config.stash[SESSION].run_dir, colour=reporter._tw.hasmarkup).splitlines():
        reporter.line(line)


def _point_latest_at(run_dir: Path) -> None:
    latest = run_dir.parent / "latest"
    if latest.is_symlink() or not latest.exists():
        fresh = latest.with_name(f".latest-{run_dir.name}")
        fresh.symlink_to(run_dir.name)
        fresh.replace(latest)

"""Enters a run in the index of runs while it goes on; the history is the truth, and the index can wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from harness.errors import HarnessError
from harness.plugin.scenario import SCENARIO
from harness.plugin.session import SESSION

if TYPE_CHECKING:
    from pathlib import Path

    from harness.judgement.judge import Judgement, ScenarioJudgement
    from harness.plugin.session import HilSession
    from harness.store.index import Index


#: The name that the plugin has with pytest.
INDEXING: Final = "hil-indexing"


class Indexing:
    """The plugin of one process of a run. ``trouble``: why nothing more is written to the index."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._index: Index | None = None
        self._run = 0
        self.trouble: HarnessError | None = None

    @pytest.hookimpl
    def pytest_hil_run_started(self) -> None:
        """Enter the run."""
        self._write(lambda index, run: None)

    @pytest.hookimpl
    def pytest_hil_scenario_judged(self, item: pytest.Item, judgement: ScenarioJudgement) -> None:
        """Enter the scenario."""

        session, scenario = self._config.stash[SESSION], item.stash[SCENARIO]
        records = session.history.records[scenario.first_record - 1 :]
        self._write(lambda index, run: index.add(run, judgement, records))

    @pytest.hookimpl
    def pytest_hil_run_judged(self, run_dir: Path, judgement: Judgement) -> None:
        """Enter the end of the run."""
        self._write(lambda index, run: index.end(run, run_dir, finished=judgement.finished))

    def flaky(self, lab: str) -> set[str]:
        """Return the scenarios that went both ways lately; none where the index does not say."""
        found: set[str] = set()

        def ask(index: Index, run: int) -> None:
            from harness.store.past import went_both_ways

            found.update(went_both_ways(index.engine, lab))

        self._write(ask)
        return found

    def pytest_unconfigure(self) -> None:
        """Let go of the database."""
        if self._index is not None:
            self._index.close()
            self._index = None

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the run is missing from the index, and how it gets there."""
        if self.trouble is not None:
            run_dir = self._config.stash[SESSION].run_dir
            terminalreporter.line(f"NOT INDEXED: {self.trouble}", yellow=True)
            terminalreporter.line(f"  later: hil history import {run_dir}")

    def _write(self, act: Any) -> None:
        if self.trouble is not None:
            return
        try:
            if self._index is None and not self._opened(self._config.stash[SESSION]):
                return
            act(self._index, self._run)
        except HarnessError as error:
            self.trouble = error

    def _opened(self, session: HilSession) -> bool:
        from harness.judgement.records import RunStarted
        from harness.store.place import index_url

        url = index_url(session.run_dir.parent, self._config.getoption("hil_store"))
        started = self._started(session)
        if url is None or not isinstance(started, RunStarted):
            return False
        from harness.store.index import Index

        self._index = Index(url)
        self._run = self._index.begin(started, session.run_dir)
        return True

    @staticmethod
    def _started(session: HilSession) -> Any:
        """Return the record that the run begins with; the controlling process of workers has theirs."""
        if session.opened is not None:
            return next(iter(session.opened.records), None)
        from harness.record.runs import read_run

        return next(iter(read_run(session.run_dir)), None)

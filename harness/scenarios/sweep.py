"""Sweeps: lanes side by side, each with a history of its own; told, interrupted, judged, and gone on with."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from harness.errors import BlockedError, HarnessError, InfrastructureError
from harness.interruption import uninterrupted
from harness.judgement.judge import judge
from harness.judgement.records import RunEnded, RunStarted
from harness.record.history import History
from harness.scenarios.sweep_journal import Entry, Journal, judged, judged_entries
from harness.scenarios.sweep_results import Kind, LaneResult, SweepResult, Trial

#: Seconds after which Ctrl-C is noticed at the latest.
_NOTICE = 0.2


class Progress(Protocol):
    """Who is told how a sweep gets on, by the threads of its lanes."""

    def told(self, trial: Trial) -> None:
        """One more trial is over; it is not judged yet."""

    def spared(self, count: int) -> None:
        """There will be so many trials less."""


class Untold:
    """Where nobody wants to know."""

    def told(self, trial: Trial) -> None:
        """Say nothing."""

    def spared(self, count: int) -> None:
        """Say nothing."""


class Ledger:
    """The trials of one lane: those of a sweep that was cut off, and each new one when it is over.

    :param progress: told of each new trial, not judged yet. :param earlier: what need not be tried again.
    """

    def __init__(
        self, history: History, journal: Journal, progress: Progress, earlier: Sequence[Trial] = ()
    ) -> None:
        self._history = history
        self._journal = journal
        self._progress = progress
        self._earlier = tuple(earlier)
        self._left = Counter(trial.key for trial in earlier)
        self._noted: list[Entry] = []

    def is_done(self, of: str, point: str, action: str) -> bool:
        """Return whether an earlier trial stands for this one; each stands for one."""
        key = (of, point, action)
        self._left[key] -= 1
        return self._left[key] >= 0

    def note(self, trial: Trial, intent: int | None = None, scenario: str = "") -> None:
        """Keep a trial.

        :param intent: of the operation that was disturbed; None: it was not. :param scenario: its name,
            where a trial is all that is done and said in one.
        """
        entry = Entry(trial, self._history.path.name, intent, scenario)
        self._noted.append(entry)
        self._journal.add(entry)
        self._progress.told(trial)

    def spare(self, count: int) -> None:
        """Say that there will be so many trials less than it was thought at the beginning."""
        self._progress.spared(count)

    def trials(self) -> tuple[Trial, ...]:
        """Return all of them, judged."""
        found = judge(self._history.records)
        return (*self._earlier, *(judged(entry, found) for entry in self._noted))


class Lane(Protocol):
    """What one lane of a sweep does."""

    def run(self) -> None:
        """Run all trials that the ledger does not have. :raises HarnessError: the lab failed."""

    def let_go(self) -> None:
        """Hold nothing any more; called by another thread that wants an end."""

    def result(self) -> LaneResult:
        """Return what there is so far, judged."""


class Swept(Protocol):
    """What is swept: an operation, by whom, and what it needs."""

    @property
    def kind(self) -> Kind:
        """What it is, in words."""

    @property
    def groups(self) -> Sequence[Sequence[str]]:
        """The lanes; those of one group have something in common, and come one after the other."""

    @property
    def options(self) -> Mapping[str, Any]:
        """All that decides which trials there are, as plain data."""

    def surroundings(self) -> AbstractContextManager[None]:
        """Open what all lanes share, meanwhile. :raises HarnessError: an option is wrong."""

    def bench(self, lane: str) -> AbstractContextManager[Any]:
        """Open what one lane works on. :raises BlockedError: what it needs is not here."""

    def started(self, run: str, lane: str, bench: Any) -> RunStarted:
        """Return the first record of the lane's history."""

    def lane(self, name: str, bench: Any, history: History, ledger: Ledger, stop: threading.Event) -> Lane:
        """Return the lane; no further trial is begun once ``stop`` is set."""


@dataclass(slots=True)
class Sweep:
    """One sweep. ``run_dir``: where the histories go, one for each lane; it must be there.

    ``workers``: lanes at the same time. ``asked``: points that were named. What an earlier sweep in
    ``run_dir`` has done is not done again.
    """

    swept: Swept
    run_dir: Path
    progress: Progress = field(default_factory=Untold)
    workers: int = 2
    asked: tuple[str, ...] = ()
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _running: dict[str, Lane] = field(default_factory=dict, init=False)
    _earlier: dict[str, list[Trial]] = field(default_factory=dict, init=False)
    _journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        self._journal = Journal(self.run_dir, self.swept.kind.name, self.swept.options)

    def earlier(self) -> list[Trial]:
        """Return the trials that need not be made again. :raises ConfigurationError: they cannot be read."""
        return judged_entries(self.run_dir, self._journal.entries())

    def run(self) -> SweepResult:
        """Run it; on Ctrl-C undo what is disturbed, and return what there is by then.

        :raises HarnessError: an option is wrong. What the lab fails in ends that lane only.
        """
        began = time.monotonic()
        earlier = self.earlier()
        for trial in earlier:
            self._earlier.setdefault(trial.lane, []).append(trial)
        interrupted = False
        with (
            self.swept.surroundings(),
            ThreadPoolExecutor(self.workers, thread_name_prefix="sweep") as pool,
        ):
            self._journal.begin()
            groups = [pool.submit(self._group, names) for names in self.swept.groups]
            try:
                # A signal that the system gives to another thread is noticed when this one wakes.
                while wait(groups, timeout=_NOTICE).not_done:
                    pass
            except KeyboardInterrupt:
                interrupted = True
                self._end_all(groups)
        results = tuple(result for group in groups for result in group.result())
        seconds = time.monotonic() - began
        return SweepResult(self.swept.kind, results, seconds, interrupted, self.asked, len(earlier))

    def end(self) -> None:
        """Begin no further trial, and hold nothing any more; may be called by any thread."""
        self._stop.set()
        for lane in list(self._running.values()):
            lane.let_go()

    def _end_all(self, groups: Sequence[Future[list[LaneResult]]]) -> None:
        """End all lanes in order. :raises KeyboardInterrupt: a third Ctrl-C came before that was done."""
        print(f"hil: interrupted; {self.swept.kind.waits}", file=sys.stderr)
        try:
            with uninterrupted("undo the faults of the sweep"):
                self.end()
                wait(groups)
        except KeyboardInterrupt:
            if not all(group.done() for group in groups):
                raise
            # One that waited until now: what it wants was done.

    def _group(self, names: Sequence[str]) -> list[LaneResult]:
        return [self._tried(name) for name in names]

    def _tried(self, name: str) -> LaneResult:
        earlier = tuple(self._earlier.get(name, ()))
        if self._stop.is_set():
            return LaneResult(name, earlier)
        try:
            return self._lane(name, earlier)
        except BlockedError as error:
            return LaneResult(name, earlier, blocked=error.message, hint=error.hint)
        except HarnessError as error:
            return LaneResult(name, earlier, failed=error.message, hint=error.hint)

    def _lane(self, name: str, earlier: tuple[Trial, ...]) -> LaneResult:
        with self.swept.bench(name) as bench, _history(self._history_path(name)) as history:
            history.add(self.swept.started(self.run_dir.name, name, bench))
            ledger = Ledger(history, self._journal, self.progress, earlier)
            lane = self.swept.lane(name, bench, history, ledger, self._stop)
            self._running[name] = lane
            failure: HarnessError | None = None
            try:
                lane.run()
            except HarnessError as error:
                failure = error
            try:
                history.add(RunEnded(how="interrupted" if self._stop.is_set() else "finished"))
            except InfrastructureError as error:  # a full disk: what is in memory is judged all the same
                failure = failure or error
            return lane.result() if failure is None else _failed(lane.result(), failure)

    def _history_path(self, name: str) -> Path:
        """Return the file for a lane's history; one that goes on has one more for each part."""
        stem = f"history-{name.replace('/', '+')}"
        parts = (self.run_dir / f"{stem}{'' if part == 1 else f'~{part}'}.jsonl" for part in count(1))
        return next(path for path in parts if not path.exists())


@contextmanager
def _history(path: Path) -> Iterator[History]:
    """Give a new history. What a full disk does not take was told when it was added, and not once more."""
    history = History(path)
    try:
        yield history
    finally:
        with suppress(InfrastructureError):
            history.close()


def _failed(result: LaneResult, error: HarnessError) -> LaneResult:
    if isinstance(error, BlockedError):
        return replace(result, blocked=error.message, hint=error.hint)
    return replace(result, failed=error.message, hint=error.hint)

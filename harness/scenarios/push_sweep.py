"""Sweeps pushes: every client, every action, every point of the push; clients in parallel, each judged."""

from __future__ import annotations

import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import BlockedError, HarnessError, InfrastructureError
from harness.interruption import uninterrupted
from harness.judgement.records import RunEnded, RunStarted
from harness.record.history import History
from harness.registry.clients.catalogue import PUSH_CLIENTS
from harness.scenarios.push_trials import Lane, Plan
from harness.scenarios.sweep_results import LaneResult, SweepResult, Trial

if TYPE_CHECKING:
    from harness.registry.configuration import RegistrySettings
    from harness.registry.engine import Engine

#: Seconds after which Ctrl-C is noticed at the latest.
_NOTICE = 0.2
#: Opens an engine; None where none is wanted. :raises BlockedError: none can be had.
EngineOpener = Callable[[], "Engine | None"]


@dataclass(slots=True)
class Sweep:
    """One sweep. ``run_dir``: where the histories go, one for each client; it must be there.

    ``told``: called with each trial when its push is over, by the thread of its client.
    """

    clients: Sequence[str]
    plan: Plan
    run_dir: Path
    open_engine: EngineOpener
    told: Callable[[Trial], None] = lambda trial: None
    workers: int = 2
    asked: tuple[str, ...] = ()
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _running: dict[str, Lane] = field(default_factory=dict, init=False)

    def run(self) -> SweepResult:
        """Run it; on Ctrl-C undo what is disturbed, and return what there is by then.

        :raises HarnessError: an option is wrong. What the lab fails in ends that client only.
        """
        began = time.monotonic()
        self.plan.check()
        engine, no_engine = self._engine()
        interrupted = False
        try:
            with ThreadPoolExecutor(self.workers, thread_name_prefix="sweep") as pool:
                lanes = [pool.submit(self._client, name, engine, no_engine) for name in self.clients]
                try:
                    # A signal that the system gives to another thread is noticed when this one wakes.
                    while wait(lanes, timeout=_NOTICE).not_done:
                        pass
                except KeyboardInterrupt:
                    interrupted = True
                    self._end_all(lanes)
        finally:
            if engine is not None and (close := getattr(engine, "close", None)) is not None:
                close()
        results = tuple(lane.result() for lane in lanes)
        return SweepResult(results, time.monotonic() - began, interrupted, self.asked)

    def _engine(self) -> tuple[Engine | None, BlockedError | None]:
        if not any(PUSH_CLIENTS[name].needs_engine for name in self.clients):
            return None, None
        try:
            return self.open_engine(), None
        except BlockedError as error:
            return None, error

    def end(self) -> None:
        """Begin no further trial, and hold no push any more; may be called by any thread."""
        self._stop.set()
        for lane in list(self._running.values()):
            lane.let_go()

    def _end_all(self, lanes: Sequence[Future[LaneResult]]) -> None:
        """End all lanes in order. :raises KeyboardInterrupt: a third Ctrl-C came before that was done."""
        print(
            "hil: interrupted; the pushes under way end first, at their deadlines (2 min) at the latest, "
            "and what disturbs them is undone",
            file=sys.stderr,
        )
        try:
            with uninterrupted("undo the faults of the sweep"):
                self.end()
                wait(lanes)
        except KeyboardInterrupt:
            if not all(lane.done() for lane in lanes):
                raise
            # One that waited until now: what it wants was done.

    def _client(self, name: str, engine: Engine | None, no_engine: BlockedError | None) -> LaneResult:
        if self._stop.is_set():
            return LaneResult(name)
        needs = PUSH_CLIENTS[name].needs_engine
        try:
            if needs and engine is None:
                raise no_engine or BlockedError(
                    f"{name} goes through a Docker engine.", hint="Allow one: --engine auto."
                )
            return self._lane(name, engine if needs else None)
        except BlockedError as error:
            return LaneResult(name, blocked=error.message, hint=error.hint)
        except HarnessError as error:
            return LaneResult(name, failed=error.message, hint=error.hint)

    def _lane(self, name: str, engine: Engine | None) -> LaneResult:
        from harness.lab.registry_bench import RegistryBench

        alone = sum(PUSH_CLIENTS[each].needs_engine for each in self.clients) == 1
        with (
            _store(self.plan.own_store) as settings,
            RegistryBench(engine=engine, settings=settings) as bench,
            _history(self.run_dir / f"history-{name}.jsonl") as history,
        ):
            versions = {"python": platform.python_version(), name: bench.push_client(name).version}
            options = {"actions": list(self.plan.actions), "points": [str(each) for each in self.plan.points]}
            history.add(RunStarted(run=self.run_dir.name, lab="registry", versions=versions, options=options))
            lane = Lane(name, bench, history, self.plan, told=self.told, stop=self._stop, engine_log=alone)
            self._running[name] = lane
            failure: HarnessError | None = None
            try:
                lane.run()
            except HarnessError as error:
                failure = error
            how = "interrupted" if self._stop.is_set() else "finished"
            try:
                history.add(RunEnded(how=how))  # type: ignore[arg-type]
            except InfrastructureError as error:  # a full disk: what is in memory is judged all the same
                failure = failure or error
            return lane.result() if failure is None else _failed(lane.result(), failure)


@contextmanager
def _history(path: Path) -> Iterator[History]:
    """Give a new history. What a full disk does not take was told when it was added, and not once more."""
    history = History(path)
    try:
        yield history
    finally:
        with suppress(InfrastructureError):
            history.close()


@contextmanager
def _store(size: int) -> Iterator[RegistrySettings]:
    """Give settings of a registry whose store is on a file system of its own, where that has a size.

    :raises BlockedError: it cannot be made here.
    """
    from harness.faults.own_store import OwnStore
    from harness.registry.configuration import RegistrySettings

    if not size:
        yield RegistrySettings()
        return
    with OwnStore(size) as store:
        yield RegistrySettings(storage=store.folder)


def _failed(result: LaneResult, error: HarnessError) -> LaneResult:
    blocked = error.message if isinstance(error, BlockedError) else ""
    failed = "" if blocked else error.message
    return LaneResult(result.client, result.trials, blocked, failed, error.hint, result.push, result.restart)

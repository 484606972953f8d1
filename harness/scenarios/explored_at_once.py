"""Explorations at once: each in a process of its own, with something of its own to explore, come to one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final

from harness.errors import HarnessError, InfrastructureError
from harness.registry.children import spawn
from harness.registry.folder import TemporaryFolder
from harness.scenarios.exploration import Budget, Explorable, Explored, Interrupted
from harness.scenarios.trial_process import end_in_order, wait_for_end

#: Opens what is explored. It is pickled: a function of a module, or a ``functools.partial`` of one.
Opens = Callable[[], AbstractContextManager[Explorable[Any]]]

#: Apart by so much, the seeds of two jobs never do the same: an exploration counts its own up from its first.
SEEDS_APART: Final = 1_000_000
#: Seconds after which a signal is noticed that the system gave to another thread.
_NOTICE: Final = 0.2
#: Characters of the end of what a process said, where it ended too early.
_TAIL: Final = 500


@dataclass(eq=False, slots=True)
class _Job:
    """One of them. ``steps``: that it told of; ``came``: what it came to, None while it explores."""

    process: subprocess.Popen[bytes]
    asks: Connection
    log: Path
    steps: int = 0
    came: Explored[Any] | None = None
    error: HarnessError | None = None
    ready: bool = False

    @property
    def found(self) -> bool:
        return self.came is not None and bool(self.came.reason)

    @property
    def over(self) -> bool:
        return self.came is not None or self.error is not None

    def hear(self) -> None:
        """Take one thing that it says; that it has ended is an error."""
        try:
            self._take(self.asks.recv())
        except (EOFError, OSError):
            said = self.log.read_text(encoding="utf-8", errors="replace").strip()[-_TAIL:]
            why = f"An exploration ended in the middle of it. {said}".strip()
            self.error = self.error or InfrastructureError(why)

    def hear_the_rest(self) -> None:
        """Take all that it said until its end, to which it was told to come."""
        with contextlib.suppress(EOFError, OSError):
            while self.asks.poll():
                self._take(self.asks.recv())

    def _take(self, said: object) -> None:
        if isinstance(said, HarnessError):
            self.error = said
        elif isinstance(said, Explored):
            self.steps, self.came = said.steps, said
        elif isinstance(said, int):
            self.steps, self.ready = said, True

    def ask(self, what: object) -> None:
        """Tell it what to open, or to explore; where it has ended, :meth:`hear` says so."""
        with contextlib.suppress(OSError):
            self.asks.send(what)


class ExploredAtOnce:
    """So many processes, each of which has opened what it explores. A context manager.

    :param opens: opens what is explored, once in each. :raises HarnessError: on entry, as ``opens`` does.
    """

    def __init__(self, opens: Opens, jobs: int) -> None:
        self._opens = opens
        self._count = jobs
        self._jobs: list[_Job] = []
        self._folder: TemporaryFolder | None = None

    def __enter__(self) -> ExploredAtOnce:
        self._folder = TemporaryFolder("hil-explore-")
        try:
            for number in range(self._count):
                self._jobs.append(_started(self._folder.path / str(number)))
                self._jobs[-1].ask(self._opens)
            while waiting := [job for job in self._jobs if not job.ready]:
                _hear(waiting)
                self._check()
        except BaseException:
            self._close(in_order=True)
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._close(in_order=kind is not None)
        if kind is None and not any(job.found for job in self._jobs):
            self._check()

    def explore(
        self, budget: Budget, *, seed: int, told: Callable[[int], None] = lambda steps: None
    ) -> Explored[Any]:
        """Explore within one budget, of which each has a part, until one of them finds something.

        :param seed: of the first; that of each other one is :data:`SEEDS_APART` more than of the one before.
        :param told: how many steps were made by all.
        :raises HarnessError: as one of them did; the others were ended. :raises Interrupted: by Ctrl-C.
        """
        asked = self._jobs[: len(budget.shares(len(self._jobs)))]
        for number, (job, share) in enumerate(zip(asked, budget.shares(len(asked)), strict=True)):
            job.steps, job.came = 0, None
            job.ask((share, seed + number * SEEDS_APART))
        try:
            while not any(job.found for job in asked) and (busy := [job for job in asked if not job.over]):
                _hear(busy)
                told(sum(job.steps for job in asked))
                self._check()
            self._end(asked)
        except KeyboardInterrupt:
            self._end(asked)
            raise Interrupted(_sum(asked, seed, interrupted=True)) from None
        return _sum(asked, seed)

    def _check(self) -> None:
        """Return if none has failed. :raises HarnessError: one has; that is raised here."""
        for job in self._jobs:
            if job.error is not None:
                raise job.error

    def _end(self, jobs: Sequence[_Job]) -> None:
        """End those that explore still, and take what they came to.

        :raises HarnessError: as one of them did, and none has found anything.
        """
        busy = [job for job in jobs if not job.over]
        end_in_order([job.process for job in busy])
        for job in busy:
            job.hear_the_rest()
        if not any(job.found for job in jobs):
            self._check()

    def _close(self, *, in_order: bool) -> None:
        """End all, in the middle of what they do or as they have done all. Nothing is left of them."""
        try:
            for job in self._jobs:
                job.ask(None)
            if in_order:
                end_in_order([job.process for job in self._jobs])
            for job in self._jobs:
                wait_for_end(job.process)
                job.hear_the_rest()
        finally:
            for job in self._jobs:
                job.asks.close()
            if self._folder is not None:
                self._folder.close()


def _started(log: Path) -> _Job:
    ours, theirs = Pipe()
    with theirs, log.open("wb") as output:
        command = [sys.executable, "-m", "harness.scenarios.exploring_process"]
        stdin, stdout = theirs.fileno(), output
        process = spawn(command, environ=os.environ, stdin=stdin, stdout=stdout, stderr=subprocess.STDOUT)
    return _Job(process, ours, log)


def _hear(jobs: Sequence[_Job]) -> None:
    """Wait until some of them say something, or for a moment, and take it."""
    ready = wait([job.asks for job in jobs], _NOTICE)
    for job in jobs:
        if job.asks in ready:
            job.hear()


def _sum(jobs: Sequence[_Job], seed: int, *, interrupted: bool = False) -> Explored[Any]:
    """Return what they have come to together: what one found is that of all."""
    came = [job.came for job in jobs if job.came is not None]
    found = next((each for each in came if each.reason), None)
    return Explored(
        steps=sum(job.steps for job in jobs),
        updates=sum(each.updates for each in came),
        seconds=max((each.seconds for each in came), default=0.0),
        seed=found.seed if found else seed,
        counterexample=found.counterexample if found else (),
        reason=found.reason if found else "",
        interrupted=interrupted,
        jobs=len(jobs),
    )

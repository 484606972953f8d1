"""Runs the scenarios of a plan without any known defect, then once for each, several at the same time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.registry.children import spawn
from harness.registry.folder import TemporaryFolder
from harness.scenarios.kill_matrix import CONCERNS, KillMatrix, Row, Seen, Trial
from harness.scenarios.qualification_journal import QualificationJournal
from harness.scenarios.trial_process import QUIET, end_in_order, wrong_plan

#: One trial may take so many seconds before it is ended: a hung lab must not hold the others up for ever.
TRIAL_SECONDS: Final = 1800.0
#: Seconds after which Ctrl-C is noticed at the latest.
_NOTICE: Final = 0.2
_CORRECTED, _BESIDE = "corrected", "beside"
#: Beside the scenarios of a plan: which of them noticed a defect when that was last written down.
_FIRST: Final = "noticed_first.json"
#: Ends of pytest: nothing was collected that concerns this; it stopped where it had found enough.
_NOTHING: Final = 5
_STOPPED: Final = 2
_WELL: Final = (0, 1, _NOTHING)
#: So many characters of what a trial that failed printed last are told.
_TAIL: Final = 600
_INTERRUPTED: Final = "interrupted"


@dataclass(frozen=True, slots=True)
class QualificationPlan:
    """What is run. ``defects``: as in the catalogue (name, kind, reference, predicts).

    ``options``: for pytest, such as the inventory. ``devices``: driver generation -> the cards for scenarios
    about cards where a defect is one of that generation; under the empty one those for all others. ``full``:
    every scenario with every defect, none is left out. ``folder``: keeps the state, so that a qualification
    that was killed goes on.
    """

    target: Path
    defects: Sequence[Mapping[str, Any]]
    options: Sequence[str]
    folder: Path
    full: bool = False
    jobs: int = 2
    devices: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def beside(self) -> Path:
        """The folder that has the scenarios; those of a campaign are elsewhere in the plans."""
        campaign = self.target.name.endswith(".campaign.yaml")
        return self.target if self.target.is_dir() else self.target.parents[1 if campaign else 0]

    def fingerprint(self) -> str:
        """Return what must be the same for a trial of before to count: plan, inventory, options, version."""
        from harness import __version__

        files = [*self.beside.rglob("*.py"), *self.beside.rglob("*.yaml"), *Path().glob("*.yaml")]
        files += Path("fixtures").rglob("*.yaml")
        files += [
            Path(each.partition("=")[2]) for each in self.options if each.startswith("--hil-inventory=")
        ]
        said = (__version__, str(self.target), list(self.options), dict(self.devices), self.full)
        hashed = hashlib.sha256(repr(said).encode())
        for path in sorted(path for path in files if path.is_file()):
            status = path.stat()
            hashed.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
        return hashed.hexdigest()


@dataclass(frozen=True, slots=True)
class _Task:
    """One trial to make. ``defects``: switched on in it; ``of``: the one that it is about, empty: none.

    ``until``: the outcome or verdict that ends it; empty: it goes to its end. ``generations``: of the drivers
    of the cards that it is made on. ``beside``: the trial of the others alone that ``of`` needs, if any.
    ``only``: these scenarios; empty: all that are concerned.
    """

    name: str
    concerns: str
    defects: tuple[str, ...] = ()
    of: str = ""
    until: str = ""
    generations: tuple[str, ...] = ("",)
    beside: _Task | None = None
    only: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its own, and that of the trial beside it."""
        return (self.name,) if self.beside is None else (self.name, self.beside.name)


@dataclass
class Qualification:
    """One qualification, with what was done of it before.

    :param told: called after each trial with its row (None: without a defect), the trial, and how many
        trials and about how many seconds are left.
    :param say: told a line of what else there is to know for who waits.
    """

    plan: QualificationPlan
    told: Callable[[Row | None, Trial, int, float], None] = lambda row, trial, left, seconds: None
    say: Callable[[str], None] = lambda line: None
    _journal: QualificationJournal = field(init=False)
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ending: bool = False

    def __post_init__(self) -> None:
        self._journal = QualificationJournal(self.plan.folder, self.plan.fingerprint())

    def run(self, *, fresh: bool = False) -> KillMatrix:
        """Make the trials that were not made yet; Ctrl-C ends them in order and gives a partial matrix.

        :param fresh: do not go on with what was killed.
        :raises ConfigurationError: another qualification is at work in the same folder, or a file of the plan
            cannot be read.
        :raises InfrastructureError: the folder cannot be written.
        """
        began = time.monotonic()
        tasks = self._tasks()
        with self._journal.held():
            due = self._due(tasks, fresh=fresh)
            interrupted = not self._made_all(due, began)
            if not interrupted:
                self._journal.finish(name for task in tasks for name in task.names)
        rows = tuple(self._row(defect) for defect in self.plan.defects)
        done = self._journal.trials
        corrected = tuple(done[task.name] for task in tasks if not task.defects and task.name in done)
        return KillMatrix(rows, corrected, time.monotonic() - began, interrupted)

    def _due(self, tasks: Sequence[_Task], *, fresh: bool) -> list[_Task]:
        """Return the trials that are not made yet, and say how many are."""
        outdated = self._journal.take_up(sorted(self.plan.beside.rglob(_FIRST)), fresh=fresh)
        due = [task for task in tasks if task.name not in self._journal.trials]
        if outdated:
            self.say(
                f"begins anew: plan, inventory or options have changed since {outdated} trials were made"
            )
        elif len(due) < len(tasks):
            done = f"{len(tasks) - len(due)} of {len(tasks)} trials are done"
            self.say(f"goes on in {self.plan.folder}: {done} (--fresh begins anew)")
        return due

    def _made_all(self, due: Sequence[_Task], began: float) -> bool:
        """Make the trials, several at the same time; return whether nobody interrupted that."""
        with ThreadPoolExecutor(self.plan.jobs) as pool:
            waiting = {pool.submit(self._trials, task): task for task in due}
            try:
                self._gather(waiting, began)
            except KeyboardInterrupt:
                self.say("interrupted; the trials that run undo what they did first")
                self._end_all(list(waiting))
                return False
            except BaseException:  # what was found cannot be kept
                self._end_all(list(waiting))
                raise
        return True

    # -- trials ---------------------------------------------------------------------------------------

    def _tasks(self) -> list[_Task]:
        kinds = {defect["kind"] for defect in self.plan.defects}
        concerned = list(dict.fromkeys(CONCERNS[kind] for kind in CONCERNS if kind in kinds))
        wanted = {defect["generation"] for defect in self.plan.defects}
        generations = ("", *sorted(wanted & self.plan.devices.keys() - {""}))
        tasks = [
            _Task("-".join((f"{_CORRECTED}/{fixture}", *filter(None, on))), fixture, generations=on)
            for fixture in concerned
            for on in [generations if fixture == "card" else ("",)]
        ]
        if self.plan.full:
            every = ",".join(dict.fromkeys(CONCERNS.values()))
            others = [fixture for fixture in dict.fromkeys(CONCERNS.values()) if fixture not in concerned]
            tasks += [_Task(f"{_CORRECTED}/{fixture}", fixture) for fixture in others]
            tasks.append(_Task(f"{_CORRECTED}/others", f"!{every}"))
        for defect in self.plan.defects:
            name, beside = defect["name"], tuple(defect["beside"])
            concerned_by = "" if self.plan.full else CONCERNS[defect["kind"]]
            until = "" if self.plan.full else defect["predicts"]
            alone = _Task(f"{_BESIDE}/{name}", concerned_by, beside) if beside else None
            on = (defect["generation"],)
            tasks.append(_Task(name, concerned_by, (name, *beside), name, until, on, alone))
        return tasks

    def _gather(self, waiting: Mapping[Future[list[Trial]], _Task], began: float) -> None:
        left, spent = set(waiting), 0
        defects = {defect["name"]: defect for defect in self.plan.defects}
        while left:
            # A signal that the system gives to another thread is noticed when this one wakes.
            done, left = wait(left, timeout=_NOTICE, return_when=FIRST_COMPLETED)
            for each in done:
                defect = defects.get(waiting[each].of)
                trials = each.result()
                for trial in trials:
                    predicted = defect["predicts"] if defect and trial.name == defect["name"] else ""
                    self._journal.add(trial, predicted)
                spent += 1
                rest = (time.monotonic() - began) / spent * len(left)
                self.told(self._row(defect) if defect else None, trials[-1], len(left), rest)

    def _trials(self, task: _Task) -> list[Trial]:
        """Make a trial, and that of the other defects alone, where it has one: that of the defect last.

        Where a scenario notices the defect, it is enough to see that it does not without it; where it does,
        all scenarios are tried in both.
        """
        if task.beside is None:
            return [self._trial(task)]
        if task.until:
            quick = self._trial(task)
            shown = tuple(each.scenario for each in quick.seen if each.shows(task.until))
            alone = self._trial(replace(task.beside, only=shown)) if shown else None
            whole = alone is not None and not alone.trouble and len(alone.seen) == len(shown)
            if alone is not None and whole and not any(task.until in each.unstated for each in alone.seen):
                return [alone, quick]
        return [self._trial(task.beside), self._trial(replace(task, until=""))]

    def _trial(self, task: _Task) -> Trial:
        began = time.monotonic()
        with contextlib.closing(TemporaryFolder("hil-qualify-")) as work:
            seen, trouble = self._made(task, work.path)
        return Trial(task.name, tuple(seen), trouble, time.monotonic() - began)

    def _made(self, task: _Task, work: Path) -> tuple[list[Seen], str]:
        """Return what the scenarios found, and what went wrong."""
        if lacking := [each for each in task.generations if each and not self.plan.devices.get(each)]:
            return [], f"there is no card to try it on whose driver is of generation {', '.join(lacking)}"
        return self._started(task, work)

    def _started(self, task: _Task, work: Path) -> tuple[list[Seen], str]:
        """Run the scenarios in a process of their own; return what they found, and what went wrong.

        :raises ConfigurationError: a file of the plan cannot be read.
        """
        told, order, words = work / "told.jsonl", work / "order.json", work / "words"
        told.touch()
        said = {
            "told": str(told),
            "concerns": task.concerns,
            "first": self._journal.killers.get(task.of, []),
            "only": list(task.only),
            "until": task.until,
            "arguments": self._arguments(task, work),
        }
        order.write_text(json.dumps(said), encoding="utf-8")
        with words.open("wb") as output:
            command = [sys.executable, "-m", "harness.plugin.qualifying", str(order)]
            late = self._awaited(command, output)
        lines = list(_whole_lines(told))
        if unreadable := [line["unreadable"] for line in lines if "unreadable" in line]:
            raise wrong_plan(unreadable[0])
        seen = [Seen.from_json(line) for line in lines if "scenario" in line]
        status = next((line["ended"] for line in lines if "ended" in line), None)
        if late:
            return seen, late
        found = status == _STOPPED and bool(task.until and seen)
        if status not in _WELL and not found:
            tail = words.read_text(encoding="utf-8", errors="replace").strip()[-_TAIL:]
            return seen, f"pytest ended with {status}: {tail}"
        return seen, "" if seen else "no scenario concerns it"

    def _arguments(self, task: _Task, work: Path) -> list[str]:
        defects = [f"--hil-defect={name}" for name in task.defects]
        devices = [name for each in task.generations for name in self.plan.devices.get(each, ())]
        defects += [f"--hil-device={name}" for name in dict.fromkeys(devices)]
        return [
            str(self.plan.target),
            *(f"--rootdir={Path.cwd()}", f"--basetemp={work / 'tmp'}"),
            *("--hil-release=corrected", *defects, *self.plan.options),
            f"--hil-reports={self._journal.runs / task.name.replace('/', '-')}",
            *QUIET,
        ]

    def _awaited(self, command: list[str], output: Any) -> str:
        """Run a command that ends when we do; return what is wrong with how it ended, if we ended it."""
        with self._lock:
            if self._ending:
                return _INTERRUPTED
            process = spawn(command, environ=os.environ, stdout=output, stderr=subprocess.STDOUT)
            self._running.add(process)
        try:
            process.wait(TRIAL_SECONDS)
            return _INTERRUPTED if self._ending else ""
        except subprocess.TimeoutExpired:
            end_in_order([process])
            return f"it did not end within {TRIAL_SECONDS:g} s"
        finally:
            with self._lock:
                self._running.discard(process)

    def _end_all(self, waiting: Sequence[Future[list[Trial]]]) -> None:
        """End what runs: each trial undoes what it did; at the third Ctrl-C it is killed."""
        with self._lock:
            self._ending = True
            running = list(self._running)
        for each in waiting:
            each.cancel()
        end_in_order(running)

    # -- rows ----------------------------------------------------------------------------------------

    def _row(self, defect: Mapping[str, Any]) -> Row:
        trial = self._journal.trials.get(defect["name"])
        beside = self._journal.trials.get(f"{_BESIDE}/{defect['name']}")
        return Row(defect["name"], defect["kind"], defect["reference"], defect["predicts"], trial, beside)


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what a trial told; one that was killed may have cut its last line short."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(line)

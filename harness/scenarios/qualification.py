"""Runs the scenarios of a plan without any known defect, then once for each, several at the same time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from harness.errors import InfrastructureError
from harness.registry.children import spawn
from harness.registry.folder import TemporaryFolder
from harness.scenarios.kill_matrix import CONCERNS, KillMatrix, Row, Seen, Trial

#: One trial may take so many seconds before it is ended: a hung lab must not hold the others up for ever.
TRIAL_SECONDS = 1800.0
#: A trial that was told to end has so many seconds to undo and to judge.
_END_SECONDS = 60.0
_CORRECTED, _BESIDE = "corrected", "beside"
_STATE, _TRIALS, _KILLERS = "state.json", "trials.jsonl", "killers.json"
#: Beside the scenarios of a plan: which of them noticed a defect when that was last written down.
_FIRST = "noticed_first.json"
#: Plugins of pytest that may be installed, and only cost time in a trial.
_NOT_NEEDED = ("allure_pytest", "hypothesispytest", "labgrid", "xdist")
#: pytest: nothing was collected that concerns this.
_NOTHING = 5
_WELL = (0, 1, _NOTHING)


@dataclass(frozen=True, slots=True)
class Plan:
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


@dataclass
class Qualification:
    """One qualification, with what was done of it before.

    :param told: called after each trial with its row (None: without a defect), the trial, and how many
        trials and about how many seconds are left.
    """

    plan: Plan
    told: Callable[[Row | None, Trial, int, float], None] = lambda row, trial, left, seconds: None
    _done: dict[str, Trial] = field(default_factory=dict)
    _killers: dict[str, list[str]] = field(default_factory=dict)
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ending: bool = False

    def run(self, *, fresh: bool = False) -> KillMatrix:
        """Make the trials that were not made yet; Ctrl-C ends them in order and gives a partial matrix.

        :param fresh: do not go on with what was killed.
        :raises InfrastructureError: the folder of the state cannot be written.
        """
        began = time.monotonic()
        self._take_up(fresh=fresh)
        due = [task for task in self._tasks() if task.name not in self._done]
        interrupted = False
        with ThreadPoolExecutor(self.plan.jobs) as pool:
            waiting = {pool.submit(self._trials, task): task for task in due}
            try:
                self._gather(waiting, began)
            except KeyboardInterrupt:
                interrupted = True
                self._end(list(waiting))
        if not interrupted:
            self._write_state(finished=True)
        rows = tuple(self._row(defect) for defect in self.plan.defects)
        tasks = [task for task in self._tasks() if not task.defects and task.name in self._done]
        corrected = tuple(self._done[task.name] for task in tasks)
        return KillMatrix(rows, corrected, time.monotonic() - began, interrupted)

    # -- trials ---------------------------------------------------------------------------------------

    def _tasks(self) -> list[_Task]:
        kinds = {defect["kind"] for defect in self.plan.defects}
        concerned = list(dict.fromkeys(CONCERNS[kind] for kind in CONCERNS if kind in kinds))
        wanted = {defect["generation"] for defect in self.plan.defects}
        generations = ("", *sorted(wanted & self.plan.devices.keys() - {""}))
        tasks = [
            _Task(f"{_CORRECTED}/{fixture}", fixture, generations=generations if fixture == "card" else ("",))
            for fixture in concerned
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
        while left:
            done, left = wait(left, return_when=FIRST_COMPLETED)
            for each in done:
                trials = each.result()
                for trial in trials:
                    self._keep(trial)
                spent += 1
                rest = (time.monotonic() - began) / spent * len(left)
                task = waiting[each]
                found = [d for d in self.plan.defects if d["name"] == task.of]
                self.told(self._row(found[0]) if found else None, trials[-1], len(left), rest)

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
        """Run the scenarios in a process of their own; return what they found, and what went wrong."""
        told, order = work / "told.jsonl", work / "order.json"
        told.touch()
        said = {
            "told": str(told),
            "concerns": task.concerns,
            "first": self._killers.get(task.of, []),
            "only": list(task.only),
            "until": task.until,
            "arguments": self._arguments(task, work),
        }
        order.write_text(json.dumps(said), encoding="utf-8")
        words = work / "words"
        with words.open("wb") as output:
            command = [sys.executable, "-m", "harness.plugin.qualifying", str(order)]
            late = self._awaited(command, output)
        lines = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
        seen = [Seen.from_json(line) for line in lines if "scenario" in line]
        troubles = [line["trouble"] for line in lines if "trouble" in line]
        status = next((line["ended"] for line in lines if "ended" in line), None)
        if late:
            troubles.append(late)
        elif status not in _WELL and not (status == 2 and task.until and seen):
            tail = words.read_text(encoding="utf-8", errors="replace").strip()[-600:]
            troubles.append(f"pytest ended with {status}: {tail}")
        elif not seen:
            troubles.append("no scenario concerns it")
        return seen, "; ".join(troubles)

    def _arguments(self, task: _Task, work: Path) -> list[str]:
        defects = [f"--hil-defect={name}" for name in task.defects]
        devices = [name for each in task.generations for name in self.plan.devices.get(each, ())]
        defects += [f"--hil-device={name}" for name in dict.fromkeys(devices)]
        return [
            str(self.plan.target),
            *(f"--rootdir={Path.cwd()}", f"--basetemp={work / 'tmp'}"),
            *("--hil-release=corrected", *defects, *self.plan.options),
            f"--hil-reports={self.plan.folder / 'runs' / task.name.replace('/', '-')}",
            *(word for name in _NOT_NEEDED for word in ("-p", f"no:{name}")),
            *("-qq", "-rN", "--tb=short", "--no-header"),
        ]

    def _awaited(self, command: list[str], output: Any) -> str:
        """Run a command that ends when we do; return what is wrong with how it ended, if we ended it."""
        with self._lock:
            if self._ending:
                return "interrupted"
            process = spawn(command, environ=os.environ, stdout=output, stderr=subprocess.STDOUT)
            self._running.add(process)
        try:
            process.wait(TRIAL_SECONDS)
            return "interrupted" if self._ending else ""
        except subprocess.TimeoutExpired:
            _stop(process)
            return f"it did not end within {TRIAL_SECONDS:g} s"
        finally:
            with self._lock:
                self._running.discard(process)

    def _end(self, waiting: Sequence[Future[list[Trial]]]) -> None:
        """End what runs: each trial undoes what it did and judges what it has; what is left is killed."""
        with self._lock:
            self._ending = True
            running = list(self._running)
        for each in waiting:
            each.cancel()
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
        for process in running:
            _ended(process, _END_SECONDS)

    # -- what is kept ---------------------------------------------------------------------------------

    def _take_up(self, *, fresh: bool) -> None:
        """Take what was done of the same plan before a kill, and who noticed which defect last time."""
        folder = self.plan.folder
        for path in (*sorted(self.plan.beside.rglob(_FIRST)), folder / _KILLERS):
            self._killers |= {name: list(each) for name, each in _read(path).items()}
        state = _read(folder / _STATE)
        if not fresh and not state.get("finished") and state.get("fingerprint") == self.plan.fingerprint():
            tasks = self._tasks()
            wanted = {name for task in tasks for name in (task.name, task.beside.name if task.beside else "")}
            done = filter(None, map(_trial_of, _lines(folder / _TRIALS)))
            self._done = {trial.name: trial for trial in done if trial.name in wanted}
        if not self._done:
            shutil.rmtree(folder / "runs", ignore_errors=True)
        kept = [trial.to_json() for trial in self._done.values()]
        self._write(_TRIALS, "".join(json.dumps(each) + "\n" for each in kept))
        self._write_state(finished=False)

    def _keep(self, trial: Trial) -> None:
        self._done[trial.name] = trial
        predicted = {each["name"]: each["predicts"] for each in self.plan.defects}.get(trial.name, "")
        if killers := [each.scenario for each in trial.seen if each.shows(predicted)]:
            self._killers[trial.name] = killers
        self._write(_TRIALS, json.dumps(trial.to_json()) + "\n", how="a")
        self._write(_KILLERS, json.dumps(self._killers, indent=1))

    def _write_state(self, *, finished: bool) -> None:
        self._write(_STATE, json.dumps({"fingerprint": self.plan.fingerprint(), "finished": finished}))

    def _write(self, name: str, text: str, how: Literal["w", "a"] = "w") -> None:
        try:
            self.plan.folder.mkdir(parents=True, exist_ok=True)
            with (self.plan.folder / name).open(how, encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise InfrastructureError(
                f"The state of the qualification in {self.plan.folder} cannot be kept: {error.strerror}.",
                hint="Name a folder that can be written with --reports.",
            ) from None

    def _row(self, defect: Mapping[str, Any]) -> Row:
        trial = self._done.get(defect["name"])
        beside = self._done.get(f"{_BESIDE}/{defect['name']}")
        return Row(defect["name"], defect["kind"], defect["reference"], defect["predicts"], trial, beside)


def _read(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def _trial_of(line: str) -> Trial | None:
    """Return the trial of a line; None for one that was cut short by a kill."""
    try:
        return Trial.from_json(json.loads(line))
    except (ValueError, KeyError, TypeError):
        return None


def _stop(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    _ended(process, _END_SECONDS)


def _ended(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

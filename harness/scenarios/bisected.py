"""What a bisection goes over: releases, known defects between two, or builds; and how each is looked at."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.errors import ConfigurationError, InfrastructureError
from harness.inventory.entries import unknown_name
from harness.scenarios.bisection import APART, Count, Search, Step, bisect, certainly_more, measure_ends
from harness.scenarios.trials import Runner, Sight, Trial

#: A command that puts a build into effect may take so many seconds.
_COMMAND_SECONDS: Final = 1800.0
#: An end may give no result so often.
_PATIENCE: Final = 2
#: Stands for a build in such a command.
HERE: Final = "{}"


@dataclass(frozen=True, slots=True)
class Point:
    """One thing to be tried. ``options``: of pytest. ``command``: puts it into effect, where one does."""

    name: str
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def releases(good: str, bad: str) -> list[Point]:
    """Return the releases from ``good`` to ``bad``, in their order or against it.

    :raises ConfigurationError: there is no such release, or both are the same.
    """
    from harness.lab.known_defects import known_releases

    known = known_releases()
    for name in (good, bad):
        if name not in known:
            raise unknown_name("release", name, known, "emulated systems")
    return [Point(name, (f"--hil-release={name}",)) for name in _between(known, good, bad)]


def defects(good: str, bad: str) -> list[Point]:
    """Return ``good`` with ever more of the defects that ``bad`` has and it has not, the last with all.

    :param good, bad: such as ``corrected``, or ``stx-8+old-flag-kept``: a release, with defects besides.
    :raises ConfigurationError: there is no such release or defect, or nothing between the two.
    """
    from harness.lab.known_defects import known_defect, known_defects

    def of(said: str) -> tuple[str, list[str]]:
        release, *besides = said.split("+")
        own = [each["name"] for each in known_defects(release)] if release != "corrected" else []
        return release, [*own, *(known_defect(name)["name"] for name in besides)]

    (release, had), (_, has) = of(good), of(bad)
    more = [name for name in has if name not in had]
    if not more:
        raise ConfigurationError(
            f"{bad} has no known defect that {good} has not.", hint="`hil defects list --release NAME`."
        )
    base = (f"--hil-release={release}", *(f"--hil-defect={name}" for name in good.split("+")[1:]))
    points = [Point(good, base)]
    for at, name in enumerate(more, start=1):
        points.append(Point(name, (*base, *(f"--hil-defect={each}" for each in more[:at]))))
    return points


def alone(points: Sequence[Point], at: int) -> Point:
    """Return a point of :func:`defects` without the defects that come before its own."""
    return Point(points[at].name, (*points[0].options, f"--hil-defect={points[at].name}"))


def builds(where: Path, good: str, bad: str, command: str, image: str) -> list[Point]:
    """Return the builds from ``good`` to ``bad``: the lines of a file, or the files of a folder by name.

    :param command: puts one into effect, in place of ``{}``; empty: scenarios flash it under the name
        ``image``.
    :raises ConfigurationError: there is no such list or build, or the command does not say where it goes.
    """
    if command and HERE not in command:
        raise ConfigurationError(f"--with {command!r} does not say where a build goes.", hint="Write {}.")
    try:
        if where.is_dir():
            known = sorted(str(path) for path in where.iterdir() if not path.name.startswith("."))
        else:
            lines = where.read_text(encoding="utf-8").splitlines()
            known = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    except OSError as error:
        raise _unreadable(where, error.strerror or str(error)) from None
    except ValueError:
        raise _unreadable(where, "it is no text") from None
    ends = [_named(known, name, where) for name in (good, bad)]
    words = _words(command)
    return [
        Point(
            name,
            () if command else (f"--hil-image={image}={name}",),
            tuple(word.replace(HERE, name) for word in words),
        )
        for name in _between(known, *ends)
    ]


def _unreadable(where: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"The builds {where} cannot be read: {why}.", hint="Name a list, a build a line, or a folder of them."
    )


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(
            f"--with {command!r} is no command: {error}.", hint="Close its quotation marks."
        ) from None


def _named(known: Sequence[str], name: str, where: Path) -> str:
    found = [each for each in known if name in (each, Path(each).name)]
    if len(found) != 1:
        raise unknown_name("build", name, [Path(each).name for each in known], str(where))
    return found[0]


def _between(known: Sequence[str], good: str, bad: str) -> list[str]:
    first, last = known.index(good), known.index(bad)
    if first == last:
        raise ConfigurationError(f"{good} is said to be good and bad.", hint="Name two that differ.")
    found = list(known[min(first, last) : max(first, last) + 1])
    return found if first < last else found[::-1]


@dataclass
class Bisected:
    """A bisection of ``points``, the first of which is said to be good and the last bad.

    ``search`` and ``steps`` are what is known so far; ``interrupted``: by Ctrl-C.

    :param target: what is run. :param sights: what makes it bad; none: something that is not as stated.
    :param told: is called after each run, with what is known since.
    """

    runner: Runner
    target: str
    points: Sequence[Point]
    sights: Sequence[Sight] = ()
    told: Callable[[Step, Count], None] = lambda step, count: None
    search: Search = field(init=False)
    steps: list[Step] = field(default_factory=list)
    interrupted: bool = False
    _in_effect: str = ""
    _lacking: str = ""

    def __post_init__(self) -> None:
        self.search = Search(len(self.points))

    def run(self, *, runs: int, confidence: float, tries: int) -> None:
        """Measure both ends ``runs`` times, then search, until that is over or interrupted.

        :param tries: runs at most, those of the ends besides.

        :raises ConfigurationError: an end does not show what it should, or no scenario can be read.
        :raises InfrastructureError: an end gives no result, or a build cannot be put into effect.
        """
        try:
            self._run(runs=runs, confidence=confidence, tries=tries)
        except KeyboardInterrupt:
            self.interrupted = True

    def _run(self, *, runs: int, confidence: float, tries: int) -> None:
        for step in measure_ends(self.search, self._look, runs):
            self._note(step)
            if step.shown is None and self._silent(step.point) > _PATIENCE:
                name = self.points[step.point].name
                raise InfrastructureError(
                    f"{name} gave no result: {self._lacking}", hint="`hil run` says more."
                )
        self._check_ends()
        for step in bisect(self.search, self._look, confidence=confidence, runs=tries):
            self._note(step)

    def try_alone(self, point: Point, runs: int) -> Count:
        """Return how often a point outside of the row shows what is looked for."""
        count = Count()
        try:
            for _ in range(runs):
                shown = self._shown(point)
                if shown is not None:
                    count.add(shown)
        except KeyboardInterrupt:
            self.interrupted = True
        return count

    def _note(self, step: Step) -> None:
        self.steps.append(step)
        self.told(step, self.search.counts[step.point])

    def _silent(self, at: int) -> int:
        return sum(step.point == at and step.shown is None for step in self.steps)

    def _check_ends(self) -> None:
        good, bad = self.search.counts[0], self.search.counts[-1]
        if certainly_more(bad, good) >= APART:
            return
        names = self.points[0].name, self.points[-1].name
        what = " and ".join(map(str, self.sights)) or "something that is not as stated"
        said = f"{good.shown} of {good.runs} runs of {names[0]}", f"{bad.shown} of {bad.runs} of {names[1]}"
        if bad.shown == 0:
            why = f"the bad end, {names[1]}, does not show {what}"
        elif good.shown == good.runs:
            why = f"the good end, {names[0]}, shows {what}"
        else:
            why = "the two ends cannot be told apart"
        raise ConfigurationError(
            f"There is nothing to bisect: {why} ({said[0]}, {said[1]}).",
            hint="Exchange --good and --bad, say what is looked for with --keep, or look more often: --runs.",
        )

    def _look(self, at: int) -> bool | None:
        return self._shown(self.points[at])

    def _shown(self, point: Point) -> bool | None:
        if point.command and point.name != self._in_effect:
            _put_into_effect(point)
            self._in_effect = point.name
        trial = self.runner.run(self.target, point.options)
        trial.check()
        self._lacking = trial.without_result
        return None if self._lacking else self._is_bad(trial)

    def _is_bad(self, trial: Trial) -> bool:
        if self.sights:
            return trial.showing(self.sights) is not None
        return any(each.state == "not-as-stated" for each in trial.scenarios)


def _put_into_effect(point: Point) -> None:
    """:raises InfrastructureError: the command fails, or does not end."""
    try:
        done = subprocess.run(
            point.command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except OSError as error:
        raise _not_in_effect(point, f"cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise _not_in_effect(point, f"did not end within {_COMMAND_SECONDS:g} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-300:]
        raise _not_in_effect(point, f"ended with {done.returncode}: {said or 'it said nothing'}")


def _not_in_effect(point: Point, why: str) -> InfrastructureError:
    return InfrastructureError(
        f"{shlex.join(point.command)} {why}.", hint="Run this command by hand; --with says what it is."
    )

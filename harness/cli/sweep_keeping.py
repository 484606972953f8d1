"""The folder of a sweep: a new one, or that of one that was cut off; its progress, and what is kept in it."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.form import Form
from harness.errors import ConfigurationError, InfrastructureError
from harness.interruption import stopped_is_interrupted

if TYPE_CHECKING:
    from harness.scenarios.image_sweep import ImageSweep
    from harness.scenarios.sweep import Sweep, Swept
    from harness.scenarios.sweep_results import SweepResult, Trial

ReportsOption = Annotated[Path, typer.Option(help="Where runs are kept.")]
ResumeOption = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Go on with the sweep in this folder of a run.")
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Begin anew, also where the same sweep was cut off before.")
]


def words(text: str, option: str) -> list[str]:
    """Return the words between commas, each once. :raises ConfigurationError: there is none."""
    names = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not names:
        raise ConfigurationError(f"{option} names nothing.", hint="Write names with commas between.")
    return names


def known_names(names: list[str], known: Iterable[str], what: str, hint: str) -> list[str]:
    """Return ``names``. :raises ConfigurationError: one is none of ``known``, with the nearest spelling."""
    from harness.inventory.entries import nearest

    every = list(known)
    for name in names:
        if name not in every:
            close = nearest(name, every)
            raise ConfigurationError(
                f"There is no {what} {name!r}.", hint=f"Did you mean {close!r}?" if close else hint
            )
    return names


def place(swept: Swept, reports: Path, resume: Path | None, *, fresh: bool) -> Path:
    """Return the folder for a sweep: the one named, one like it that was cut off, or a new one.

    :raises ConfigurationError: what is named is no such sweep, or somebody works on it.
    """
    from harness.record.runs import is_held, new_run_dir
    from harness.scenarios.sweep_journal import read_head, unfinished

    name, options = swept.kind.name, json.loads(json.dumps(dict(swept.options)))
    if resume is None:
        found = None if fresh else unfinished(reports, name, options)
        return found or new_run_dir(reports)
    head = read_head(resume)
    differ = [key for key in options if head["options"].get(key) != options[key]]
    if head["operation"] != name or differ:
        what = f"has other {', '.join(differ)}" if differ else "is not"
        raise ConfigurationError(
            f"The sweep in {resume} is `hil sweep {head['operation']}`, and what was asked for {what}.",
            hint=f"It was begun with {json.dumps(head['options'])}.",
        )
    if is_held(resume):
        raise ConfigurationError(f"A process still works on the sweep in {resume}.", hint="Let it end.")
    return resume


def list_or_carry_out(
    swept: ImageSweep,
    listed: bool,
    reports: Path,
    resume: Path | None,
    workers: int,
    output: Form,
    *,
    fresh: bool,
    allow_blocked: bool,
) -> None:
    """Show the points that are passed, where these were asked for; else carry the sweep out, and exit.

    :raises HarnessError: an option is wrong, or what there is cannot be kept.
    """
    if listed:
        _list_points(swept, output)
        return
    folder = place(swept, reports, resume, fresh=fresh)
    form, asked = "json" if output is Form.JSON else "table", swept.plan.points
    code = carried_out(swept, folder, swept.trials, workers, asked, form, allow_blocked=allow_blocked)
    raise typer.Exit(code)


def _list_points(swept: ImageSweep, output: Form) -> None:
    """Show the points that one undisturbed operation passes, for each lane and image."""
    with stopped_is_interrupted():
        found = dict(swept.passed())
    if output is Form.JSON:
        print(json.dumps(found, indent=1))
        return
    for lane, by_image in found.items():
        for image, points in by_image.items():
            print(f"{lane}  {image or 'reset'}: {', '.join(points)}")


def carried_out(
    swept: Swept,
    folder: Path,
    total: int,
    workers: int,
    asked: tuple[str, ...],
    output: str,
    *,
    allow_blocked: bool,
) -> int:
    """Run the sweep in ``folder``, print what it gives, and return the exit code.

    :param total: how many trials there will be; 0: nobody knows.
    :raises HarnessError: an option is wrong, or what there is cannot be kept.
    """
    from harness.scenarios.sweep import Sweep

    progress = _Progress(total)
    sweep = Sweep(swept, folder, progress=progress, workers=workers, asked=asked)
    done = len(sweep.earlier())
    if done:
        of = f" of {total}" if total else ""
        print(f"hil: goes on in {folder}: {done}{of} trials are done (--fresh begins anew)", file=sys.stderr)
    progress.begin(done)
    with stopped_is_interrupted():
        result, unkept = _kept(sweep)
    if output == "json":
        print(json.dumps(result.to_json(), indent=1))
    else:
        from harness.cli.sweep_text import render

        print(render(result, colour=sys.stdout.isatty()))
        print("" if unkept else f"kept in {folder}")
    if unkept is not None:
        raise unkept
    return result.exit_code(allow_blocked=allow_blocked)


def _kept(sweep: Sweep) -> tuple[SweepResult, InfrastructureError | None]:
    """Run the sweep and keep in its folder what a run keeps; return why that could not be, if so."""
    from harness.record.runs import make_run_dir

    held = make_run_dir(sweep.run_dir)
    try:
        result = sweep.run()
        try:
            _keep(result, sweep.run_dir)
        except InfrastructureError as error:
            return result, error
        return result, None
    finally:
        os.close(held)


def _keep(result: SweepResult, run_dir: Path) -> None:
    """Write trials and results. :raises InfrastructureError: they cannot be written."""
    from harness.judgement.judge import judge
    from harness.record.runs import point_latest_at, read_run
    from harness.report.files import write_whole
    from harness.report.results import write_results
    from harness.scenarios.sweep_journal import RESULT

    text = json.dumps(result.to_json(), indent=1) + "\n"
    hint = "What was recorded until then is in the histories beside it; make room for the next sweep."
    write_whole(run_dir / RESULT, text, what="The trials", hint=hint)
    write_results(run_dir, judge(read_run(run_dir)))
    point_latest_at(run_dir)


class _Progress:
    """One line for each trial on standard error, with the time that is left by the trials so far."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = self._made = 0
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def begin(self, done: int) -> None:
        """Count what need not be tried again."""
        self._done = done
        self._began = time.monotonic()

    def spared(self, count: int) -> None:
        """Count trials that there will not be."""
        with self._lock:
            self._total -= count

    def told(self, trial: Trial) -> None:
        """Show one more trial."""
        with self._lock:
            self._done += 1
            self._made += 1
            spent = time.monotonic() - self._began
            left = spent / self._made * max(0, self._total - self._done)
            of = f"{self._done}/{self._total}" if self._total else f"{self._done}"
            said = f"reported {trial.reported}, it is {trial.truth}" if trial.reported else trial.verdict
            rest = f"  ({left:.0f} s left)" if self._total else ""
            named = " ".join(filter(None, (trial.lane, trial.of, trial.action)))
            print(f"{of} {named} {trial.point}: {said}{rest}", file=sys.stderr)

"""How `hil doctor` shows what it found: a line for each part, and each trouble with its fix beneath."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence

import typer

from harness.display_width import cut, display_width, padded
from harness.doctor.model import Diagnosis, Difference, Part
from harness.health.checks import Check, Grade
from harness.report.printable import printable


def page(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines of a diagnosis."""
    width = max(display_width(part.title) for part in diagnosis.parts)
    for part in diagnosis.parts:
        yield f"{part.grade.value:5} {padded(part.title, width)}  {_line(_summary(part))}".rstrip()
        for check in part.checks:
            yield from _beneath(check)
    bad, doubtful = diagnosis.count(Grade.BAD), diagnosis.count(Grade.WARN)
    yield ""
    if not bad and not doubtful:
        yield f"Nothing is wrong with the lab {diagnosis.lab}."
    else:
        yield f"The lab {diagnosis.lab}: {bad} bad, {doubtful} in doubt."


def _summary(part: Part) -> str:
    """Return what is well with a part; what is not stands beneath."""
    well = [check.finding for check in part.checks if check.grade is Grade.OK]
    return "; ".join([*well, *([f"health: {part.health}"] if part.health else [])])


def _beneath(check: Check) -> Iterator[str]:
    if check.grade is Grade.OK:
        return
    yield f"      {check.grade.value} {check.name}: {_line(check.finding)}"
    for number, line in enumerate(check.hint.splitlines()):
        yield f"      {'fix:' if not number else '    '} {_line(line)}"


def change(difference: Difference) -> str:
    """Return a change in one line."""
    step = f"{difference.before or 'new'} -> {difference.after}"
    told = f"{difference.part.title}: {difference.what} {step}"
    finding = f": {_line(difference.finding)}" if difference.finding else ""
    fix = f" (fix: {_line(difference.hint)})" if difference.hint and difference.after != "ok" else ""
    return f"{told}{finding}{fix}"


def show_progress(done: int, of: int, waiting: Sequence[str]) -> None:
    """Say on standard error how far the look is; on a terminal in place, elsewhere nothing but the end."""
    if not sys.stderr.isatty():
        return
    text = f"{done} of {of} looked at" + (f"; waiting for {', '.join(waiting)}" if waiting else "")
    typer.echo(f"\r{cut(text, shutil.get_terminal_size().columns - 1)}\x1b[K", err=True, nl=done == of)


def _line(text: str) -> str:
    return printable(" ".join(text.split()), layout="")

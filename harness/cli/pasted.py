"""Arguments of the commands that read pasted files: which files, and by how much their clocks differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from harness.errors import ConfigurationError

PASTED = typer.Argument(help="Files with what was pasted, plain or packed by gzip; - for standard input.")
SkewOption = Annotated[
    list[str] | None,
    typer.Option(
        "--skew",
        metavar="FILE=SECONDS",
        help="By how many seconds the clock behind a file is ahead of the others; may be repeated.",
    ),
]
#: A clock that is further off is none.
_MOST = 100 * 366 * 86400.0


def skews(said: Iterable[str] | None, files: Sequence[Path]) -> dict[str, float]:
    """Return file -> seconds by which its clock is ahead.

    :raises ConfigurationError: one is not said as FILE=SECONDS, or is of a file that is not read.
    """
    found: dict[str, float] = {}
    for each in said or ():
        name, equals, text = each.rpartition("=")
        try:
            seconds = float(text)
        except ValueError:
            seconds = float("nan")
        if not equals or not name or not abs(seconds) <= _MOST:
            raise ConfigurationError(
                f"--skew {each!r} does not say by how much a clock is ahead.",
                hint="Write it as FILE=SECONDS, such as dockerd.log=2.5 or registry.log=-3600.",
            )
        if Path(name) not in files:
            raise ConfigurationError(
                f"--skew {each!r} is about a file that is not read.",
                hint=f"These are: {', '.join(map(str, files))}.",
            )
        found[str(Path(name))] = seconds
    return found

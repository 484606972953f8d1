"""`hil judge`: judges a stored history again, to the same result as when it was recorded."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.errors import EXIT_INTERRUPTED, ConfigurationError, worst_exit_code

if TYPE_CHECKING:
    from harness.judgement.records import Record

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_EPILOG = """Examples:

  hil judge reports/latest

  hil judge reports/latest/history.jsonl -o json

Exit codes: those of `hil run`, from the judgement alone; 130 where the history does not end by itself.
"""


@app.command(name="judge", epilog=_EPILOG)
def judge_command(
    history: Annotated[Path, typer.Argument(help="A history file, or the folder of a run.")],
    output: Annotated[Literal["table", "json"], typer.Option("-o", help="table or json.")] = "table",
) -> None:
    """Judge a stored history again."""
    from harness.judgement.judge import judge

    paths = history_files(history)
    judgement = judge(_records(paths))
    if output == "json":
        from harness.report.results import results_json

        print(json.dumps(results_json(judgement), indent=1))
    else:
        from harness.report.summary import render

        print(render(judgement, history, colour=sys.stdout.isatty()))
    code = worst_exit_code(set(judgement.exit_codes))
    raise typer.Exit(code if judgement.finished else EXIT_INTERRUPTED)


def history_files(path: Path) -> list[Path]:
    """Return the histories at ``path``: itself, or those in it where it is the folder of a run.

    :raises ConfigurationError: there are none.
    """
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("history*.jsonl"))
    if not found:
        raise ConfigurationError(
            f"There is no history in {path}.",
            hint="Name a folder that `hil run` left below reports/, such as reports/latest.",
        )
    return found


def _records(paths: list[Path]) -> Iterator[Record]:
    from harness.record.history import read_history

    for path in paths:
        yield from read_history(path, partial(_torn, path))


def _torn(path: Path, line: int) -> None:
    from harness.report.printable import printable

    print(printable(f"{path}:{line}: the last line is not whole and was left out"), file=sys.stderr)

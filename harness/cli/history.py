"""`hil history`: the same scenario on the same device over past runs, from the index of all runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from harness.cli.form import Form, FormOption
from harness.errors import ConfigurationError, InfrastructureError

if TYPE_CHECKING:
    from harness.store.index import Index
    from harness.store.past import Course, PastRun

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_EPILOG: Final = """Examples:

  hil history show unsigned --device subcloud1/card0 --last 30

  hil history runs -o json

  hil history import reports

  hil history prune --days 90 --dry-run

In a course the latest is on the right: + as stated, ! not as stated, . no result.
"""
_SIGNS: Final = {"as-stated": "+", "not-as-stated": "!"}
_REPORTS: Final = Path("reports")
StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="sqlite:///FILE or postgresql://...; default: HIL_STORE, else index.sqlite in --reports.",
    ),
]
ReportsOption = Annotated[Path, typer.Option(help="Where runs are kept.")]
LastOption = Annotated[int, typer.Option(min=1, help="So many, the latest ones.")]


@app.callback(invoke_without_command=True, epilog=_EPILOG)
def history(context: typer.Context) -> None:
    """Show how scenarios went on devices, run after run; list, import or prune runs."""
    if context.invoked_subcommand is None:
        show()


@app.command(epilog=_EPILOG)
def show(
    words: Annotated[list[str] | None, typer.Argument(help="Parts of the scenarios' names.")] = None,
    device: Annotated[str, typer.Option(help="Only on this device, such as subcloud1/card0.")] = "",
    last: LastOption = 20,
    store: StoreOption = None,
    reports: ReportsOption = _REPORTS,
    output: FormOption = Form.TABLE,
) -> None:
    """Show how scenarios went on devices, run after run."""
    from harness.store.past import COURSES, courses

    with _index(store, reports) as index:
        found = courses(index.engine, words or [], device=device, last=last)
    if output is Form.JSON:
        typer.echo(json.dumps([asdict(course) | {"flaky": course.flaky} for course in found], indent=1))
        return
    if not found:
        typer.echo("No result of such a scenario is in the index.", err=True)
        return
    _print([("COURSE", "LATEST", "WHEN", "DEVICE", "SCENARIO"), *map(_course, found)])
    flaky = sum(course.flaky for course in found)
    more = ", those that ran last" if len(found) == COURSES else ""
    typer.echo(f"\nRows: {len(found)}{more}; went both ways in these runs: {flaky}.")


@app.command(epilog=_EPILOG)
def runs(
    last: LastOption = 20,
    store: StoreOption = None,
    reports: ReportsOption = _REPORTS,
    output: FormOption = Form.TABLE,
) -> None:
    """List the latest runs.

    One whose process was killed is interrupted.
    """
    from harness.store.past import past_runs

    with _index(store, reports) as index:
        found = past_runs(index.engine, last)
    if output is Form.JSON:
        typer.echo(json.dumps([asdict(run) for run in found], indent=1))
        return
    _print([("RUN", "BEGAN", "LAB", "MACHINE", "STATE", "SCENARIOS"), *map(_run, found)])


@app.command("import", epilog=_EPILOG)
def take(
    folders: Annotated[list[Path] | None, typer.Argument(help="Of runs, or what holds them.")] = None,
    store: StoreOption = None,
    reports: ReportsOption = _REPORTS,
) -> None:
    """Make entries from the histories of runs.

    In place of what the index has of these runs.
    """
    from harness.record.runs import is_held
    from harness.store.index import has_history

    given = folders or [reports]
    found = [run for folder in given for run in _runs_in(folder)]
    if not found:
        raise ConfigurationError(
            f"There is no run in {', '.join(map(str, given))}.",
            hint="Name folders that `hil run` left, or the folder that they are in.",
        )
    failed = []
    with _index(store, reports, new=True) as index:
        for run in filter(has_history, found):
            if is_held(run):
                typer.echo(f"{run}: left out: it still goes on", err=True)
                continue
            try:
                taken = index.take(run)
            except ConfigurationError as error:
                failed.append(run)
                typer.echo(f"{run}: left out: {error.message}", err=True)
            else:
                typer.echo(f"{run}: scenarios {taken[1]}" if taken else f"{run}: left out: it says no run")
    if failed:
        raise ConfigurationError(
            f"{len(failed)} of {len(found)} runs could not be read.", hint="The others are in the index."
        )


@app.command(epilog=_EPILOG)
def prune(
    days: Annotated[float, typer.Option(min=0, help="Runs that began more than so many days ago.")] = 90,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    store: StoreOption = None,
    reports: ReportsOption = _REPORTS,
) -> None:
    """Remove old runs, and their folders.

    From the index; the folders only where they are in --reports.
    """
    import shutil

    from harness.store.index import has_history
    from harness.store.past import forget, older_than

    did = "would remove" if dry_run else "removed"
    kept = []
    with _index(store, reports) as index:
        old = older_than(index.engine, days)
        for run in old:
            folder = Path(run.folder)
            own = folder.parent == reports.resolve() and has_history(folder)
            try:
                if own and not dry_run:
                    shutil.rmtree(folder)
            except OSError as error:
                kept.append(run.run)
                typer.echo(f"{run.run} stays: {error}", err=True)
                continue
            if not dry_run:
                forget(index.engine, [run])
            typer.echo(f"{did} {run.run}" + ("" if own else " (its folder is not in --reports and stays)"))
    latest = reports / "latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
    typer.echo(f"Runs that began more than {days:g} days ago: {len(old)}")
    if kept:
        raise InfrastructureError(
            f"Runs that could not be removed: {len(kept)}.", hint="They are still in the index."
        )


@contextmanager
def _index(store: str | None, reports: Path, *, new: bool = False) -> Iterator[Index]:
    from harness.store.opening import missing_file
    from harness.store.place import VARIABLE, index_url

    url = index_url(reports, store)
    if url is None:
        raise ConfigurationError(f"There is no index: {VARIABLE} or --store says none.")
    file = missing_file(url)
    if not new and file is not None:
        raise ConfigurationError(
            f"There is no index at {file} yet.",
            hint=f"A run makes it; of earlier runs: hil history import {reports}",
        )
    from harness.store.index import Index

    with Index(url) as index:
        yield index


# -- words ------------------------------------------------------------------------------------------------


def _course(course: Course) -> tuple[str, ...]:
    strip = "".join(_SIGNS.get(result.state, ".") for result in reversed(course.results))
    latest = course.results[0]
    worst = f" {latest.worst}" if latest.worst not in ("", "MATCH") else ""
    flaky = "  (flaky)" if course.flaky else ""
    return strip, latest.state + worst, _when(latest.began), course.device, course.scenario + flaky


def _run(run: PastRun) -> tuple[str, ...]:
    counts = ", ".join(f"{count} {state}" for state, count in run.states.items()) or "none"
    return run.run, _when(run.began), run.lab, run.machine, run.state, counts


def _when(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def _print(table: Sequence[Sequence[str]]) -> None:
    from harness.report.printable import printable

    shown = [[printable(cell, "") for cell in row] for row in table]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]))]
    for row in shown:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _runs_in(folder: Path) -> list[Path]:
    from harness.store.index import has_history

    folder = folder.parent / folder.readlink() if folder.is_symlink() else folder
    if has_history(folder):
        return [folder]
    return sorted(filter(has_history, folder.iterdir())) if folder.is_dir() else []

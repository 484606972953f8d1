"""`hil report`: the page of a run, and the same results in the formats that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from harness.errors import ConfigurationError, InfrastructureError

if TYPE_CHECKING:
    from harness.judgement.judge import Judgement
    from harness.report.statement.rules import Requirement

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)
_LATEST: Final = Path("reports/latest")
_EPILOG: Final = """Examples:

  hil report open reports/latest

  hil report html reports/latest --to run.html
"""
_WRITE_EPILOG: Final = (
    "Examples:  hil report write junit --to junit.xml    hil report write csv reports/latest"
)
_STATEMENT_EPILOG: Final = """Examples:

  hil report statement reports/latest --to statement

  hil report verify statement
"""
RunArgument = Annotated[Path, typer.Argument(help="The folder of a run.")]


class Format(str, Enum):
    """What a build server, a spreadsheet or a text takes."""

    JUNIT = "junit"
    CSV = "csv"
    MARKDOWN = "markdown"
    JSON = "json"


@app.command("open", epilog=_EPILOG)
def open_page(run: RunArgument = _LATEST) -> None:
    """Show the page of a run in the browser.

    Where it is, is printed; one that is missing is made.
    """
    import webbrowser

    from harness.report.page.writing import FILE_NAME

    folder = _folder(run)
    page = folder / FILE_NAME
    if not page.exists():
        page = _written(folder, None)
    typer.echo(page)
    if not webbrowser.open(page.resolve().as_uri()):
        typer.echo("No browser was found here: open the file in one.", err=True)


@app.command(epilog=_EPILOG)
def html(
    run: RunArgument = _LATEST,
    to: Annotated[
        Path | None, typer.Option(help="The file; default: report.html in the run's folder.")
    ] = None,
) -> None:
    """Write the page of a run: one file.

    The run is judged again for it.
    """
    typer.echo(_written(_folder(run), to))


@app.command(epilog=_WRITE_EPILOG)
def write(
    form: Annotated[Format, typer.Argument(help="What to write.")],
    run: RunArgument = _LATEST,
    to: Annotated[Path | None, typer.Option(help="The file; default: standard output.")] = None,
) -> None:
    """Write results as JUnit XML, CSV, Markdown, JSON.

    The run is judged again for it.
    """
    import json

    from harness.judgement.judge import judge
    from harness.record.runs import read_run
    from harness.report.junit import junit_xml
    from harness.report.results import results_json
    from harness.report.tables import results_csv, results_markdown

    writers: dict[Format, Callable[[Judgement], str]] = {
        Format.JUNIT: lambda found: junit_xml(found, _claimed(found)),
        Format.CSV: results_csv,
        Format.MARKDOWN: results_markdown,
        Format.JSON: lambda found: json.dumps(results_json(found), indent=1) + "\n",
    }
    text = writers[form](judge(read_run(_folder(run))))
    if to is None:
        typer.echo(text, nl=False)
        return
    try:
        to.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InfrastructureError(f"{to} cannot be written: {error.strerror}.") from error
    typer.echo(to)


@app.command(epilog="Example:\n\n  hil report allure results --to page")
def allure(
    results: Annotated[Path, typer.Argument(help="What `hil run --allure` wrote.")],
    to: Annotated[Path, typer.Option(help="A new folder for the report.")],
) -> None:
    """Make Allure's own report of its results.

    By its program `allure`, or by npm's npx, where one of them is there.
    """
    from harness.report.allure_page import write_allure

    typer.echo(write_allure(results, to))


@app.command(epilog=_STATEMENT_EPILOG)
def statement(
    runs: Annotated[list[Path], typer.Argument(help="The folders of the runs that qualify.")],
    to: Annotated[Path, typer.Option(help="A new folder for the statement and its evidence.")],
    qualification: Annotated[
        Path | None, typer.Option(help="The kill matrix: what `hil qualify -o json` printed.")
    ] = None,
    waivers: Annotated[Path | None, typer.Option(help="Who answers for which deviation.")] = None,
    title: Annotated[str, typer.Option(help="What is qualified.")] = "Qualification",
) -> None:
    """Write a qualification statement, GO or NO-GO.

    With copies of its evidence. Exits with 1 where it is NO-GO.
    """
    import datetime

    from harness.judgement.judge import judge
    from harness.record.runs import read_run
    from harness.report.statement.facts import facts_of
    from harness.report.statement.rules import decide
    from harness.report.statement.waivers import read_waivers
    from harness.report.statement.writing import Statement, write_statement

    folders = [_folder(run) for run in runs]
    judgement = judge(record for folder in folders for record in read_run(folder))
    matrix = _kill_matrix(qualification) if qualification else None
    requirements = _requirements(judgement)
    waived = read_waivers(waivers) if waivers else []
    today = datetime.datetime.now(datetime.UTC).date()
    decision = decide(judgement, requirements, matrix, waived, today)
    facts = facts_of(record for folder in folders for record in read_run(folder))
    said = Statement(title, today, decision, facts, judgement, requirements, matrix)
    try:
        typer.echo(write_statement(said, to, [*folders, *filter(None, (qualification, waivers))]))
    finally:
        open_ones = [one for one in decision.deviations if one.waiver is None]
        typer.echo("GO" if decision.go else f"NO-GO: {len(open_ones)} deviations that nobody answers for")
    if not decision.go:
        raise typer.Exit(1)


@app.command(epilog=_STATEMENT_EPILOG)
def verify(
    folder: Annotated[Path, typer.Argument(help="What `hil report statement` wrote.")],
) -> None:
    """Hold the evidence of a statement to its manifest.

    Exits with 1 where a file is another one.
    """
    from harness.report.printable import printable
    from harness.report.statement.manifest import departures

    found = departures(folder)
    for departure in found:
        typer.echo(printable(departure, ""))
    if found:
        raise typer.Exit(1)
    typer.echo(f"{folder}: every file is as the manifest has it")


def _claimed(judgement: Judgement) -> dict[str, tuple[str, ...]]:
    """Return which requirements the judged scenarios say that they prove."""
    from harness.plugin.tracing import claimed_by
    from harness.scenarios.requirements import FILE, cell_of

    if not FILE.exists():
        return {}
    claimed = claimed_by([str(FILE.parent)], None)
    return {one.name: claimed.get(cell_of(one.name), ()) for one in judgement.scenarios}


def _kill_matrix(path: Path) -> dict[str, Any]:
    import json

    try:
        matrix = json.loads(path.read_text(encoding="utf-8"))["kill_matrix"]
        whole = all({"id", "reference", "predicts", "detected_by"} <= row.keys() for row in matrix["defects"])
        if not whole or not all({"scenario", "unstated"} <= row.keys() for row in matrix["false_alarms"]):
            raise ValueError("a row of it lacks something")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} holds no kill matrix: {error}.", hint="hil qualify -o json > kill-matrix.json"
        ) from None
    return dict(matrix)


def _requirements(judgement: Judgement) -> list[Requirement]:
    """Return the requirements of the project, with how their scenarios went in the judged runs."""
    from harness.plugin.tracing import claimed_by
    from harness.report.statement.rules import Requirement
    from harness.scenarios.requirements import FILE, Last, cell_of, load_requirements, trace

    if not FILE.exists():
        return []
    last = {cell_of(one.name): Last(one.state, "", 0.0) for one in judgement.scenarios}
    ran = {name.partition("[")[0] for name in last}
    return [
        Requirement(each.id, each.text, {p.scenario: p.state for p in each.proofs if p.scenario in ran})
        for each in trace(load_requirements(), claimed_by([str(FILE.parent)], None), last)
    ]


def _folder(run: Path) -> Path:
    from harness.record.runs import histories

    if not run.is_dir() or not histories(run):
        raise ConfigurationError(
            f"There is no run in {run}.",
            hint="Name a folder that `hil run` left below reports/; reports/latest is the newest.",
        )
    # `latest` leads to another run one day: what is written says which one it was.
    return run.parent / run.readlink() if run.is_symlink() else run


def _written(folder: Path, to: Path | None) -> Path:
    from harness.judgement.judge import judge
    from harness.record.runs import read_run
    from harness.report.page.writing import write_page

    return write_page(folder, judge(read_run(folder)), read_run(folder), to)

"""`hil report`: the page of a run, and the same results in the formats that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from harness.cli.statement import STATEMENT_EPILOG, statement, verify
from harness.errors import ConfigurationError, InfrastructureError

if TYPE_CHECKING:
    from harness.judgement.judge import Judgement

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Show the page of a run; write results and statements for others.",
)
app.command(epilog=STATEMENT_EPILOG)(statement)
app.command(epilog=STATEMENT_EPILOG)(verify)
_LATEST: Final = Path("reports/latest")
_EPILOG: Final = """Examples:

  hil report open reports/latest

  hil report html reports/latest --to run.html
"""
_WRITE_EPILOG: Final = (
    "Examples:  hil report write junit --to junit.xml    hil report write csv reports/latest"
)
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

    folder = run_folder(run)
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
    typer.echo(_written(run_folder(run), to))


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
    text = writers[form](judge(read_run(run_folder(run))))
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


def _claimed(judgement: Judgement) -> dict[str, tuple[str, ...]]:
    """Return which requirements the judged scenarios say that they prove."""
    from harness.plugin.tracing import claimed_by
    from harness.scenarios.requirements import FILE, cell_of

    if not FILE.exists():
        return {}
    claimed = claimed_by([str(FILE.parent)], None)
    return {one.name: claimed.get(cell_of(one.name), ()) for one in judgement.scenarios}


def run_folder(run: Path) -> Path:
    """Return the folder of a run. :raises ConfigurationError: there is no run there."""
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

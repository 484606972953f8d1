"""`hil report`: the page of a run, and the same results in the formats that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from harness.errors import ConfigurationError, InfrastructureError

if TYPE_CHECKING:
    from harness.judgement.judge import Judgement

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)
_LATEST: Final = Path("reports/latest")
_EPILOG: Final = "Examples:  hil report open    hil report html reports/latest --to run.html"
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
    """Show the page of a run in the browser, and print where it is; one that is missing is made."""
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
    """Judge a run again and write its page: one file, with everything in it."""
    typer.echo(_written(_folder(run), to))


@app.command(epilog=_WRITE_EPILOG)
def write(
    form: Annotated[Format, typer.Argument(help="What to write.")],
    run: RunArgument = _LATEST,
    to: Annotated[Path | None, typer.Option(help="The file; default: standard output.")] = None,
) -> None:
    """Judge a run again and write its results as JUnit XML, CSV, Markdown or JSON."""
    import json

    from harness.judgement.judge import judge
    from harness.record.runs import read_run
    from harness.report.junit import junit_xml
    from harness.report.results import results_json
    from harness.report.tables import results_csv, results_markdown

    writers: dict[Format, Callable[[Judgement], str]] = {
        Format.JUNIT: junit_xml,
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

"""`hil defects`: the known defects of systems, cards, tools, registries and clients that a lab can have."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from harness.cli.form import Form, FormOption
from harness.cli.releases import defect_names, release_names

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Show the known defects that an emulated lab can have.",
)


ReleaseOption = Annotated[
    str | None,
    typer.Option(
        "--release",
        metavar="NAME",
        help="Only what holds in this release.",
        autocompletion=release_names,
    ),
]


KindOption = Annotated[
    str | None,
    typer.Option("--kind", metavar="KIND", help="Only of a system, cloud, card, tool, registry or client."),
]


@app.callback()
def _defects() -> None:
    """Show the known defects that an emulated lab can have."""


@app.command("list", short_help="List them.", epilog="Example:  hil defects list --release stx-8")
def list_defects(
    release: ReleaseOption = None, kind: KindOption = None, output: FormOption = Form.TABLE
) -> None:
    """List the known defects: name, of what, what detects each, and what it makes whom claim."""
    from harness.lab.known_defects import known_defects

    found = known_defects(release, kind)
    if output is Form.JSON:
        typer.echo(json.dumps(found, indent=2))
        return
    if not found:
        typer.echo(f"The release {release} has none." if release else f"There is none of a {kind}.")
        return
    width = max(len(defect["name"]) for defect in found)
    for defect in found:
        typer.echo(
            f"{defect['name']:{width}}  {defect['kind']:8}  {defect['predicts']:16}  {defect['claims']}"
        )


@app.command(short_help="Show one.", epilog="Example:  hil defects show old-flag-kept")
def show(
    name: Annotated[str, typer.Argument(help="As `hil defects list` has it.", autocompletion=defect_names)],
    output: FormOption = Form.TABLE,
) -> None:
    """Show all that is known of a defect, with its reference and the releases that have it."""
    from harness.lab.known_defects import known_defect

    defect = known_defect(name)
    if output is Form.JSON:
        typer.echo(json.dumps(defect, indent=2))
        return
    defect["beside"] = ", ".join(defect["beside"]) or "none: it shows alone"
    defect["generation"] = defect["generation"] or "any"
    defect["releases"] = ", ".join(defect["releases"]) or "none that has a name here"
    for key, value in defect.items():
        typer.echo(f"{key + ':':12}{value}")

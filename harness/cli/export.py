"""`hil export`: makes a scenario file of what a run did, so that it can be done again elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.form import Form, FormOption

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_REPORTS = Path("reports")
_EPILOG = """Examples:

  hil export reports/latest

  hil export reports/latest --scenario test_ctrl_c_while_programming --device bench1/card0

  hil export reports/latest --scenario test_life_of_a_user_image --save again.scenario.yaml

  hil run again.scenario.yaml --inventory other.yaml

The file holds all steps, faults and settings that the history of the run records, and expects what was found
then. Several scenarios become one, in their order. Cards are named only where the run named them.

Exit codes: 0 exported, 2 usage, or the run did what no file can say (what lacks is listed).
"""


def run_folders(incomplete: str) -> list[str]:
    """Return the runs below ``reports``, for completion."""
    found = [str(path) for path in _REPORTS.glob("*") if path.is_dir() and any(path.glob("history*.jsonl"))]
    return sorted(path for path in found if path.startswith(incomplete))


RunArgument = Annotated[
    Path, typer.Argument(help="The folder of a run, or a history.", autocompletion=run_folders)
]
ScenarioOption = Annotated[
    str, typer.Option("--scenario", metavar="NODEID", help="Only this one, by its node id or a part of it.")
]
OneDeviceOption = Annotated[
    str, typer.Option("--device", metavar="HOST/CARD", help="Only what was done to this card.")
]


@app.command(epilog=_EPILOG)
def export(
    run: RunArgument,
    scenario: ScenarioOption = "",
    device: OneDeviceOption = "",
    save: Annotated[Path | None, typer.Option(help="Write it to this scenario file.")] = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Make a scenario file of what a run did: all steps, faults and seeds, from its history alone."""
    from harness.cli.judge import history_files
    from harness.plugin import steps  # noqa: F401 -- it knows them all
    from harness.record.history import read_history
    from harness.scenarios.export import export as exported
    from harness.scenarios.writing import save_scenario

    records = (record for path in history_files(run) for record in read_history(path))
    made = exported(records, scenario=scenario, device=device)
    text = made.text()
    if save is not None:
        save_scenario(save, text)
    if output is Form.JSON:
        said = {
            "schema": "hil-export/1",
            "run": made.run,
            "scenarios": list(made.scenarios),
            "options": list(made.options),
            "remarks": list(made.remarks),
            "file": str(save) if save is not None else None,
            "scenario": made.data,
        }
        typer.echo(json.dumps(said, indent=1, ensure_ascii=False))
    elif save is None:
        typer.echo(text, nl=False)
    else:
        for remark in made.remarks:
            typer.echo(f"{save}: {remark}", err=True)
        typer.echo(f"{save}: hil run {' '.join([str(save), *made.options])}")

"""`hil qualify`: proves that a plan notices every known defect, and raises no alarm where there is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.form import Form, FormOption
from harness.cli.releases import defect_names
from harness.errors import ConfigurationError
from harness.interruption import stopped_is_interrupted

if TYPE_CHECKING:
    from harness.scenarios.kill_matrix import Row, Trial

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_PLANS = Path("testplans")
_EPILOG = """Examples:

  hil qualify

  hil qualify --kind card --jobs 2 -o json

  hil qualify testplans/regression/flash --defect csk-cancelled-not-checked

  hil qualify --full

Each defect is switched on alone in an emulated lab whose systems are `corrected`. It counts as detected
where a scenario finds the outcome or verdict that `hil defects list` predicts, and does not state it.
A qualification that was interrupted or killed goes on where it was.

Exit codes: 0 every defect was detected and nothing diverged without one, 1 a defect was missed or something
diverged without any, 2 usage or configuration, 3 something could not be tried, 130 interrupted (with a
partial matrix).
"""


@app.command(epilog=_EPILOG)
def qualify(
    campaign: Annotated[str, typer.Argument(help="A campaign, or a file or folder of scenarios.")] = (
        "qualification"
    ),
    defect: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this one; may be repeated.", autocompletion=defect_names),
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only of a system, cloud, card, tool, registry or client.")
    ] = None,
    full: Annotated[bool, typer.Option(help="Every scenario with every defect: the whole matrix.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Trials at the same time.")] = 2,
    inventory: Annotated[Path | None, typer.Option(help="The inventory file.")] = None,
    lab: Annotated[str, typer.Option(help="The emulated lab.")] = "qualification",
    device: Annotated[
        list[str] | None,
        typer.Option(help="Cards for scenarios about cards; default: the first of each driver generation."),
    ] = None,
    reports: Annotated[Path, typer.Option(help="Where the state is kept.")] = Path("reports/qualify"),
    fresh: Annotated[bool, typer.Option(help="Begin anew, as after a change of the harness.")] = False,
    output: FormOption = Form.TABLE,
) -> None:
    """Run a plan without any known defect and once with each, and print which scenario notices which."""
    from harness.scenarios.qualification import Qualification, QualificationPlan

    target, defects = _target(campaign), _defects(defect or [], kind or [])
    options, devices = _options(inventory, lab, device or [])
    plan = QualificationPlan(target, defects, options, reports, full=full, jobs=jobs, devices=devices)
    with stopped_is_interrupted():
        matrix = Qualification(plan, _told, _say).run(fresh=fresh)
    if output is Form.JSON:
        typer.echo(json.dumps(matrix.to_json(), indent=1))
    else:
        from harness.cli.qualify_text import render

        typer.echo(render(matrix, colour=sys.stdout.isatty()))
    raise typer.Exit(matrix.exit_code)


def _target(name: str) -> Path:
    """Return what is run. :raises ConfigurationError: there is no such campaign, file or folder."""
    for path in (Path(name), *sorted(_PLANS.rglob(f"{name}.campaign.yaml")), _PLANS / name):
        if path.exists():
            return path
    raise ConfigurationError(
        f"There is no campaign or plan {name!r}.",
        hint=f"Name a file or folder of scenarios, or one below {_PLANS}, such as qualification.",
    )


def _defects(names: list[str], kinds: list[str]) -> list[dict[str, Any]]:
    """Return the defects of these names and kinds; all where none is named."""
    from harness.lab.known_defects import known_defect, known_defects

    found = [known_defect(name) for name in names]
    for kind in kinds:
        found += known_defects(kind=kind)
    return list({each["name"]: each for each in found}.values()) if names or kinds else known_defects()


def _options(
    inventory: Path | None, lab: str, devices: list[str]
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return what pytest is told, and the cards for scenarios about cards, by their drivers' generation.

    :raises ConfigurationError: inventory, lab or a device is wrong.
    """
    from harness.inventory.load import load_inventory
    from harness.inventory.selection import check_devices

    entry = load_inventory(inventory).lab(lab)
    if not entry.emulated:
        raise ConfigurationError(
            f"The lab {lab} has real hosts, and known defects can be switched on in emulated ones alone.",
            hint="Name an emulated lab with --lab, such as qualification.",
        )
    check_devices(entry, devices)
    options = [*([f"--hil-inventory={inventory}"] if inventory else []), f"--hil-lab={lab}"]
    cards = [(host, f"{host.name}/{card.name}") for host, card in entry.cards()]
    chosen = {"": tuple(devices or [name for _, name in cards][:1])}
    for host, name in cards:
        given = not devices or {name, host.name} & set(devices)
        if host.emulated is not None and given:
            chosen.setdefault(host.emulated.generation, (name,))
    return options, chosen


def _say(line: str) -> None:
    print(f"hil: {line}", file=sys.stderr, flush=True)


def _told(row: Row | None, trial: Trial, left: int, seconds: float) -> None:
    """Tell of one trial on standard error, with what is left."""
    found = row.status if row is not None else f"{len(trial.seen)} scenarios"
    by = f" by {row.detected_by[0].rpartition('::')[2]}" if row is not None and row.detected_by else ""
    why = f" ({trial.trouble.partition(chr(10))[0][:120]})" if trial.trouble else ""
    rest = f"{left} left, about {int(seconds) // 60}:{int(seconds) % 60:02}"
    print(f"{trial.name}: {found}{by}{why}  [{trial.seconds:.1f} s; {rest}]", file=sys.stderr, flush=True)

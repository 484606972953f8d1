"""`hil explore`: does to a card in memory what nobody thought of, and holds it to the documents' rules."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.form import Form, FormOption
from harness.cli.releases import defect_names
from harness.errors import ConfigurationError, InfrastructureError
from harness.interruption import stopped_is_interrupted

if TYPE_CHECKING:
    from harness.images.recipes import Recipe
    from harness.lab.card_exploration import Explored

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_EPILOG = """Examples:

  hil explore cards

  hil explore cards --steps 1000000 --seconds 600 --seed 7

  hil explore cards --defect csk-cancelled-not-checked --save found.scenario.yaml

Exit codes: 0 card and documents agreed after every step, 1 they did not (the fewest steps are shown),
2 usage, 3 Hypothesis is not installed, 130 interrupted.
"""


@app.callback(epilog=_EPILOG)
def _explore() -> None:
    """Do what nobody thought of, and hold what comes of it to the documents."""


@app.command(short_help="Explore cards in memory.", epilog=_EPILOG)
def cards(
    steps: Annotated[int, typer.Option(min=1, help="About so many steps at most.")] = 20_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="About so long at most.")] = 60.0,
    wear: Annotated[int, typer.Option(min=1, help="About so many updates at most.")] = 1_000_000,
    seed: Annotated[int | None, typer.Option(help="What decides what is done; default: another one.")] = None,
    defect: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The card has this defect.", autocompletion=defect_names),
    ] = None,
    recipes: Annotated[Path, typer.Option(help="The recipes of the images.")] = Path("fixtures/images.yaml"),
    save: Annotated[Path | None, typer.Option(help="Write a counterexample to this scenario file.")] = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Flash, reset, cut the power, cancel, move: in any order, until card and documents disagree."""
    from harness.lab.card_exploration import explore

    known = _recipes(recipes)
    chosen = random.randrange(1 << 32) if seed is None else seed

    def told(made: int) -> None:
        print(f"\r{made} steps", end="", file=sys.stderr, flush=True)

    live = told if sys.stderr.isatty() else lambda made: None
    with stopped_is_interrupted():
        found = explore(
            known, steps=steps, seconds=seconds, wear=wear, seed=chosen, defects=defect or (), told=live
        )
    if live is told:
        print(file=sys.stderr)
    if found.reason and save is not None:
        _save(found, save)
    typer.echo(json.dumps(_json(found), indent=1) if output is Form.JSON else _text(found, save))
    raise typer.Exit(1 if found.reason else 0)


def _recipes(path: Path) -> dict[str, Recipe]:
    """Return the recipes. :raises ConfigurationError: they cannot be read, or one that is needed lacks."""
    from harness.images.recipes import load_recipes
    from harness.scenarios.card_model import IMAGES

    try:
        found = load_recipes(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"The recipes {path} cannot be read: {error.strerror}.") from None
    if lacking := [name for name in IMAGES if name not in found]:
        raise ConfigurationError(
            f"{path} has no recipe {lacking[0]!r}.", hint=f"Exploration needs {', '.join(IMAGES)}."
        )
    return dict(found)


def _save(found: Explored, path: Path) -> None:
    """Write the counterexample. :raises InfrastructureError: it cannot be written."""
    from harness.scenarios.counterexample import scenario_of
    from harness.scenarios.writing import scenario_text

    try:
        path.write_text(
            scenario_text(scenario_of(found.counterexample, found.reason, found.probes)), encoding="utf-8"
        )
    except OSError as error:
        raise InfrastructureError(f"{path} cannot be written: {error.strerror}.") from None


def _json(found: Explored) -> dict[str, object]:
    return {
        "schema": "hil-explore/1",
        "steps": found.steps,
        "flashes": found.flashes,
        "seconds": round(found.seconds, 2),
        "seed": found.seed,
        "counterexample": [str(step) for step in found.counterexample],
        "reason": found.reason,
    }


def _text(found: Explored, saved: Path | None) -> str:
    rate = found.steps / found.seconds if found.seconds else 0
    counted = f"{found.steps} steps, {found.flashes} updates, {found.seconds:.1f} s ({rate:.0f} steps/s)"
    if not found.reason:
        return f"Card and documents agreed after every step: {counted}, seed {found.seed}."
    lines = [f"They disagree after {counted}, seed {found.seed}: {found.reason}."]
    lines += [f"  {number}. {step}" for number, step in enumerate(found.counterexample, start=1)]
    lines += [f"saved as {saved}: hil run {saved}"] if saved else ["--save FILE writes it as a scenario."]
    return "\n".join(lines)

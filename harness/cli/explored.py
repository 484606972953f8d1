"""What the explorations have in common on the command line: budgets, progress, what was found, saving it."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.form import Form
from harness.cli.releases import defect_names
from harness.errors import EXIT_INTERRUPTED, ConfigurationError, InfrastructureError
from harness.interruption import stopped_is_interrupted

if TYPE_CHECKING:
    from harness.images.recipes import Recipe
    from harness.scenarios.exploration import Budget, Explored
    from harness.scenarios.explored_at_once import Opens

StepsOption = Annotated[int, typer.Option(min=1, help="So many steps at most.")]
SecondsOption = Annotated[float, typer.Option(min=0.1, help="So long at most; a step is not cut short.")]
SeedOption = Annotated[int | None, typer.Option(help="What decides what is done; default: another one.")]
DefectsOption = Annotated[
    list[str] | None,
    typer.Option("--defect", metavar="NAME", help="With this known defect.", autocompletion=defect_names),
]
CardJobsOption = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--jobs",
        min=1,
        help="Explorations at once; default: 1, but over SSH, without --seed, as many as there are cores.",
    ),
]
JobsOption = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Explorations at once.")]
SaveOption = Annotated[
    Path | None, typer.Option("--save", help="Write a counterexample to this scenario file.")
]

Told = Callable[[int], None]
SCHEMA = "hil-explore/2"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def seed_of(given: int | None) -> int:
    """Return the seed, another one each time where none is given."""
    return random.randrange(1 << 32) if given is None else given


def explored(opens: Opens, budget: Budget, seed: int, jobs: int = 1) -> Explored[Any]:
    """Explore, so many at once, until somebody interrupts it; what is found, the fewest steps show."""
    from harness.scenarios.exploration import Interrupted

    try:
        with stopped_is_interrupted():
            return _alone(opens, budget, seed) if jobs == 1 else _at_once(opens, budget, seed, jobs)
    except Interrupted as end:
        return end.found


def _alone(opens: Opens, budget: Budget, seed: int) -> Explored[Any]:
    with opens() as explorable:
        found = _shown(lambda told: explorable.explored(budget, seed=seed, told=told))
        return explorable.shrunk(found)


def _at_once(opens: Opens, budget: Budget, seed: int, jobs: int) -> Explored[Any]:
    from harness.scenarios.explored_at_once import ExploredAtOnce

    with ExploredAtOnce(opens, len(budget.shares(jobs))) as at_once:
        found = _shown(lambda told: at_once.explore(budget, seed=seed, told=told))
    if not found.reason:
        return found
    with opens() as explorable:
        return explorable.shrunk(found)


def _shown(explore: Callable[[Told], Explored[Any]]) -> Explored[Any]:
    """Run an exploration; on a terminal, show how many steps were made."""

    def told(made: int) -> None:
        print(f"\r{made} steps", end="", file=sys.stderr, flush=True)

    live = sys.stderr.isatty()
    try:
        return explore(told if live else lambda made: None)
    finally:
        if live:
            print(file=sys.stderr)


def tell(
    found: Explored[Any],
    output: Form,
    what: str,
    save: Path | None,
    scenario: Callable[[], dict[str, Any]],
    options: Sequence[str] = (),
) -> None:
    """Save what was found, print it, and exit with 1 where something was; with 130 where it was interrupted.

    :param what: what agreed with the documents. :param scenario: returns the counterexample as a scenario.
    :param options: of `hil run`, with which it shows again.
    :raises ConfigurationError: no step was made, so that nothing is known.
    """
    if not (found.steps or found.interrupted):
        raise ConfigurationError("Nothing was tried: the budgets allow no step.", hint="See --wear.")
    if found.reason and save is not None:
        from harness.scenarios.writing import scenario_text

        try:
            save.write_text(scenario_text(scenario()), encoding="utf-8")
        except OSError as error:
            raise InfrastructureError(f"{save} cannot be written: {error.strerror}.") from None
    again = " ".join(["hil run", str(save), *options]) if save else ""
    typer.echo(json.dumps(_json(found, save), indent=1) if output is Form.JSON else _text(found, what, again))
    raise typer.Exit(EXIT_INTERRUPTED if found.interrupted else 1 if found.reason else 0)


def _json(found: Explored[Any], saved: Path | None) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "steps": found.steps,
        "updates": found.updates,
        "seconds": round(found.seconds, 2),
        "seed": found.seed,
        "counterexample": [str(step) for step in found.counterexample],
        "reason": found.reason,
        "saved": str(saved) if saved and found.reason else None,
        "interrupted": found.interrupted,
        "jobs": found.jobs,
    }


def _text(found: Explored[Any], what: str, again: str) -> str:
    rate = found.steps / found.seconds if found.seconds else 0
    counted = f"{found.steps} steps, {found.updates} updates, {found.seconds:.1f} s ({rate:.0f} steps/s)"
    counted += f", {found.jobs} jobs" if found.jobs > 1 else ""
    if not found.reason:
        how = "Interrupted; until then " if found.interrupted else ""
        subject = what[0].lower() + what[1:] if how else what
        return f"{how}{subject} and documents agreed after every step: {counted}, seed {found.seed}."
    lines = [f"They disagree after {counted}, seed {found.seed}: {found.reason}."]
    lines += ["Interrupted: these may not be the fewest steps that do it."] if found.interrupted else []
    lines += [f"  {number}. {step}" for number, step in enumerate(found.counterexample, start=1)]
    if found.jobs > 1:
        lines.append(f"--seed {found.seed} --jobs 1 finds it again.")
    saved = again.split()[2] if again else ""
    lines += [f"saved as {saved}: {again}"] if again else ["--save FILE writes it as a scenario."]
    return "\n".join(lines)


def recipes_in(path: Path) -> dict[str, Recipe]:
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

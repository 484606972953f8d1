"""`hil explore`: does to cards, a registry, a system what nobody thought of, until documents disagree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli.explored import (
    CardJobsOption,
    DefectsOption,
    JobsOption,
    SaveOption,
    SecondsOption,
    SeedOption,
    StepsOption,
    cores,
    explored,
    recipes_in,
    seed_of,
    tell,
)
from harness.cli.form import Form, FormOption
from harness.cli.lease import InventoryOption, LabOption
from harness.cli.releases import ReleaseOption, WithoutDefectOption
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.inventory.model import Inventory
    from harness.record.history import History
    from harness.scenarios.exploration import Budget, Explorable

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_CODES = """
Exit codes: 0 nothing disagreed with the documents, 1 something did (the fewest steps are shown), 2 usage or
configuration, 3 something is missing or the lab failed, 4 refused by the interlock, 130 interrupted (with
what was done until then).
"""
_CARDS = """Examples:

  hil explore cards

  hil explore cards --steps 1000000 --seconds 600 --seed 7

  hil explore cards --defect csk-cancelled-not-checked --save found.scenario.yaml

  hil explore cards --steps 1000000 --seconds 600 --jobs 4

  hil explore cards --over ssh --defect fpgasupdate-ignores-error

  hil explore cards --device controller-0/card0 --wear 20 --inventory lab.yaml
"""
_REGISTRY = """Examples:

  hil explore registry

  hil explore registry --defect pushed-by-oci-renew --save found.scenario.yaml
"""
_SYSTEM = """Examples:

  hil explore system

  hil explore system --release stx-8

  hil explore system --defect label-removal-drops-all-states --save found.scenario.yaml
"""
#: Updates that an emulated card may take; a real one takes as many as the command line says.
_EMULATED_WEAR = 1_000_000


@app.callback(epilog=_CARDS + _CODES)
def _explore() -> None:
    """Do what nobody thought of, and hold what comes of it to the documents."""


@app.command(short_help="Explore cards: in memory, over SSH, or a real one.", epilog=_CARDS + _CODES)
def cards(
    over: Annotated[
        Literal["memory", "ssh"], typer.Option(help="How the emulated card is reached.")
    ] = "memory",
    device: Annotated[str | None, typer.Option(help="This card of the inventory, real or emulated.")] = None,
    steps: StepsOption = 20_000,
    seconds: SecondsOption = 60.0,
    wear: Annotated[
        int | None, typer.Option(min=0, help="So many updates at most; a real card: none, unless given.")
    ] = None,
    seed: SeedOption = None,
    jobs: CardJobsOption = None,
    defect: DefectsOption = None,
    irreversible: Annotated[str, typer.Option(help="Permit on a REAL card: root-key,key-cancellation.")] = "",
    recipes: Annotated[Path, typer.Option(help="The recipes of images in memory.")] = Path(
        "fixtures/images.yaml"
    ),
    inventory: InventoryOption = None,
    lab: LabOption = None,
    reports: Annotated[Path, typer.Option(help="Where the history of a real card is kept.")] = Path(
        "reports"
    ),
    save: SaveOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Flash, reset, cut the power, cancel, move: in any order, until card and documents disagree.

    To a real card are done resets, and as many updates as --wear says; what cannot be undone is done only
    where the card's entry and --irreversible both name it.
    """
    from harness.scenarios.exploration import Budget

    budget = Budget(steps, seconds, _EMULATED_WEAR if wear is None else wear)
    if over == "memory" and device is None:
        _in_memory(recipes, budget, seed_of(seed), jobs or 1, defect or (), save, output)
        return
    from harness.cards.interlock import named_acts
    from harness.inventory.load import load_inventory
    from harness.plugin.exploring import opening

    loaded = load_inventory(inventory)
    name = device or _emulated_card(loaded, lab)
    real = loaded.lab(lab).card(name)[0].real
    budget = replace(budget, wear=0) if real and wear is None else budget
    allowed = named_acts(irreversible, "--irreversible")
    asked = partial(opening.card, loaded, lab, name, defects=tuple(defect or ()), allowed=allowed)
    opens = partial(asked, wear=budget.wear, reports=reports)
    at_once = _jobs(name, jobs, real=real, seeded=seed is not None)
    kept = partial(_with_history, opens, reports, loaded.lab(lab).name) if real else opens
    found = explored(kept, budget, seed_of(seed), at_once)

    def scenario() -> dict[str, Any]:
        from harness.scenarios.counterexample import scenario_of

        made = scenario_of(found.counterexample, found.reason)
        return made | {"given": {**made["given"], "devices": [name]}}

    tell(found, output, name, save, scenario, _options(defect, inventory=inventory, lab=lab))


def _jobs(card: str, asked: int | None, *, real: bool, seeded: bool) -> int:
    """Return how many explorations of a card there are at once. :raises ConfigurationError: of a real one."""
    if real and asked is not None and asked > 1:
        raise ConfigurationError(
            f"{card} is one real card, and {asked} explorations at once need as many.",
            hint="Leave --jobs out: only emulated cards can be had more than once.",
        )
    return asked or (1 if real or seeded else cores())


def _in_memory(
    recipes: Path,
    budget: Budget,
    seed: int,
    jobs: int,
    defects: Sequence[str],
    save: Path | None,
    output: Form,
) -> None:
    from harness.lab.card_exploration import cards, opened, probes_after
    from harness.scenarios.counterexample import scenario_of

    known = recipes_in(recipes)
    found = explored(partial(opened, known, tuple(defects)), budget, seed, jobs)

    def scenario() -> dict[str, Any]:
        probes = probes_after(found.counterexample, cards(known, defects))
        return scenario_of(found.counterexample, found.reason, probes)

    tell(found, output, "Card", save, scenario, _options(defects))


@app.command(short_help="Explore a registry.", epilog=_REGISTRY + _CODES)
def registry(
    name: Annotated[str | None, typer.Option("--registry", help="Which; default: the lab's first.")] = None,
    steps: StepsOption = 20_000,
    seconds: SecondsOption = 60.0,
    seed: SeedOption = None,
    jobs: JobsOption = 1,
    defect: DefectsOption = None,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    save: SaveOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Push, disturb, pull, copy, delete, collect, restart, change keys: until what is there disagrees.

    The registry is a real one that is started for this; what it holds is read by API and store after every
    step, and every report of a client is held to that.
    """
    from harness.inventory.load import load_inventory
    from harness.plugin.exploring import opening
    from harness.plugin.exploring.registries import SOURCE
    from harness.scenarios.exploration import Budget

    asked = partial(opening.registry, load_inventory(inventory), lab, name, tuple(defect or ()))
    explorable = asked()
    budget = Budget(steps, seconds, _EMULATED_WEAR)
    found = explored(partial(opening.opened, asked), budget, seed_of(seed), jobs)
    tell(
        found,
        output,
        "Registry",
        save,
        lambda: opening.scenario_of(explorable, found, SOURCE),
        _options(defect, inventory=inventory, lab=lab),
    )


@app.command(short_help="Explore a StarlingX system.", epilog=_SYSTEM + _CODES)
def system(
    name: Annotated[str | None, typer.Option("--system", help="Which; default: the lab's first.")] = None,
    way: Annotated[
        Literal["rest", "cli"], typer.Option(help="Asked by its API, or by its command.")
    ] = "rest",
    steps: StepsOption = 20_000,
    seconds: SecondsOption = 60.0,
    wear: Annotated[int, typer.Option(min=1, help="So many updates of cards at most.")] = _EMULATED_WEAR,
    seed: SeedOption = None,
    jobs: JobsOption = 1,
    release: ReleaseOption = None,
    defect: DefectsOption = None,
    without_defect: WithoutDefectOption = None,
    inventory: InventoryOption = None,
    lab: Annotated[str, typer.Option(help="The lab with the system.")] = "device-images",
    save: SaveOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Upload, apply, label, update, boot, remove, delete: until system, card and documents disagree.

    The system is emulated, has one card and no known defect but those that options name. All that it says is
    judged after every step, and its card is held to a model over recipes.
    """
    from harness.inventory.load import load_inventory
    from harness.lab.releases import Release
    from harness.plugin.exploring import opening
    from harness.plugin.exploring.systems import SOURCE
    from harness.scenarios.exploration import Budget

    said = Release(release, tuple(defect or ()), tuple(without_defect or ()))
    asked = partial(opening.system, load_inventory(inventory), lab, name, said, way)
    explorable = asked()
    budget = Budget(steps, seconds, wear)
    found = explored(partial(opening.opened, asked), budget, seed_of(seed), jobs)
    tell(
        found,
        output,
        "System",
        save,
        lambda: opening.scenario_of(explorable, found, SOURCE),
        _options(defect, without_defect, release=release, inventory=inventory),
    )


def _options(
    defects: Sequence[str] | None, without: Sequence[str] | None = None, **given: object
) -> list[str]:
    """Return the options with which `hil run` has the same lab."""
    found = [word for name in defects or () for word in ("--defect", name)]
    found += [word for name in without or () for word in ("--without-defect", name)]
    return found + [word for name, value in given.items() if value for word in (f"--{name}", str(value))]


def _emulated_card(inventory: Inventory, lab: str | None) -> str:
    """Return the emulated card of a lab that permits most. :raises ConfigurationError: it has none."""
    entry = inventory.lab(lab)
    found = [
        (len(card.irreversible), f"{host.name}/{card.name}")
        for host, card in entry.cards()
        if host.emulated is not None and host.emulated.recording is None
    ]
    if not found:
        raise ConfigurationError(
            f"The lab {entry.name} has no emulated card.", hint="Name a card: --device HOST/CARD."
        )
    return max(found, key=lambda each: each[0])[1]


@contextmanager
def _with_history(
    opens: Callable[..., AbstractContextManager[Explorable[Any]]], reports: Path, lab: str
) -> Iterator[Explorable[Any]]:
    """Give a real card; what is done to it is kept as a run."""
    with _kept(reports, lab) as kept, opens(kept=kept) as explorable:
        yield explorable


@contextmanager
def _kept(reports: Path, lab: str) -> Iterator[History]:
    """Give the history of a run that is kept."""
    from harness.judgement.records import RunEnded, RunStarted
    from harness.record.history import History
    from harness.record.runs import make_run_dir, new_run_dir, point_latest_at

    folder = new_run_dir(reports)
    hold = make_run_dir(folder)
    try:
        with closing(History(folder / "history.jsonl")) as history:
            history.add(RunStarted(run=folder.name, lab=lab))
            how: Literal["finished", "interrupted"] = "interrupted"
            try:
                yield history
                how = "finished"
            finally:
                history.add(RunEnded(how=how))
                point_latest_at(folder)
    finally:
        os.close(hold)

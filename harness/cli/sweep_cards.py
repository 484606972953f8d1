"""`hil sweep flash` and `hil sweep reset`: cards are disturbed at every point of an operation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.form import Form, FormOption
from harness.cli.sweep_keeping import (
    FreshOption,
    ReportsOption,
    ResumeOption,
    known_names,
    list_or_carry_out,
    words,
)

if TYPE_CHECKING:
    from harness.scenarios.flash_sweep import FlashSweep
    from harness.scenarios.flash_trials import FlashPlan

_CODES = """
Exit codes: a sweep is an experiment and states nothing. 0: every trial was judged, no tool reported done what
was not, and each card was left old, new or on its factory page; 1: one was not, or nothing came to a point
that was named; 2 usage; 3 a card was blocked (unless --allow-blocked), or the lab failed; 4 the interlock
refused; 5 a bug of the harness; 130 interrupted, with what was judged by then: the same command goes on.
"""
FLASH = f"""Examples:

  hil sweep flash

  hil sweep flash --image A/csk0,root-key-A --device bench1/card0 --generation A,B,C,D

  hil sweep flash --action power-cut --point copying --repeat 5

  hil sweep flash --list --device bench1
{_CODES}"""
RESET = f"""Examples:

  hil sweep reset

  hil sweep reset --action stays-away --device subcloud1
{_CODES}"""

#: What happens to updates in the field; all others are taken by name.
_USUAL = "sigterm,sigint,cancel,power-cut,reboot"
_OF_RESETS = "move,stays-away,busy"

DeviceOption = Annotated[list[str] | None, typer.Option(help="Only this host or host/card; may be repeated.")]
ActionOption = Annotated[str, typer.Option(help="Actions by name, with commas; or all.")]
RepeatOption = Annotated[int, typer.Option(min=1, help="Trials at each point.")]
GenerationOption = Annotated[
    str,
    typer.Option(help="Driver generations of emulated hosts, each by itself: A,B,C,D; default: as they are."),
]
WearOption = Annotated[
    int | None, typer.Option(min=0, help="So many updates of each REAL card at most; needed where one is.")
]
ListOption = Annotated[bool, typer.Option("--list", help="Show the points that are passed, and stop.")]
WorkersOption = Annotated[int, typer.Option("-j", min=1, help="Cards at the same time.")]
AllowOption = Annotated[bool, typer.Option(help="Do not exit 3 where a card is blocked.")]
InventoryOption = Annotated[Path | None, typer.Option(help="The inventory file.")]
LabOption = Annotated[str | None, typer.Option(help="The lab; default: the inventory's default_lab.")]


def flash(
    image: Annotated[str, typer.Option(help="Images by recipe, with commas.")] = "A/csk0",
    action: ActionOption = _USUAL,
    point: Annotated[
        list[str] | None, typer.Option(help="Only this point; may be repeated. Default: all that are passed.")
    ] = None,
    device: DeviceOption = None,
    generation: GenerationOption = "",
    root: Annotated[
        str | None,
        typer.Option(help="Root key of emulated cards before each trial, or none; default: one that fits."),
    ] = None,
    repeat: RepeatOption = 1,
    irreversible: Annotated[str, typer.Option(help="Permit on REAL cards: root-key,key-cancellation.")] = "",
    wear: WearOption = None,
    listed: ListOption = False,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    workers: WorkersOption = 2,
    allow_blocked: AllowOption = False,
    reports: ReportsOption = Path("reports"),
    resume: ResumeOption = None,
    fresh: FreshOption = False,
    output: FormOption = Form.TABLE,
) -> None:
    """Update each card, strike at each point by each action, and judge every report and what is left."""
    from harness.scenarios.flash_trials import FlashPlan

    images, points = tuple(words(image, "--image")), tuple(point or ())
    plan = FlashPlan("flash", images, _actions(action), points, repeat, root, wear)
    swept = _swept(plan, inventory, lab, device or [], generation, reports, irreversible)
    list_or_carry_out(
        swept, listed, reports, resume, workers, output, fresh=fresh, allow_blocked=allow_blocked
    )


def reset(
    action: ActionOption = _OF_RESETS,
    device: DeviceOption = None,
    generation: GenerationOption = "",
    repeat: RepeatOption = 1,
    listed: ListOption = False,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    workers: WorkersOption = 2,
    allow_blocked: AllowOption = False,
    reports: ReportsOption = Path("reports"),
    resume: ResumeOption = None,
    fresh: FreshOption = False,
    output: FormOption = Form.TABLE,
) -> None:
    """Reset each card under each action, and judge what is reported of it."""
    from harness.scenarios.flash_trials import FlashPlan

    plan = FlashPlan("reset", ("",), _actions(action), repeat=repeat)
    swept = _swept(plan, inventory, lab, device or [], generation, reports)
    list_or_carry_out(
        swept, listed, reports, resume, workers, output, fresh=fresh, allow_blocked=allow_blocked
    )


def _swept(
    plan: FlashPlan,
    inventory: Path | None,
    lab: str | None,
    devices: list[str],
    generation: str,
    reports: Path,
    irreversible: str = "",
) -> FlashSweep:
    """Return what is swept. :raises ConfigurationError: an option is wrong."""
    from harness.cards.generations import GENERATIONS
    from harness.cards.interlock import named_acts
    from harness.inventory.load import load_inventory
    from harness.inventory.selection import check_devices
    from harness.lab.background import project_of
    from harness.plugin.images import ImageShelf, RootHashes
    from harness.scenarios.flash_sweep import FlashSweep
    from harness.scenarios.promised import Promised

    known = load_inventory(inventory)
    entry = known.lab(lab)
    check_devices(entry, devices)
    cards = [f"{host.name}/{card.name}" for host, card in entry.cards()]
    chosen = [name for name in cards if not devices or {name, name.partition("/")[0]} & set(devices)]
    generations = words(generation, "--generation") if generation else []
    known_names(generations, GENERATIONS, "driver generation", "They are A, B, C and D.")
    shelf = ImageShelf.of(project_of(known))
    swept = FlashSweep(
        known,
        lab,
        chosen,
        plan,
        shelf,
        Promised(shelf.recipes, RootHashes(shelf)),
        generations,
        named_acts(irreversible, "--irreversible"),
        reports,
    )
    if plan.operation == "flash":
        for name in plan.images:
            _ = shelf[name]
    swept.check()
    return swept


def _actions(text: str) -> tuple[str, ...]:
    """Return the actions named. :raises ConfigurationError: there is none of a name."""
    from harness.faults.actions import ACTION_NAMES, action

    names = words(text, "--action")
    if "all" in names:
        return tuple(name for name in ACTION_NAMES if name != "note")
    for name in names:
        action(name)
    return tuple(names)

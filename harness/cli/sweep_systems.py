"""`hil sweep update`: systems are disturbed at every point of an update of a card by their control plane."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.cli.form import Form, FormOption
from harness.cli.releases import DefectOption, WithoutDefectOption, release_names
from harness.cli.sweep_keeping import (
    FreshOption,
    ReportsOption,
    ResumeOption,
    known_names,
    list_or_carry_out,
    words,
)

if TYPE_CHECKING:
    from harness.lab.releases import Release
    from harness.plugin.update_sweep import UpdateSweep
    from harness.plugin.update_trials import UpdatePlan

UPDATE = """Examples:

  hil sweep update

  hil sweep update --system standard --system containers --image A/csk0,root-key-A

  hil sweep update --action agent-killed,reboot --point copying --way cli

  hil sweep update --release stx-2020-07

  hil sweep update --list

Exit codes: a sweep is an experiment and states nothing. 0: every trial was judged, each card was left old,
new or on its factory page, and a system without known defects said nothing but what is so, or what documents
say that it says then; 1: one was not, or it said something else, or nothing came to a point that was named;
2 usage; 3 the lab failed; 5 a bug of the harness; 130 interrupted, with what was judged by then: the same
command goes on.
"""


def _actions() -> list[str]:
    """Return the actions, for completion."""
    from harness.scenarios.update_actions import ACTIONS

    return list(ACTIONS)


def update(
    image: Annotated[str, typer.Option(help="Images by recipe, with commas.")] = "A/csk0",
    action: Annotated[
        str, typer.Option(help="Actions by name, with commas; or all.", autocompletion=_actions)
    ] = "all",
    point: Annotated[
        list[str] | None, typer.Option(help="Only this point; may be repeated. Default: all that are passed.")
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(help="This emulated system; may be repeated. Default: the lab's first one."),
    ] = None,
    release: Annotated[
        str,
        typer.Option(metavar="NAME", help="The systems are this.", autocompletion=release_names),
    ] = "corrected",
    defect: DefectOption = None,
    without_defect: WithoutDefectOption = None,
    way: Annotated[
        Literal["rest", "cli"], typer.Option(help="Asked by its API, or by its command.")
    ] = "rest",
    repeat: Annotated[int, typer.Option(min=1, help="Trials at each point.")] = 1,
    listed: Annotated[
        bool, typer.Option("--list", help="Show the points that are passed, and stop.")
    ] = False,
    inventory: Annotated[Path | None, typer.Option(help="The inventory file.")] = None,
    lab: Annotated[str, typer.Option(help="The lab with the systems.")] = "device-images",
    workers: Annotated[int, typer.Option("-j", min=1, help="Systems at the same time.")] = 2,
    reports: ReportsOption = Path("reports"),
    resume: ResumeOption = None,
    fresh: FreshOption = False,
    output: FormOption = Form.TABLE,
) -> None:
    """Create, upload, apply and write an image, strike at each point, and judge all that the system says."""
    from harness.lab.releases import Release
    from harness.plugin.update_trials import UpdatePlan

    points = tuple(point or ())
    plan = UpdatePlan(tuple(words(image, "--image")), tuple(_chosen(action)), points, repeat, way)
    said = Release(release, tuple(defect or ()), tuple(without_defect or ()))
    swept = _swept(inventory, lab, system or [], plan, said)
    list_or_carry_out(swept, listed, reports, resume, workers, output, fresh=fresh, allow_blocked=False)


def _chosen(text: str) -> list[str]:
    """Return the actions named. :raises ConfigurationError: there is none of a name."""
    from harness.scenarios.update_actions import ACTIONS

    names = words(text, "--action")
    if "all" in names:
        return list(ACTIONS)
    return known_names(names, ACTIONS, "action", f"Known: {', '.join(ACTIONS)}.")


def _swept(
    inventory: Path | None, lab: str, systems: list[str], plan: UpdatePlan, release: Release
) -> UpdateSweep:
    """Return what is swept. :raises ConfigurationError: an option is wrong."""
    from harness.inventory.load import load_inventory
    from harness.lab.background import project_of
    from harness.lab.system_bench import systems_of
    from harness.plugin.images import ImageShelf, RootHashes
    from harness.plugin.update_sweep import UpdateSweep, emulated_in
    from harness.scenarios.promised import Promised

    known = load_inventory(inventory)
    entry = known.lab(lab)
    here = ", ".join(systems_of(entry)) or "none"
    chosen = known_names(systems, systems_of(entry), "system", f"Systems with a card: {here}.")
    shelf = ImageShelf.of(project_of(known))
    swept = UpdateSweep(
        known,
        entry.name,
        tuple(dict.fromkeys(chosen)) or tuple(emulated_in(entry)[:1]),
        plan,
        shelf,
        Promised(shelf.recipes, RootHashes(shelf)),
        release,
    )
    for name in swept.plan.images:
        _ = shelf[name]
    swept.check()
    return swept

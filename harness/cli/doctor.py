"""`hil doctor`: what of a lab works, what is missing and how to fix it; once, or again and again."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from harness.cli.durations import seconds_of
from harness.cli.form import Form, FormOption
from harness.cli.lease import InventoryOption, LabOption, LeasesOption
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from harness.doctor.model import Diagnosis, Difference
    from harness.inventory.model import Inventory, Lab
    from harness.lab.background import BackgroundLab
    from harness.lab.standing import Standing

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_EPILOG: Final = (
    "Examples:\n\n  hil doctor\n\n  hil doctor --device bench1 -o json\n\n  hil doctor --every 15m -o json"
)
_BAD: Final = 3


def _known_devices(incomplete: str) -> list[str]:
    """Return the hosts and cards of the inventory in this folder, for completion in a shell."""
    from harness.errors import HarnessError
    from harness.inventory.load import load_inventory

    try:
        entry = load_inventory(None).lab(None)
    except HarnessError:
        return []
    names = [*entry.hosts, *(f"{host.name}/{card.name}" for host, card in entry.cards())]
    return [name for name in names if name.startswith(incomplete)]


@app.command(epilog=_EPILOG)
def doctor(
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST[/CARD]", help="Only these devices.", autocompletion=_known_devices),
    ] = None,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    record: Annotated[
        bool, typer.Option("--record", help="Take what is found into the cards' health.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Look again after 90s, 15m, 1h, and record; until stopped."),
    ] = None,
    leases: LeasesOption = None,
    reports: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("reports"),
    store: Annotated[str | None, typer.Option(metavar="URL", help="The index, as for `hil run`.")] = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Say what of a lab works, what is missing, and how to fix it.

    That is this machine, hosts, cards, registries and systems. Nothing is changed anywhere, but that --record
    and --every keep the health of cards. Cards that somebody uses are left alone. Exits with 0 where nothing
    is bad, else with 3.
    """
    from harness.inventory.load import load_inventory
    from harness.inventory.selection import check_devices
    from harness.lab.background import chosen_lab
    from harness.lab.standing import leases_and_index

    pause = None if every is None else seconds_of(every)
    loaded = load_inventory(inventory)
    entry, kept = chosen_lab(loaded, lab)
    check_devices(entry, device or [])
    urls = leases_and_index(reports, leases, store)
    with _looking(
        loaded, entry, kept, device or [], reports, urls, keeps=record or pause is not None
    ) as look:
        if pause is not None:
            _watch(look, pause, output)
            return
        diagnosis = look()
    _show(diagnosis, output)
    if diagnosis.grade.value == "bad":
        raise typer.Exit(_BAD)


@contextmanager
def _looking(
    inventory: Inventory,
    entry: Lab,
    kept: BackgroundLab,
    devices: Sequence[str],
    reports: Path,
    urls: tuple[str, str | None],
    *,
    keeps: bool,
) -> Iterator[Callable[[], Diagnosis]]:
    """Give what looks at a lab; an emulated one that does not run is started for as long."""
    from harness.cli.doctor_text import show_progress
    from harness.cli.opening import running_lab
    from harness.doctor.examination import examine
    from harness.doctor.keeping import kept_with, users_of, with_health
    from harness.doctor.machine import machine
    from harness.lab.leasing import leases_of
    from harness.lab.standing import standings

    with (
        closing(leases_of("hil doctor", reports, urls[0])) as holder,
        running_lab(inventory, entry, leases=holder, kept=kept) as running,
    ):

        def known() -> dict[str, Standing]:
            """Return what is kept of cards that others can reach; a database that is away is told as such."""
            try:
                found = standings(entry, kept, *urls)
            except InfrastructureError:
                return {}
            return {name: one for name, one in found.items() if running.leases.needs(entry.card(name)[0])}

        def look() -> Diagnosis:
            in_use = users_of(known())
            found = examine(
                running,
                lambda: machine(entry, reports, *urls),
                devices=devices,
                in_use=in_use,
                heard=show_progress,
            )
            if keeps:
                kept_with(found, running.leases.health)
            return with_health(found, known())

        yield look


def _show(diagnosis: Diagnosis, output: Form) -> None:
    from harness.cli.doctor_text import page

    if output is Form.JSON:
        typer.echo(json.dumps(diagnosis.to_json(), indent=1))
        return
    for line in page(diagnosis):
        typer.echo(line)


def _watch(look: Callable[[], Diagnosis], pause: float, output: Form) -> None:
    """Look again and again, and print what changes, until somebody stops it: that is its end in order."""
    from harness.doctor.model import differences
    from harness.interruption import stopped_is_interrupted

    before: Diagnosis | None = None
    try:
        with stopped_is_interrupted():
            while True:
                try:
                    now = look()
                except InfrastructureError as error:  # such as a database that is away for a while
                    typer.echo(f"Error: {error}", err=True)
                else:
                    for difference in differences(before, now):
                        _tell(difference, output)
                    before = now
                # Nothing tells when a lab changes; to ask again is the only way there is.
                time.sleep(pause)
    except KeyboardInterrupt:
        typer.echo("ended.", err=True)


def _tell(difference: Difference, output: Form) -> None:
    from harness.cli.doctor_text import change

    if output is Form.JSON:
        typer.echo(json.dumps({"time": round(time.time(), 3), **difference.to_json()}))
    else:
        typer.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {change(difference)}")
    sys.stdout.flush()

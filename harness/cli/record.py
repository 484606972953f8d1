"""`hil record`: captures a card through its host into one file, which can be replayed without it."""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.cli.opening import image_of, recorded, running_lab, show_progress
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.hosts.protocol import Host
    from harness.inventory.model import Inventory
    from harness.recordings.session import Session

app = typer.Typer(add_completion=False, rich_markup_mode=None)

#: Lab seconds in a real one, for a flash in an emulated lab of our own: its phases are to be seen.
_SCALE = 60.0
_EPILOG = """Examples:

  hil record controller-0/card0

  hil record controller-0 -o rack7.json.gz --macs pseudonyms

  hil record bench1/card0 --flash my-image.bin

Without --flash nothing is changed. With it the interlock holds as it does for `hil card flash`.
"""


@app.command(name="record", epilog=_EPILOG)
def record_command(
    subject: Annotated[
        str, typer.Argument(metavar="HOST[/CARD]", help="A card, or a host with all its cards.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The file; packed if it ends with .gz. Default: HOST-CARD.json"),
    ] = None,
    flash: Annotated[
        str | None,
        typer.Option(
            "--flash",
            metavar="IMAGE",
            help="Also flash this file or recipe, and reset the card; both recorded.",
        ),
    ] = None,
    expect: Annotated[
        Literal["lands", "unchanged"], typer.Option(help="What documents promise: it lands, or is refused.")
    ] = "lands",
    macs: Annotated[
        Literal["keep", "pseudonyms"], typer.Option("--macs", help="MAC addresses as they are, or replaced.")
    ] = "keep",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    irreversible: Annotated[
        str, typer.Option("--irreversible", help="Permit on REAL cards: root-key,key-cancellation.")
    ] = "",
    inventory: Annotated[Path | None, typer.Option("--inventory", help="The inventory file.")] = None,
    lab: Annotated[str | None, typer.Option("--lab", help="The lab; default: the inventory's.")] = None,
    reports: Annotated[Path, typer.Option("--reports", help="Where the history of a flash is kept.")] = Path(
        "reports"
    ),
) -> None:
    """Capture a card by reading alone, into one file for `hil lab up --from`."""
    from harness.inventory.load import load_inventory
    from harness.recordings.files import check_target

    wanted = _Wanted(load_inventory(inventory), lab, subject, output or Path(_file_name(subject)), macs)
    check_target(wanted.target, force=force)
    if flash is None:
        _as_found(wanted)
    elif "/" in subject:
        _with_flash(wanted, flash, expect, irreversible, reports)
    else:
        raise ConfigurationError(
            "A flash is recorded of one card.", hint="Name it: hil record HOST/CARD --flash IMAGE"
        )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be recorded, and where that goes."""

    inventory: Inventory
    lab: str | None
    subject: str
    target: Path
    macs: str


def _file_name(subject: str) -> str:
    return f"{subject.replace('/', '-')}.json"


def _as_found(wanted: _Wanted) -> None:
    """Record what is, without any permit."""
    from harness.hosts.connect import connect
    from harness.lab.background import chosen_lab
    from harness.recordings.session import Session

    entry, kept = chosen_lab(wanted.inventory, wanted.lab)
    name, _, card = wanted.subject.partition("/")
    host = entry.card(wanted.subject)[0] if card else entry.host(name)
    cards = [host.card(card)] if card else list(host.cards.values())
    if not cards:
        raise ConfigurationError(f"The inventory has no cards of {name}; there is nothing to record.")
    with (
        running_lab(wanted.inventory, entry, kept=kept) as running,
        closing(connect(host, running.access(name))) as reached,
    ):
        session = Session(reached, cards, sysfs=host.sysfs, tools=host.tools.model_dump())
        session.begin()
    _finish(session, wanted)


def _with_flash(
    wanted: _Wanted, image: str, expect: Literal["lands", "unchanged"], irreversible: str, reports: Path
) -> None:
    """Record what is, a flash and the reset after it; what is reported of them is judged as well."""
    from harness.judgement.records import Promise
    from harness.lab.background import chosen_lab
    from harness.recordings.session import Session
    from harness.scenarios.promises import ACTIVATED_BY_RESET

    chosen = image_of(image, wanted.inventory)
    entry, _ = chosen_lab(wanted.inventory, wanted.lab)
    host, card = entry.card(wanted.subject)
    sessions: list[Session] = []

    def followed(reached: Host) -> Host:
        sessions.append(Session(reached, [card], sysfs=host.sysfs, tools=host.tools.model_dump()))
        return sessions[0].host

    with recorded(
        wanted.subject,
        wanted.inventory,
        wanted.lab,
        reports,
        irreversible,
        command="hil record",
        scale=_SCALE,
        through=followed,
    ) as driver:
        session = sessions[0]
        session.begin()
        session.perform(
            driver,
            card.name,
            lambda: driver.flash(
                chosen.data,
                chosen.name,
                Promise(expect, source="the command line"),
                facts=chosen.facts,
                on_progress=show_progress,
            ),
            chosen.data,
        )
        if chosen.facts.effect in ACTIVATED_BY_RESET:
            typer.echo("resetting ...", err=True)
            session.perform(driver, card.name, driver.reset)
        _finish(session, wanted)


def _finish(session: Session, wanted: _Wanted) -> None:
    """Write the recording and say what is in it."""
    from harness.recordings.files import write_recording

    made = session.recording(pseudonyms=wanted.macs == "pseudonyms")
    size = write_recording(made, wanted.target)
    kinds = Counter(entry.kind for entry in made.tree(0).values())
    typer.echo(
        f"{wanted.subject}: {kinds['content']} files, {kinds['unreadable']} unreadable, "
        f"{kinds['link']} links, {kinds['left-out']} left out, {len(made.commands(0))} commands"
    )
    for act in made.acts:
        typer.echo(f"{act.act}: {act.settled:.1f} s, exit code {act.exit}, {len(act.samples)} changes seen")
    typer.echo(f"written to {wanted.target}: {(size + 1023) // 1024} KiB")
    typer.echo(f"replay it: hil lab up --from {shlex.quote(str(wanted.target))}")

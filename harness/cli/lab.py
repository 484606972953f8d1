"""`hil lab`: keep an emulated lab running in the background, see it, stop it."""

from __future__ import annotations

import json
import shlex
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from harness.lab.background import BackgroundLab
    from harness.lab.emulator import Doors

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Keep an emulated lab running.",
)

InventoryOption = Annotated[
    Path | None,
    typer.Option(
        "--inventory", help="The inventory; default: $HIL_INVENTORY, else inventory.yaml here or above."
    ),
]
NameArgument = Annotated[
    str | None, typer.Argument(metavar="[LAB]", help="Default: the inventory's default_lab.")
]


class Form(str, Enum):
    """How a command prints its result."""

    TABLE = "table"
    JSON = "json"


FormOption = Annotated[Form, typer.Option("-o", "--output", help="How to print it.")]


@app.command()
def up(
    lab: NameArgument = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Call it so; for a second one of the same lab.")
    ] = None,
    inventory: InventoryOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Start a lab and leave it running; its cards are as they were left. Says how to log in to each host."""
    from harness.inventory.load import load_inventory
    from harness.lab.background import background_lab

    loaded = load_inventory(inventory)
    chosen = background_lab(loaded, name or lab)
    chosen.up(loaded, lab)
    _print([chosen], output)


@app.command()
def status(
    lab: NameArgument = None, inventory: InventoryOption = None, output: FormOption = Form.TABLE
) -> None:
    """Show which labs are running, and how to log in to their hosts."""
    from harness.inventory.load import load_inventory
    from harness.lab.background import background_lab, background_labs

    loaded = load_inventory(inventory)
    _print([background_lab(loaded, lab)] if lab else background_labs(loaded), output)


@app.command()
def down(
    lab: NameArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Stop every lab of this inventory.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Also forget what its cards hold.")] = False,
    inventory: InventoryOption = None,
) -> None:
    """Stop a lab; nothing happens where it does not run. What its cards hold is kept."""
    from harness.inventory.load import load_inventory
    from harness.lab.background import background_lab, background_labs

    loaded = load_inventory(inventory)
    for chosen in background_labs(loaded) if everything else [background_lab(loaded, lab)]:
        ran = chosen.down(forget=forget)
        typer.echo(f"{chosen.name}: {'stopped' if ran else 'was not running'}")


def _print(labs: list[BackgroundLab], output: Form) -> None:
    found = [_described(lab) for lab in labs]
    if output is Form.JSON:
        typer.echo(json.dumps(found, indent=2))
        return
    if not found:
        typer.echo("No lab was started here. Start one: hil lab up")
    for entry in found:
        running = f"running (process {entry['pid']})" if entry["running"] else "not running"
        typer.echo(f"{entry['name']}: {running}")
        for host in entry["hosts"]:
            typer.echo(f"  {host['name']:<12} {host['ssh']}")


def _described(lab: BackgroundLab) -> dict[str, Any]:
    pid = lab.pid()
    entry: dict[str, Any] = {"name": lab.name, "running": pid is not None, "pid": pid, "hosts": []}
    if pid is None:
        return entry
    doors = lab.doors()
    return entry | {
        "lab": lab.lab_name(),
        "control": str(doors.control),
        "key_file": str(doors.key_file),
        "known_hosts": str(doors.known_hosts),
        "state": str(lab.state),
        "hosts": [
            {
                "name": host,
                "address": door.address,
                "port": door.port,
                "user": door.user,
                "ssh": _ssh_command(doors, host),
            }
            for host, door in doors.hosts.items()
        ],
    }


def _ssh_command(doors: Doors, host: str) -> str:
    """Return a command line that logs in to ``host`` with nothing but what the lab made."""
    door = doors.hosts[host]
    return shlex.join(
        [
            "ssh",
            *("-i", str(doors.key_file)),
            *("-o", "IdentitiesOnly=yes"),
            *("-o", f"UserKnownHostsFile={doors.known_hosts}"),
            *("-p", str(door.port)),
            f"{door.user}@{door.address}",
        ]
    )

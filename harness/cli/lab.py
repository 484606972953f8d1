"""`hil lab`: keep an emulated lab running in the background, see it, stop it, show its cards to programs."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from harness.cli.form import Form, FormOption

if TYPE_CHECKING:
    from harness.inventory.model import Inventory, Lab
    from harness.lab.background import BackgroundLab
    from harness.lab.emulator import Doors

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Keep an emulated lab running.",
)

_STARTED_BY_RUNS = "started by each run that pushes to it"

InventoryOption = Annotated[
    Path | None,
    typer.Option(
        "--inventory", help="The inventory; default: $HIL_INVENTORY, else inventory.yaml here or above."
    ),
]
NameArgument = Annotated[
    str | None, typer.Argument(metavar="[LAB]", help="Default: the inventory's default_lab.")
]


@app.command(
    short_help="Start a lab and leave it running.",
    epilog="Examples:  hil lab up     hil lab up --as second     hil lab up --from card.recording",
)
def up(
    lab: NameArgument = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="Call it so; for a second one of the same lab. --lab NAME of status, card, record, lease, "
            "lab mount means it; a run starts its own.",
        ),
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option("--from", metavar="RECORDING", help="Replay a file of `hil record` instead."),
    ] = None,
    inventory: InventoryOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Start a lab and leave it running; its cards are as they were left. Says how to log in to it.

    Its registries are not kept running: each run starts its own, empty, when a scenario pushes to it.
    """
    from harness.inventory.load import load_inventory
    from harness.lab.background import background_lab

    _check_outside()
    called = lab if name is None else name
    if recording is not None:
        _replay(recording, called, inventory, output)
        return
    loaded = load_inventory(inventory)
    chosen = background_lab(loaded, called)
    chosen.up(loaded, lab)
    _print([chosen], output, loaded)


@app.command(
    short_help="Show which labs are running.", epilog="Examples:  hil lab status     hil lab status -o json"
)
def status(
    lab: NameArgument = None, inventory: InventoryOption = None, output: FormOption = Form.TABLE
) -> None:
    """Show which labs are running, and how to log in to their hosts and controllers."""
    from harness.inventory.load import load_inventory
    from harness.lab.background import background_labs, known_lab

    loaded = load_inventory(inventory)
    _print(background_labs(loaded) if lab is None else [known_lab(loaded, lab)], output, loaded)


@app.command(epilog="Examples:  hil lab down     hil lab down second --forget     hil lab down --all")
def down(
    lab: NameArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="Stop every lab of this inventory.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Also forget what its cards hold.")] = False,
    inventory: InventoryOption = None,
) -> None:
    """Stop a lab; nothing happens where it does not run. What its cards hold is kept."""
    from harness.inventory.load import load_inventory
    from harness.lab.background import background_labs, known_lab

    _check_outside()
    loaded = load_inventory(inventory)
    for chosen in background_labs(loaded) if everything else [known_lab(loaded, lab)]:
        ran = chosen.down(forget=forget)
        typer.echo(f"{chosen.name}: {'stopped' if ran else 'was not running'}")


class MountCommand(TyperCommand):
    """Leaves what follows ``--`` alone: it is another program's command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before the first ``--``."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["command"] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND ...]"]


@app.command(
    cls=MountCommand,
    short_help="Run a command that sees the emulated cards.",
    epilog="Examples:  hil lab mount     hil lab mount subcloud1 -- lspci -nn -d 8086:0b30     "
    "hil lab mount --network host bench1 -- ./flash.sh",
)
def mount(
    context: typer.Context,
    host: Annotated[
        str | None,
        typer.Argument(metavar="HOST", help="Default: the lab's first emulated host with a card."),
    ] = None,
    lab: Annotated[str | None, typer.Option("--lab", help="The lab; default: the inventory's.")] = None,
    inventory: InventoryOption = None,
    face: Annotated[
        Literal["fuse", "umockdev"],
        typer.Option(help="fuse: everything works; umockdev: cards are found, and nothing can be flashed."),
    ] = "fuse",
    network: Annotated[
        Literal["private", "host"],
        typer.Option(help="private: udev events are heard, the network is not reached; host: the reverse."),
    ] = "private",
    scale: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Lab seconds that pass in a real one, in a lab for this command only; default: "
            "an update takes no time.",
        ),
    ] = None,
) -> None:
    """Run COMMAND (a shell) where the emulated host's /sys, /dev and /run stand in place of this machine's.

    Programs that know nothing of all this find, flash and reset its cards. Exits as COMMAND does.
    """
    from harness.cli.opening import running_lab
    from harness.inventory.load import load_inventory
    from harness.lab.background import chosen_lab
    from harness.lab.mount import run_mounted

    _check_outside()
    loaded = load_inventory(inventory)
    entry, kept = chosen_lab(loaded, lab)
    name = _emulated_host(entry, host)
    command = context.meta["command"] or [os.environ.get("SHELL") or "/bin/sh"]
    with running_lab(loaded, entry, scale, kept=kept) as running:
        code = run_mounted(running.doors, name, command, face=face, private_network=network == "private")
    raise typer.Exit(code)


def _check_outside() -> None:
    """:raises ConfigurationError: we run in a mounted host, where processes have other numbers."""
    from harness.errors import ConfigurationError

    if host := os.environ.get("HIL_MOUNTED_HOST"):
        raise ConfigurationError(
            f"This runs in the mounted host {host}; labs are started and stopped outside of it.",
            hint="Leave its shell first, or use another terminal.",
        )


def _emulated_host(entry: Lab, name: str | None) -> str:
    """Return the emulated host ``name``, by default the first that has a card.

    :raises ConfigurationError: there is no such one.
    """
    from harness.errors import ConfigurationError

    if name is not None:
        if not entry.host(name).emulated:
            raise ConfigurationError(f"The host {name} is not emulated; its cards are seen on itself.")
        return name
    found = next((host.name for host in entry.hosts.values() if host.emulated and host.cards), None)
    if found is None:
        raise ConfigurationError(f"The lab {entry.name!r} has no emulated host with a card.")
    typer.echo(f"(the cards of {found})", err=True)
    return found


def _replay(recording: Path, name: str | None, inventory: Path | None, output: Form) -> None:
    """Start a lab that replays ``recording``, kept beside the inventory, or here where there is none."""
    from harness.errors import ConfigurationError
    from harness.inventory.load import find_inventory
    from harness.lab.replay import replay_lab

    try:
        base = (inventory or find_inventory()).parent
    except ConfigurationError:
        base = Path()
    loaded, chosen = replay_lab(recording, base, name)
    chosen.up(loaded)
    _print([chosen], output, loaded)


def _print(labs: list[BackgroundLab], output: Form, inventory: Inventory) -> None:
    found = [_described(lab, inventory) for lab in labs]
    if output is Form.JSON:
        typer.echo(json.dumps(found, indent=2))
        return
    if not found:
        typer.echo("No lab was started here. Start one: hil lab up")
    for entry in found:
        running = f"running (process {entry['pid']})" if entry["running"] else "not running"
        typer.echo(f"{entry['name']}: {running}")
        if entry.get("out_of_order"):
            typer.echo(f"  out of order: {entry['out_of_order']}")
        if "error" in entry:
            typer.echo(f"  {entry['error']}")
        for line in ways_in(entry):
            typer.echo(line)
        if "inventory" in entry:
            typer.echo(f"  replays a recording; its inventory is {entry['inventory']}")
        for missed in entry.get("unrecorded", ()):
            typer.echo(f"  not in the recording of {missed['host']}: {missed['what']} ({missed['times']}x)")


def ways_in(entry: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each part of a lab, with how it is reached in a column."""
    parts = list(_parts(entry))
    width = max((len(name) for name, _ in parts), default=0)
    yield from (f"  {name:<{width}}  {how}" for name, how in parts)


def _parts(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield hosts, controllers and registries of a lab by name, with how each is reached."""
    for host in entry["hosts"]:
        yield host["name"], host["ssh"]
    for controller in entry.get("controllers", ()):
        login = f"{controller['url']} as {controller['user']}"
        yield controller["name"], f"controller, {login}, password in {controller['password_file']}"
    for registry in entry.get("registries", ()):
        yield registry["name"], f"registry, {registry['url'] or _STARTED_BY_RUNS}"


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _described(lab: BackgroundLab, inventory: Inventory) -> dict[str, Any]:
    from harness.errors import InfrastructureError
    from harness.lab.bench import Bench
    from harness.lab.replay import INVENTORY_NAME

    pid = lab.pid()
    entry: dict[str, Any] = {"name": lab.name, "running": pid is not None, "pid": pid, "hosts": []}
    if pid is None:
        return entry
    try:
        doors = lab.doors()
    except InfrastructureError as error:  # one lab that is damaged does not hide the others
        return entry | {"error": str(error)}
    entry["out_of_order"] = _out_of_order(doors)
    if entry["out_of_order"] is None and (lab.directory / INVENTORY_NAME).exists():
        bench = Bench(doors.control)
        entry |= {
            "inventory": _shown(lab.directory / INVENTORY_NAME),
            "unrecorded": [
                {"host": host, **missed} for host, found in bench.unrecorded().items() for missed in found
            ],
        }
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
        "controllers": [
            {"name": name, "url": login.url, "user": login.user, "password_file": str(lab.doors_file)}
            for name, login in doors.controllers.items()
        ],
        "registries": _registries(inventory, lab.lab_name()),
    }


def _registries(inventory: Inventory, lab: str) -> list[dict[str, str | None]]:
    """Return the registries of a lab; ``url``: None for one that is not kept running."""
    entry = inventory.labs.get(lab)
    return [{"name": each.name, "url": each.url} for each in entry.registries.values()] if entry else []


def _out_of_order(doors: Doors) -> str | None:
    """Return why a running lab cannot be used; None where it can."""
    from harness.errors import InfrastructureError
    from harness.lab.bench import Bench

    try:
        Bench(doors.control).lab_time()
    except InfrastructureError as error:
        return error.message
    return None


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

"""`hil inventory`: check an inventory, show what is in it, print what it may hold."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.columns import columns

if TYPE_CHECKING:
    from harness.inventory.model import Host, Inventory, Lab
    from harness.inventory.registries import Registry

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Check and show what the harness may touch.",
)

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]", help="The inventory; default: $HIL_INVENTORY, else inventory.yaml here or above."
    ),
]
LabOption = Annotated[str | None, typer.Option("--lab", help="Only this lab.")]


class Form(str, Enum):
    """How a command prints its result."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


FormOption = Annotated[Form, typer.Option("-o", "--output", help="How to print it.")]


@app.command(
    short_help="Check an inventory file.",
    epilog="Examples:  hil inventory check     hil inventory check lab.yaml --credentials",
)
def check(
    file: FileArgument = None,
    lab: LabOption = None,
    credentials: Annotated[
        bool, typer.Option("--credentials", help="Also find every secret that real entries refer to.")
    ] = False,
) -> None:
    """Check the file; every error is listed with its line, what is allowed and the nearest spelling."""
    from harness.inventory.load import load_inventory
    from harness.lab.profiles import check_emulated
    from harness.lab.specification import specification

    inventory = load_inventory(file)
    check_emulated(inventory)
    labs = _chosen(inventory, lab)
    for entry in labs:
        specification(inventory, entry)  # finds the recipes and recordings that entries refer to
    found = _resolve_all(labs) if credentials else 0
    hosts = sum(len(entry.hosts) for entry in labs)
    cards = sum(1 for entry in labs for _ in entry.cards())
    registries = sum(len(entry.registries) for entry in labs)
    typer.echo(
        f"{inventory.path}: nothing wrong; {_count(len(labs), 'lab')}, {_count(hosts, 'host')}, "
        f"{_count(cards, 'card')}, {_count(registries, 'registry')}"
        + (f", {_count(found, 'secret')} found" if credentials else "")
    )


@app.command(epilog="Examples:  hil inventory show     hil inventory show lab.yaml --lab rack7 -o yaml")
def show(file: FileArgument = None, lab: LabOption = None, output: FormOption = Form.TABLE) -> None:
    """Show labs, hosts, cards and registries. Secrets are references, so nothing secret is printed."""
    from harness.inventory.load import load_inventory

    inventory = load_inventory(file)
    labs = _chosen(inventory, lab)
    if output is Form.TABLE:
        typer.echo("\n\n".join(_lab_as_text(entry, inventory.default_lab) for entry in labs))
        return
    data = inventory.model_dump(mode="json", exclude_none=True)
    data["labs"] = {entry.name: data["labs"][entry.name] for entry in labs}
    _print(_without_names(data), output)


@app.command(
    short_help="Print the places of a labgrid coordinator as an inventory.",
    epilog="Examples:\n\n  hil inventory labgrid > lab.yaml\n\n"
    "  hil inventory labgrid n3000-east n3000-west --coordinator lab.example",
)
def labgrid(
    places: Annotated[
        list[str] | None, typer.Argument(metavar="[PLACE]...", help="Only these; default: all.")
    ] = None,
    coordinator: Annotated[
        str, typer.Option(envvar="LG_COORDINATOR", help="HOST[:PORT] of the coordinator.")
    ] = "127.0.0.1",
) -> None:
    """Print the places of a labgrid coordinator as an inventory: a host for each that has a NetworkService.

    A tag `card0=0000:b2:00.0` of a place is a card of the host, `card0_identity=64:4c:36:12:34:56` says which
    one. What may be done to it that cannot be undone is never taken over: that is for the inventory to say.
    """
    from harness.errors import ConfigurationError
    from harness.inventory.places import coordinator_address
    from harness.lab.imported_places import imported
    from harness.leases.labgrid import Coordinator
    from harness.leases.owner import this_person

    try:
        address = coordinator_address(coordinator)
    except ValueError as error:
        raise ConfigurationError(f"--coordinator: {error}.") from None
    user, _, machine = this_person().name.partition("@")
    found = imported(address, Coordinator(address, f"{machine}/{user}").places(), places or ())
    for name, why in found.left_out.items():
        typer.echo(f"left out {name}: {why}", err=True)
    typer.echo(found.text, nl=False)


@app.command(
    short_help="Print every key and what it may hold.",
    epilog="Example:  hil inventory schema -o json > inventory.schema.json",
)
def schema(output: FormOption = Form.TABLE) -> None:
    """Print every key and what it may hold; `-o json` is a JSON Schema for editors."""
    from harness.inventory.describe import json_schema, keys_of_schema

    if output is not Form.TABLE:
        _print(json_schema(), output)
        return
    rows = [(row.key, row.holds, row.default) for row in keys_of_schema()]
    typer.echo(columns([("KEY", "HOLDS", "DEFAULT"), *rows]))


def _chosen(inventory: Inventory, lab: str | None) -> list[Lab]:
    return list(inventory.labs.values()) if lab is None else [inventory.lab(lab)]


def _resolve_all(labs: list[Lab]) -> int:
    """Find every secret that real entries refer to. :raises ConfigurationError: one is not there."""
    from harness.inventory.credentials import resolve

    hosts = [host for lab in labs for host in lab.hosts.values()]
    references = [
        *(reference for host in hosts for reference in host.secrets()),
        *(entry.credentials for lab in labs for entry in lab.controllers.values() if entry.credentials),
        *(entry.credentials for lab in labs for entry in lab.registries.values() if entry.credentials),
    ]
    for reference in references:
        resolve(reference)
    return len(references)


def _count(number: int, what: str) -> str:
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else plural}"


def _way(host: Host) -> str:
    if host.ssh:
        return f"ssh {host.ssh.where}{f' via {host.ssh.jump}' if host.ssh.jump else ''}"
    return "local" if host.local else "emulated"


def _lab_as_text(lab: Lab, default: str) -> str:
    title = f"lab {lab.name}{' (default)' if lab.name == default else ''}"
    systems = ", ".join(f"{entry.name} ({entry.role})" for entry in lab.controllers.values())
    rows: list[tuple[str, ...]] = [
        ("HOST", "REACHED", "POWER", "CARD", "ADDRESS", "IDENTITY", "IRREVERSIBLE")
    ]
    for host in lab.hosts.values():
        of_host = (host.name, _way(host), "yes" if host.can_power else "no")
        for card in host.cards.values():
            permits = ", ".join(card.irreversible) or "none"
            rows.append((*of_host, card.name, card.address, card.identity or "-", permits))
        if not host.cards:
            rows.append((*of_host, "-", "-", "-", "-"))
    return "\n".join(
        [title]
        + ([f"controllers: {systems}"] if systems else [])
        + [columns(rows)]
        + [f"registry {name}: {_registry(entry)}" for name, entry in lab.registries.items()]
    )


def _registry(entry: Registry) -> str:
    """Return in a few words where a registry is, and what may be done to it."""
    if entry.emulated:
        with_or_not = [
            f"{'with' if getattr(entry.emulated, key) else 'without'} {word}"
            for key, word in (("tls", "TLS"), ("tokens", "tokens"))
        ]
        return ", ".join([f"emulated ({entry.emulated.service})", *with_or_not])
    kept = entry.service and (entry.service.systemd or entry.service.starlingx)
    return ", ".join(
        [
            f"{entry.url}",
            f"as {entry.user}" if entry.user else "without a login",
            f"{kept} on {entry.host}" if kept else "cannot be restarted",
            f"store {entry.storage}" if entry.storage else "its store is not seen",
            *([f"reached by {entry.proxy}"] if entry.proxy else []),
        ]
    )


def _without_names(data: Any) -> Any:
    """Drop what the keys already say, so that the output is an inventory again."""
    if isinstance(data, dict):
        return {key: _without_names(value) for key, value in data.items() if key != "name"}
    return data


def _print(data: Any, form: Form) -> None:
    if form is Form.JSON:
        typer.echo(json.dumps(data, indent=2))
        return
    import sys

    from ruamel.yaml import YAML

    YAML().dump(data, sys.stdout)

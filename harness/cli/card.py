"""`hil card`: what is true of a card; flash it and reset it, judged, without writing a scenario."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli import card_health
from harness.cli.lease import CardArgument, InventoryOption, LabOption, LeasesOption
from harness.cli.opening import image_of, opened, recorded, show_progress
from harness.judgement.values import Unknown

if TYPE_CHECKING:
    from harness.inventory.model import Wear

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Show what is true of a card, flash it, reset it, keep runs from it.",
)
app.command(
    "list",
    short_help="List the cards of a lab, with their health.",
    epilog="Examples:\n\n  hil card list\n\n  hil card list -o json",
)(card_health.list_cards)
app.command(
    epilog="Examples:\n\n  hil card quarantine subcloud1/card0 --reason 'drops off the bus'\n\n"
    "  hil card quarantine subcloud1/card0 --reason 'new cable' --maintenance"
)(card_health.quarantine)
app.command(
    short_help="Let runs have a card again, once it checks out.",
    epilog="Example:\n\n  hil card clear subcloud1/card0 --reason 'cable exchanged'",
)(card_health.clear)

FormOption = Annotated[Literal["table", "json"], typer.Option("-o", "--output", help="table or json.")]
ReportsOption = Annotated[Path, typer.Option("--reports", help="Where the history is kept.")]
IrreversibleOption = Annotated[
    str, typer.Option("--irreversible", help="Permit on REAL cards: root-key,key-cancellation.")
]


@app.command(epilog="Examples:  hil card local     hil lab mount -- hil card local -o json")
def local(output: FormOption = "table") -> None:
    """Show the cards of this machine, as udev has them.

    No inventory is read and nothing is opened.
    """
    from harness.cards.local import local_cards

    found = local_cards()
    if output == "json":
        typer.echo(json.dumps([_as_json(card) for card in found], indent=1))
        return
    if not found:
        typer.echo("This machine has no card: no function 8086:0b30.")
    for card in found:
        typer.echo(f"{card.address}  MAC {card.identity}, slot {card.slot}")
        for function in card.functions:
            ids = ":".join(str(i) if isinstance(i, Unknown) else f"{i:04x}" for i in function.ids)
            virtual = function.virtual
            many = "" if isinstance(virtual, Unknown) else f", {virtual.enabled} of {virtual.total} VFs"
            node = f"NUMA node {function.numa_node}{many}"
            typer.echo(f"  {function.address}  {ids}  {function.driver or 'no driver':10}  {node}")


@app.command(
    short_help="Show what a card holds, and its health.",
    epilog="Example:  hil card show subcloud1/card0",
)
def show(
    card: CardArgument,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
    output: FormOption = "table",
) -> None:
    """Show a card's health, with its history, and what it holds, field by field."""
    from harness.inventory.load import load_inventory
    from harness.lab.background import chosen_lab
    from harness.record.history import History
    from harness.report.printable import printable

    loaded = load_inventory(inventory)
    # Reading is no operation: nothing of it is kept.
    with History("/dev/null") as history, opened(card, loaded, lab, history) as driver:
        truth = driver.truth()
    standing, changes = card_health.kept_of(card, loaded, lab, leases, reports)
    values = truth.values()
    wear = chosen_lab(loaded, lab)[0].card(card)[1].wear
    if output == "json":
        fields = {name: _as_json(value) for name, value in values.items()}
        told = {"card": card, "values": fields, "sources": dict(truth.sources)}
        told["wear"] = wear.model_dump(exclude_none=True) if wear else {}
        health = card_health.history_json(standing, changes)
        typer.echo(json.dumps(told | {"health": health}, indent=1))
        return
    for line in card_health.history_lines(standing, changes):
        typer.echo(line)
    for name, value in values.items():
        typer.echo(f"{name:20} {printable(_as_text(name, value), layout='')}")
        if name == "flash_count" and wear is not None:
            typer.echo(f"{'wear budget':20} {_budget(wear)}")


def _budget(wear: Wear) -> str:
    parts = {"flash counter below {}": wear.flash_count, "{} updates in a run": wear.per_run}
    return ", ".join(text.format(most) for text, most in parts.items() if most is not None)


@app.command(
    epilog="Examples:  hil card flash subcloud1/card0 A/csk0     hil card flash bench1/card0 my-image.bin"
)
def flash(
    card: CardArgument,
    image: Annotated[str, typer.Argument(help="A file, or the name of a recipe in fixtures/images.yaml.")],
    inventory: InventoryOption = None,
    lab: LabOption = None,
    expect: Annotated[
        Literal["lands", "unchanged"], typer.Option(help="What documents promise: it lands, or is refused.")
    ] = "lands",
    irreversible: IrreversibleOption = "",
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
) -> None:
    """Flash an image, reset the card, and judge what was reported. Exit 0 when all is as expected."""
    from harness.inventory.load import load_inventory
    from harness.judgement.records import Promise
    from harness.scenarios.promises import ACTIVATED_BY_RESET

    loaded = load_inventory(inventory)
    chosen = image_of(image, loaded)
    with recorded(card, loaded, lab, reports, irreversible, leases=leases) as driver:
        driver.flash(
            chosen.data,
            chosen.name,
            Promise(expect, source="the command line"),
            facts=chosen.facts,
            on_progress=show_progress,
        )
        if chosen.facts.effect in ACTIVATED_BY_RESET:
            typer.echo("resetting ...", err=True)
            driver.reset()


@app.command(epilog="Example:  hil card reset subcloud1/card0")
def reset(
    card: CardArgument,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
) -> None:
    """Reset the card with `rsu bmcimg` and judge what was reported."""
    from harness.inventory.load import load_inventory

    with recorded(card, load_inventory(inventory), lab, reports, leases=leases) as driver:
        driver.reset()


def _as_json(value: Any) -> Any:
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if is_dataclass(value):
        return {field.name: _as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (list, tuple)):
        return [_as_json(part) for part in value]
    return sorted(value) if isinstance(value, frozenset) else value


def _as_text(name: str, value: Any) -> str:
    if isinstance(value, Unknown):
        return str(value)
    if name in ("bitstream_id", "bitstream_metadata", "device_id", "hw_errinfo"):
        return f"0x{value:x}"
    if isinstance(value, (frozenset, list, tuple)):
        return ", ".join(map(str, sorted(value))) or "none"
    if name.endswith("_root") and value == "":
        return "not programmed"
    return str(value) or "none"

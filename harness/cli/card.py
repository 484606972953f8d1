"""`hil card`: what is true of a card; flash it and reset it, judged, without writing a scenario."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.judgement.values import Unknown

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.inventory.model import Card, Host, Inventory, Lab
    from harness.lab.running import RunningLab
    from harness.record.history import History

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Show what is true of a card, flash it, reset it.",
)

CardArgument = Annotated[str, typer.Argument(metavar="HOST/CARD", help="The card, as the inventory has it.")]
InventoryOption = Annotated[Path | None, typer.Option("--inventory", help="The inventory file.")]
LabOption = Annotated[str | None, typer.Option("--lab", help="The lab; default: the inventory's.")]
FormOption = Annotated[Literal["table", "json"], typer.Option("-o", "--output", help="table or json.")]
ReportsOption = Annotated[Path, typer.Option("--reports", help="Where the history is kept.")]
IrreversibleOption = Annotated[
    str, typer.Option("--irreversible", help="Permit on REAL cards: root-key,key-cancellation.")
]


@app.command("list", epilog="Example:  hil card list -o json")
def list_cards(
    inventory: InventoryOption = None, lab: LabOption = None, output: FormOption = "table"
) -> None:
    """List the cards of a lab; nothing is started and nothing is reached."""
    from harness.inventory.load import load_inventory

    entry = load_inventory(inventory).lab(lab)
    if output == "json":
        typer.echo(json.dumps([_listed(host, card) for host, card in entry.cards()], indent=1))
        return
    for host, card in entry.cards():
        permits = ", ".join(card.irreversible) or "nothing irreversible"
        typer.echo(
            f"{host.name + '/' + card.name:24} {card.address:14} {card.identity or '-':18} "
            f"{'real' if host.real else 'emulated':9} permits {permits}"
        )


def _listed(host: Host, card: Card) -> dict[str, Any]:
    return {
        "name": f"{host.name}/{card.name}",
        "address": card.address,
        "identity": card.identity or "",
        "real": host.real,
        "irreversible": list(card.irreversible),
    }


@app.command(epilog="Example:  hil card show subcloud1/card0")
def show(
    card: CardArgument,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    output: FormOption = "table",
) -> None:
    """Show what the card holds, field by field, and where each was read."""
    with _opened(card, inventory, lab, None) as (driver, _):
        truth = driver.truth()
    values = truth.values()
    if output == "json":
        fields = {name: _as_json(value) for name, value in values.items()}
        typer.echo(json.dumps({"card": card, "values": fields, "sources": dict(truth.sources)}, indent=1))
        return
    for name, value in values.items():
        typer.echo(f"{name:20} {_as_text(name, value)}")


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
    reports: ReportsOption = Path("reports"),
) -> None:
    """Flash an image, reset the card, and judge what was reported. Exit 0 when all is as expected."""
    from harness.judgement.records import Promise
    from harness.plugin.images import ImageShelf

    with _opened(card, inventory, lab, reports, irreversible) as (driver, loaded):
        shelf = ImageShelf.of(loaded.path.parent)
        chosen = shelf.file(Path(image)) if Path(image).is_file() else shelf[image]
        driver.flash(
            chosen.data,
            chosen.name,
            Promise(expect, source="the command line"),
            facts=chosen.facts,
            at_phase=lambda phase: typer.echo(f"{phase} ...", err=True),
        )
        if chosen.facts.effect != "unparsed":
            typer.echo("resetting ...", err=True)
            driver.reset()


@app.command(epilog="Example:  hil card reset subcloud1/card0")
def reset(
    card: CardArgument,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    reports: ReportsOption = Path("reports"),
) -> None:
    """Reset the card with `rsu bmcimg`, find it again, and judge what was reported."""
    with _opened(card, inventory, lab, reports) as (driver, _):
        driver.reset()


@contextmanager
def _opened(
    card: str,
    inventory: Path | None,
    lab: str | None,
    reports: Path | None,
    irreversible: str = "",
) -> Iterator[tuple[CardDriver, Inventory]]:
    """Give the driver of ``card``; where ``reports`` is given, record, then judge and print.

    :raises typer.Exit: with 1 where what was recorded is not as expected.
    """
    from harness.cards.driver import CardDriver
    from harness.hosts.connect import connect
    from harness.inventory.load import load_inventory
    from harness.judgement.model import Expectation
    from harness.judgement.records import RunEnded, RunStarted, ScenarioEnded, ScenarioStarted

    loaded = load_inventory(inventory)
    entry = loaded.lab(lab)
    host, card_entry = entry.card(card)
    with _running(loaded, entry) as running, _history(reports) as history:
        history.add(RunStarted(run=history.path.parent.name, lab=entry.name))
        driver = connect(host, running.access(host.name))
        allowed = frozenset(name.strip() for name in irreversible.split(",") if name.strip())
        try:
            of_card = CardDriver(
                driver,
                card_entry,
                history,
                real=host.real,
                allowed=allowed,
                sysfs=host.sysfs,
                tools=host.tools.model_dump(),
                upload_dir=host.upload_dir,
            )
            name = f"hil card {card}"
            history.add(
                ScenarioStarted(scenario=name, subject=of_card.subject, expects=Expectation().to_json())
            )
            yield of_card, loaded
            history.add(ScenarioEnded(scenario=name))
            history.add(RunEnded())
        finally:
            driver.close()
        if reports is not None:
            _tell(history)


def _running(inventory: Inventory, entry: Lab) -> RunningLab:
    """Return the emulated lab that `hil lab up` keeps running, where it does; else start one for now."""
    from harness.lab.background import background_lab
    from harness.lab.running import start_lab

    kept = background_lab(inventory, entry.name)
    if kept.pid() is not None:
        return kept.attach(inventory)
    if entry.emulated:
        typer.echo("(an emulated lab for this command only; `hil lab up` keeps one)", err=True)
    return start_lab(inventory, entry.name)


@contextmanager
def _history(reports: Path | None) -> Iterator[History]:
    """Give a history in a new run folder; one that nobody keeps where ``reports`` is None."""
    from harness.record.history import History

    if reports is None:
        with History("/dev/null") as history:
            yield history
        return
    from harness.plugin.session import new_run_dir

    folder = new_run_dir(reports)
    folder.mkdir(parents=True, exist_ok=True)
    with History(folder / "history.jsonl") as history:
        yield history


def _tell(history: History) -> None:
    from harness.judgement.judge import judge
    from harness.report.results import write_results
    from harness.report.summary import render

    judgement = judge(history.records)
    write_results(history.path.parent, judgement)
    typer.echo(render(judgement, history.path.parent))
    if not judgement.as_stated:
        raise typer.Exit(1)


def _as_json(value: Any) -> Any:
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    return sorted(value) if isinstance(value, (frozenset, list, tuple)) else value


def _as_text(name: str, value: Any) -> str:
    if isinstance(value, Unknown):
        return str(value)
    if name in ("bitstream_id", "bitstream_metadata"):
        return f"0x{value:x}"
    if isinstance(value, (frozenset, list, tuple)):
        return ", ".join(map(str, sorted(value))) or "none"
    if name.endswith("_root") and value == "":
        return "not programmed"
    return str(value) or "none"

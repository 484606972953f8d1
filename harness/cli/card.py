"""`hil card`: what is true of a card; flash it and reset it, judged, without writing a scenario."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.errors import ConfigurationError, InfrastructureError
from harness.judgement.values import Unknown

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.cards.tool_output import Progress
    from harness.inventory.model import Card, Host, Inventory, Lab
    from harness.lab.running import RunningLab
    from harness.plugin.images import Image
    from harness.plugin.run_history import RunHistory
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
    from harness.inventory.load import load_inventory
    from harness.record.history import History

    # Reading is no operation: nothing of it is kept.
    with History("/dev/null") as history, _opened(card, load_inventory(inventory), lab, history) as driver:
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
    from harness.inventory.load import load_inventory
    from harness.judgement.records import Promise
    from harness.scenarios.promises import ACTIVATED_BY_RESET

    loaded = load_inventory(inventory)
    chosen = _image(image, loaded)
    with _recorded(card, loaded, lab, reports, irreversible) as driver:
        driver.flash(
            chosen.data,
            chosen.name,
            Promise(expect, source="the command line"),
            facts=chosen.facts,
            on_progress=_show_progress,
        )
        if chosen.facts.effect in ACTIVATED_BY_RESET:
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
    from harness.inventory.load import load_inventory

    with _recorded(card, load_inventory(inventory), lab, reports) as driver:
        driver.reset()


def _image(name: str, inventory: Inventory) -> Image:
    """Return the image in the file ``name``, or that of the recipe of that name.

    :raises ConfigurationError: there is neither.
    """
    from harness.plugin.images import ImageShelf

    shelf = ImageShelf.of(inventory.path.parent)
    if Path(name).is_file():
        return shelf.file(Path(name))
    try:
        return shelf[name]
    except ConfigurationError as error:
        raise ConfigurationError(
            f"There is no file {name}, and no recipe of that name.", hint=error.hint
        ) from None


def _show_progress(progress: Progress) -> None:
    """Say the phase; on a terminal, how far it has come as well."""
    if progress.percent is None:
        typer.echo(f"{progress.phase} ...", err=True)
    elif sys.stderr.isatty():
        typer.echo(f"\r{progress.phase} {progress.percent:g} %\x1b[K\r", err=True, nl=False)


@contextmanager
def _opened(
    card: str, inventory: Inventory, lab: str | None, history: History, irreversible: str = ""
) -> Iterator[CardDriver]:
    """Give the driver of ``card`` in its lab, which is started for as long where it is not kept running."""
    from harness.cards.driver import CardDriver
    from harness.cards.interlock import named_acts
    from harness.hosts.connect import connect

    allowed = named_acts(irreversible, "--irreversible")
    entry = inventory.lab(lab)
    host, card_entry = entry.card(card)
    with _running(inventory, entry) as running:
        reached = connect(host, running.access(host.name))
        try:
            yield CardDriver(
                reached,
                card_entry,
                history,
                real=host.real,
                allowed=allowed,
                sysfs=host.sysfs,
                tools=host.tools.model_dump(),
                upload_dir=host.upload_dir,
            )
        finally:
            reached.close()


@contextmanager
def _recorded(
    card: str, inventory: Inventory, lab: str | None, reports: Path, irreversible: str = ""
) -> Iterator[CardDriver]:
    """Give the driver of ``card``; record what it does, judge that and print it, however it ends.

    :raises typer.Exit: with 1 where what was recorded is not as expected.
    """
    from harness.cards.interlock import named_acts
    from harness.interruption import sigterm_is_ctrl_c
    from harness.judgement.model import Expectation
    from harness.judgement.records import RunStarted, ScenarioStarted, Subject

    entry = inventory.lab(lab)
    host, _ = entry.card(card)
    named_acts(irreversible, "--irreversible")
    failure: BaseException | None = None
    with sigterm_is_ctrl_c(), _history(reports) as history:
        history.add(RunStarted(run=history.path.parent.name, lab=entry.name))
        subject, expects = Subject("card", card, host=host.name), Expectation().to_json()
        history.add(ScenarioStarted(scenario=_scenario(card), subject=subject, expects=expects))
        try:
            with _opened(card, inventory, lab, history, irreversible) as driver:
                yield driver
        except BaseException as error:
            failure = error
            raise
        finally:
            as_stated = _concluded(card, history, failure)
        if history.failure is not None:
            raise history.failure
    if not as_stated:
        raise typer.Exit(1)


def _scenario(card: str) -> str:
    """Return what an operation from the command line is called in its history."""
    return f"hil card {card}"


def _concluded(card: str, history: RunHistory, failure: BaseException | None) -> bool:
    """End the history, judge it and print that; return whether all is as expected."""
    from harness.interruption import uninterrupted
    from harness.judgement.records import RunEnded, ScenarioEnded
    from harness.scenarios.states import INTERRUPTED, state_of

    state, reason = state_of(failure)
    how: Literal["interrupted", "finished"] = "interrupted" if state == INTERRUPTED else "finished"
    with uninterrupted("judge what was recorded"):
        # What a full disk does not take is judged from memory; the history remembers the error.
        with suppress(InfrastructureError):
            history.add(ScenarioEnded(scenario=_scenario(card), state=state, reason=reason))
        with suppress(InfrastructureError):
            history.add(RunEnded(how=how))
        return _tell(history)


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
def _history(reports: Path) -> Iterator[RunHistory]:
    """Give a history in a new run folder, which is held until it is judged."""
    from harness.plugin.run_history import RunHistory
    from harness.record.runs import make_run_dir, new_run_dir

    folder = new_run_dir(reports)
    hold = make_run_dir(folder)
    try:
        history = RunHistory(folder / "history.jsonl")
        with closing(history):
            yield history
    finally:
        os.close(hold)


def _tell(history: History) -> bool:
    """Judge what was recorded and print it; return whether it is as expected."""
    from harness.judgement.judge import judge
    from harness.report.results import write_results
    from harness.report.summary import render

    judgement = judge(history.records)
    typer.echo(render(judgement, history.path.parent, colour=sys.stdout.isatty()))
    with suppress(InfrastructureError):  # the history is there, and `hil judge` makes them from it
        write_results(history.path.parent, judgement)
    return judgement.as_stated


def _as_json(value: Any) -> Any:
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    return sorted(value) if isinstance(value, (frozenset, list, tuple)) else value


def _as_text(name: str, value: Any) -> str:
    if isinstance(value, Unknown):
        return str(value)
    if name in ("bitstream_id", "bitstream_metadata", "device_id"):
        return f"0x{value:x}"
    if isinstance(value, (frozenset, list, tuple)):
        return ", ".join(map(str, sorted(value))) or "none"
    if name.endswith("_root") and value == "":
        return "not programmed"
    return str(value) or "none"

"""`hil card list|quarantine|clear`: how cards stand, keep runs from one, let them have it again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from harness.cli.form import Form, FormOption
from harness.cli.lease import CardArgument, InventoryOption, LabOption, LeasesOption, ReportsOption
from harness.display_width import display_width, padded
from harness.errors import BlockedError

if TYPE_CHECKING:
    from harness.health.checks import Check
    from harness.health.states import Event
    from harness.health.store import Change, Health, Place
    from harness.inventory.model import Card, Host, Inventory, Lab
    from harness.lab.background import BackgroundLab
    from harness.lab.standing import Standing

_HEADS: Final = ("CARD", "ADDRESS", "IDENTITY", "PERMITS", "HEALTH", "SINCE", "IN USE BY", "LAST RESULT")


def list_cards(
    inventory: InventoryOption = None,
    lab: LabOption = None,
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
    output: FormOption = Form.TABLE,
) -> None:
    """List the cards of a lab: health, who uses each, how its latest scenario ended.

    Nothing is started and nothing is reached.
    """
    from harness.inventory.load import load_inventory
    from harness.lab.background import chosen_lab
    from harness.lab.standing import leases_and_index, standings

    entry, kept = chosen_lab(load_inventory(inventory), lab)
    found = standings(entry, kept, *leases_and_index(reports, leases))
    cards = [(host, card, found[f"{host.name}/{card.name}"]) for host, card in entry.cards()]
    if output is Form.JSON:
        typer.echo(json.dumps([_listed(*one) for one in cards], indent=1))
        return
    for line in _table(cards):
        typer.echo(line)


def _listed(host: Host, card: Card, standing: Standing) -> dict[str, Any]:
    health = standing.health
    return {
        "name": f"{host.name}/{card.name}",
        "address": card.address,
        "identity": card.identity or "",
        "real": host.real,
        "irreversible": list(card.irreversible),
        "health": health.state.value,
        "since": health.since,
        "by": health.cause.who,
        "reason": health.cause.reason,
        "lease": str(standing.lease) if standing.lease else "",
        "last": standing.last,
    }


def _table(cards: Sequence[tuple[Host, Card, Standing]]) -> Iterator[str]:
    rows = [_HEADS, *(_row(*one) for one in cards)]
    widths = [max(display_width(row[column]) for row in rows) for column in range(len(_HEADS))]
    for number, row in enumerate(rows):
        cells = (padded(cell, width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
        if number and (health := cards[number - 1][2].health).state.value != "good":
            yield f"    {health.cause.who}: {_line(health.cause.reason)}"


def _row(host: Host, card: Card, standing: Standing) -> tuple[str, ...]:
    health = standing.health
    permits = ",".join(card.irreversible) or "none"
    user = standing.lease.owner.name if standing.lease else "-"
    return (
        *(f"{host.name}/{card.name}", card.address, card.identity or "-", permits),
        *(health.state.value, _when(health.since), user, standing.last or "-"),
    )


def kept_of(
    card: str, inventory: Inventory, lab: str | None, leases: str | None, reports: Path
) -> tuple[Standing, list[Change]]:
    """Return how a card stands, and how its health came about; nothing is changed."""
    from harness.lab.background import chosen_lab
    from harness.lab.standing import changes_of, leases_and_index, standings

    entry, kept = chosen_lab(inventory, lab)
    urls = leases_and_index(reports, leases)
    standing = standings(entry, kept, *urls)[card]
    return standing, changes_of(standing.health.place, urls[0])


def history_lines(standing: Standing, changes: Sequence[Change]) -> Iterator[str]:
    """Yield the health of a card and how it came about, the latest first, for people."""
    from harness.lab.health import in_words

    yield f"{'health':20} {_line(in_words(standing.health))}"
    for change in changes:
        steps = f"{change.before.value} -> {change.after.value}"
        yield (
            f"{'':20} {_when(change.at)}  {steps} ({change.event.value}) by {change.cause.who}: "
            f"{_line(change.cause.reason)}"
        )


def history_json(standing: Standing, changes: Sequence[Change]) -> dict[str, Any]:
    """Return the same as data (docs/json.md)."""
    health = standing.health
    return {
        "state": health.state.value,
        "since": health.since,
        "by": health.cause.who,
        "reason": health.cause.reason,
        "history": [
            {
                "at": change.at,
                "event": change.event.value,
                "before": change.before.value,
                "after": change.after.value,
                "by": change.cause.who,
                "reason": change.cause.reason,
                "run": change.cause.run,
                "evidence": change.cause.evidence,
            }
            for change in changes
        ],
    }


def quarantine(
    card: CardArgument,
    reason: Annotated[str, typer.Option(help="Why; shown to whoever wants the card.")],
    maintenance: Annotated[
        bool, typer.Option("--maintenance", help="Somebody works on it: in maintenance, not quarantined.")
    ] = False,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
) -> None:
    """Keep runs from a card until it is cleared.

    Every scenario on it is BLOCKED, with who did it, when and why. What a run does on it now is not ended.
    """
    from harness.health.states import Event
    from harness.inventory.load import load_inventory
    from harness.lab.background import chosen_lab
    from harness.lab.standing import place_of

    entry, kept = chosen_lab(load_inventory(inventory), lab)
    event = Event.MAINTENANCE if maintenance else Event.QUARANTINE
    _note(place_of(entry, kept, card), event, reason, reports, leases)
    typer.echo(
        f"{card} is {'in maintenance' if maintenance else 'quarantined'}; "
        f"give it back with: hil card clear {card} --reason ..."
    )
    if not entry.card(card)[0].real and not kept.runs():
        typer.echo(
            f"(Its lab does not run: only what goes on in it after `hil lab up {entry.name}` heeds that.)"
        )


def clear(
    card: CardArgument,
    reason: Annotated[str, typer.Option(help="What was done about it; kept.")],
    force: Annotated[
        bool, typer.Option("--force", help="Without a look at it; it is suspect until a check is clean.")
    ] = False,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
) -> None:
    """Let runs have a card again, once its checks find nothing that keeps them from it.

    Nothing of the card is changed. Exits with 3 where a check is bad, or somebody else says something of the
    card meanwhile: then it stays as it is.
    """
    from harness.health.checks import Grade, worst
    from harness.health.states import Event
    from harness.inventory.load import load_inventory
    from harness.lab.background import chosen_lab
    from harness.lab.standing import place_of

    loaded = load_inventory(inventory)
    entry, kept = chosen_lab(loaded, lab)
    place = place_of(entry, kept, card)
    seen = _seen(place, reports, leases)
    checks = () if force else _looked(card, loaded, entry, kept)
    for check in checks:
        if check.grade is not Grade.OK:
            typer.echo(f"{check.grade.value:5} {check.name}: {_line(check.finding)}\n      fix: {check.hint}")
    if worst(checks) is Grade.BAD:
        raise BlockedError(
            f"{card} is not cleared: {sum(c.grade is Grade.BAD for c in checks)} of its checks are bad.",
            hint=f"Put that right; or without a look: hil card clear {card} --reason ... --force",
        )
    sure = not force and worst(checks) is Grade.OK
    event = Event.CLEAR if sure else Event.CLEAR_UNCHECKED
    state = _note(place, event, reason, reports, leases, seen)
    typer.echo(f"{card} is {state}.")


def _looked(card: str, inventory: Inventory, entry: Lab, kept: BackgroundLab) -> tuple[Check, ...]:
    from harness.cli.opening import running_lab
    from harness.health.looking import look_at_card
    from harness.hosts.connect import connect

    host, one = entry.card(card)
    with running_lab(inventory, entry, kept=kept) as running:
        reached = connect(host, running.access(host.name))
        try:
            looked = look_at_card(host, one, reached)
        finally:
            reached.close()
    return looked.checks


def _seen(place: Place, reports: Path, leases: str | None) -> Health:
    from harness.health.store import HealthStore
    from harness.leases.store import leases_url

    with HealthStore(leases_url(reports, leases)) as store:
        return store.of(place)


def _note(
    place: Place, event: Event, reason: str, reports: Path, leases: str | None, seen: Health | None = None
) -> str:
    from harness.health.store import Cause, HealthStore
    from harness.leases.owner import this_person
    from harness.leases.store import leases_url

    with HealthStore(leases_url(reports, leases)) as store:
        return store.note(place, event, Cause(str(this_person()), reason), seen=seen).state.value


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else "-"


def _line(text: str) -> str:
    from harness.report.printable import printable

    return printable(text.partition("\n")[0], layout="")

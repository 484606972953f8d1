"""`hil lease`: who may write to which card; a card kept for a person; a lease ended for its owner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.durations import UNITS, seconds_of
from harness.cli.form import Form, FormOption
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.leases.store import Break, Held, LeaseStore

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Show who may write to cards; take a card, give it back.",
)


def _known_cards(incomplete: str) -> list[str]:
    """Return the cards of the inventory in this folder, for completion in a shell."""
    from harness.errors import HarnessError
    from harness.inventory.load import load_inventory

    try:
        names = [f"{host.name}/{card.name}" for host, card in load_inventory(None).lab(None).cards()]
    except HarnessError:
        return []
    return [name for name in names if name.startswith(incomplete)]


CardArgument = Annotated[
    str,
    typer.Argument(
        metavar="HOST/CARD", help="The card, as the inventory has it.", autocompletion=_known_cards
    ),
]
InventoryOption = Annotated[Path | None, typer.Option("--inventory", help="The inventory file.")]
LabOption = Annotated[str | None, typer.Option("--lab", help="The lab; default: the inventory's.")]
LeasesOption = Annotated[
    str | None,
    typer.Option(
        "--leases", metavar="URL", help="The leases; default: HIL_LEASES, else the database of the index."
    ),
]
ReportsOption = Annotated[Path, typer.Option("--reports", help="Where the index is, if nothing says it.")]


@app.command("list", epilog="Examples:\n\n  hil lease list\n\n  hil lease list -o json")
def list_leases(
    leases: LeasesOption = None, reports: ReportsOption = Path("reports"), output: FormOption = Form.TABLE
) -> None:
    """List who has which card, and why.

    Then the leases that were broken last.
    """
    with _opened(reports, leases) as store:
        held, breaks = store.all(), store.breaks()
    if output is Form.JSON:
        told = {"leases": [_held_json(one) for one in held], "broken": [_break_json(one) for one in breaks]}
        typer.echo(json.dumps(told, indent=1))
        return
    if not held:
        typer.echo("Nobody has a card.")
    for one in held:
        left = "over, its owner is gone" if one.owner.gone else f"over in {_short(one.left)}"
        left = left if one.left > 0 else f"over since {_short(-one.left)}"
        _echo(
            f"{one.lease.name:24} {one.owner}, for {_short(one.age)}, {left}; "
            f"token {one.lease.token}: {one.reason}"
        )
    for broken in breaks:
        _echo(
            f"{broken.lease.name:24} broken {_short(broken.age)} ago by {broken.by}: {broken.reason} "
            f"({broken.owner} had it, token {broken.lease.token})"
        )


@app.command(epilog="Example:\n\n  hil lease take subcloud1/card0 --reason 'BMC console by hand' --ttl 2h")
def take(
    card: CardArgument,
    reason: Annotated[str, typer.Option(help="What for; shown to whoever wants the card.")],
    ttl: Annotated[str, typer.Option(help="How long: 90s, 30m, 2h, 1d.")] = "1h",
    inventory: InventoryOption = None,
    lab: LabOption = None,
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
    output: FormOption = Form.TABLE,
) -> None:
    """Keep a card for yourself.

    No run writes to it until you give it back, or the time is over.
    """
    from harness.leases.owner import this_person

    key, seconds = _key(card, inventory, lab), seconds_of(ttl)
    with _opened(reports, leases) as store:
        lease = store.acquire(key, card, this_person(), reason, seconds)
    if output is Form.JSON:
        typer.echo(json.dumps({"card": card, "token": lease.token, "seconds": seconds}))
        return
    typer.echo(f"{card} is yours for {_short(seconds)}; give it back with: hil lease release {card}")


@app.command(epilog="Example:\n\n  hil lease release subcloud1/card0")
def release(
    card: CardArgument,
    inventory: InventoryOption = None,
    lab: LabOption = None,
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
) -> None:
    """Give a card back that you have taken."""
    from harness.leases.owner import this_person

    key, me = _key(card, inventory, lab), this_person()
    with _opened(reports, leases) as store:
        held = next((one for one in store.all() if one.lease.card == key), None)
        if held is None or held.owner != me:
            raise ConfigurationError(
                f"You ({me}) do not have {card}: {f'{held.owner} does' if held else 'nobody does'}.",
                hint=f"To end it for its owner: hil lease break {card} --reason ..." if held else "",
            )
        store.release(held.lease)
    typer.echo(f"{card} is given back.")


@app.command("break", epilog="Example:\n\n  hil lease break subcloud1/card0 --reason 'the machine is off'")
def break_lease(
    card: CardArgument,
    reason: Annotated[str, typer.Option(help="Why; kept, and told to its owner.")],
    inventory: InventoryOption = None,
    lab: LabOption = None,
    leases: LeasesOption = None,
    reports: ReportsOption = Path("reports"),
) -> None:
    """End a lease for its owner.

    Who had it writes no more to the card; who did it and why is kept. An update that is going on is not
    ended: whoever takes the card next waits for it.
    """
    from harness.leases.owner import this_person

    key = _key(card, inventory, lab)
    with _opened(reports, leases) as store:
        held = store.broken(key, str(this_person()), reason)
    if held is None:
        raise ConfigurationError(f"Nobody has the lease of {card}.", hint="See: hil lease list")
    _echo(f"{card} is free: {held.owner} had it ({held.reason}).")


def _echo(line: str) -> None:
    """Print a line with words of somebody else, who may have put what is no text in them."""
    from harness.report.printable import printable

    typer.echo(printable(line, layout=""))


@contextmanager
def _opened(reports: Path, said: str | None) -> Iterator[LeaseStore]:
    from harness.leases.store import LeaseStore, leases_url

    with LeaseStore(leases_url(reports, said)) as store:
        yield store


def _key(card: str, inventory: Path | None, lab: str | None) -> str:
    """Return the key of a card of the inventory. :raises ConfigurationError: nobody else can reach it."""
    from harness.inventory.load import load_inventory
    from harness.lab.background import chosen_lab
    from harness.lab.leasing import lease_key

    entry, kept = chosen_lab(load_inventory(inventory), lab)
    return lease_key(*entry.card(card), str(kept.directory.resolve()))


def _short(seconds: float) -> str:
    """Return a time in the largest unit that leaves two of it, for people."""
    unit = next((u for u in "dhm" if seconds >= 2 * UNITS[u]), "s")
    return f"{seconds / UNITS[unit]:.0f} {unit if unit != 'm' else 'min'}"


def _held_json(one: Held) -> dict[str, Any]:
    lease, owner = one.lease, one.owner
    return {
        "card": lease.name,
        "key": lease.card,
        "token": lease.token,
        "owner": owner.name,
        "machine": owner.machine,
        "pid": owner.pid or None,
        "reason": one.reason,
        "seconds_held": round(one.age, 3),
        "seconds_left": round(one.left, 3),
        "over": one.left <= 0 or owner.gone,
    }


def _break_json(one: Break) -> dict[str, Any]:
    return {
        "card": one.lease.name,
        "token": one.lease.token,
        "owner": one.owner,
        "by": one.by,
        "reason": one.reason,
        "seconds_ago": round(one.age, 3),
    }

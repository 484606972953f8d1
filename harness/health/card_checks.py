"""Checks of one card: is it there, is it the right one, is it idle, how worn is it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Final

from harness.cards.discovery import MANAGEMENT
from harness.cards.truth import CardTruth
from harness.health.checks import Check, bad, ok, warn
from harness.hosts.protocol import CommandResult
from harness.inventory.model import Card
from harness.judgement.values import NOT_EXPOSED, Unknown, Value, known

#: What is safe to read while an update runs: none of it lies on the update's path to the flash.
SAFE_FIELDS: Final = frozenset(
    {"identity", "device_id", "driver", "generation", "bitstream_id", "update_status"}
)
#: What is not, and is read of an idle card alone.
FLASH_FIELDS: Final = frozenset({"flash_count", "sr_root", "generation"})
#: Programs that change a card.
UPDATERS: Final = ("fpgasupdate", "rsu")
#: Above so many updates the card delays each, for so many seconds (n3000.md 4.6).
_DELAYS: Final = ((2000, 60), (1000, 30))
#: The part of a card's allowance of updates after which it is told that little is left.
_NEARLY: Final = 0.9
_INVENTORY: Final = "Correct `address` and `identity` of the card in the inventory; hil card local lists them"


def place_of(card: Card, found: Sequence[tuple[str, Value[str]]]) -> str:
    """Return the address at which the card answers now; its own where its identity is nowhere.

    :param found: address and identity of every card of the host.
    """
    return next((address for address, mac in found if mac == card.identity), card.address)


def place_checks(card: Card, truth: CardTruth, found: Sequence[tuple[str, Value[str]]]) -> Iterator[Check]:
    """Yield whether the right card is where the inventory has it, or anywhere on its host.

    :param truth: of :func:`place_of` the card.
    """
    yield _place(card, truth, found)
    if truth.on_bus and isinstance(truth.device_id, int) and truth.device_id != MANAGEMENT:
        yield bad(
            "pci id",
            f"8086:{truth.device_id:04x} stands at {truth.address}, and a card's management function is "
            f"8086:{MANAGEMENT:04x}",
            _INVENTORY,
        )


def _place(card: Card, truth: CardTruth, found: Sequence[tuple[str, Value[str]]]) -> Check:
    places = [address for address, mac in found if card.identity is not None and mac == card.identity]
    here = dict(found).get(card.address)
    if len(places) > 1:
        return bad(
            "card",
            f"two cards say that they are {card.identity}: {' and '.join(places)}",
            "Take one of them out: nobody can tell them apart.",
        )
    if places and places[0] != card.address:
        return ok(
            "card", f"{card.identity} at {places[0]}; the inventory has it at {card.address}", _INVENTORY
        )
    if places:
        return ok("card", f"{card.identity} at {card.address}")
    if isinstance(here, str) and card.identity is not None:
        return bad(
            "card",
            f"another card: {here} answers at {card.address}, and {card.identity} is nowhere on the host",
            "Was the card exchanged? Correct `identity` in the inventory.",
        )
    if not truth.on_bus:
        return bad(
            "card",
            f"no card at {card.address}" + (f", and {card.identity} is nowhere" if card.identity else ""),
            f"Power-cycle the host if the card fell off the bus. {_INVENTORY}",
        )
    if isinstance(truth.identity, Unknown) and card.identity is not None:
        return bad(
            "card",
            f"which card stands at {card.address} cannot be told: its MAC is {truth.identity}",
            "Bring the card's drivers up; a power cycle of the host brings back one that fell off the bus.",
        )
    return ok(
        "card",
        f"{truth.identity} at {card.address}; the inventory does not say which is meant",
        f"State it in the inventory: `identity: {truth.identity}`" if known(truth.identity) else "",
    )


def idle_check(truth: CardTruth, processes: Value[str]) -> Check:
    """Return whether anything works on the card.

    :param processes: what ``pgrep -a`` printed of programs that change cards.
    """
    hint = "Wait for it to end: two updaters on one card are never allowed. See: hil lease list"
    status = truth.update_status
    if isinstance(status, str) and status != "idle":
        return bad("idle", f"an update runs: {status}", hint)
    if isinstance(processes, Unknown):
        if status == NOT_EXPOSED:
            finding = f"its driver shows no status, and processes cannot be listed: {processes}"
            return warn("idle", finding, "Install procps on the host, which has pgrep.")
    elif who := updater(processes, str(truth.address)):
        return bad("idle", f"process {who} works on it", hint)
    if isinstance(status, Unknown) and status != NOT_EXPOSED:
        return warn("idle", f"whether an update runs is {status}", "See the kernel's log on the host: dmesg")
    return ok("idle", "no update runs" if known(status) else "no updater runs; its driver shows no status")


def updater(processes: str, address: str) -> str:
    """Return the process that changes the card at ``address``, from what ``pgrep -a`` printed; or none."""
    for line in processes.splitlines():
        number, _, command = line.partition(" ")
        words = command.split()
        names = {posixpath.basename(word) for word in words}
        # A shell has the words of its script in one; ours has those of this very question.
        if number.isdigit() and address in words and names.intersection(UPDATERS) and "-c" not in words[:3]:
            return f"{number} ({command[:120]})"
    return ""


def wear_check(count: Value[int], limit: int | None) -> Check:
    """Return how worn the card's flash is, beside what its entry allows.

    :param limit: the count at which no more updates are to begin; None: nobody has set one.
    """
    if isinstance(count, Unknown):
        if limit is None:
            return ok("wear", f"the flash count is {count}")
        return warn(
            "wear",
            f"the flash count is {count}; its entry allows {limit}, so that no further update begins",
            "See the kernel's log on the host: dmesg; or take `wear` out of the card's entry.",
        )
    hint = "Raise the card's `wear` in the inventory, or exchange the card."
    if limit is not None and count >= limit:
        return warn("wear", f"{count} updates; its entry allows {limit}, so that no further one begins", hint)
    delay = next((f"; the card delays each by {s} s" for least, s in _DELAYS if count > least), "")
    finding = f"{count} updates{f' of {limit}' if limit is not None else ''}{delay}"
    return ok("wear", finding, hint if limit is not None and count >= _NEARLY * limit else "")


def wear_limit(card: Card) -> int | None:
    """Return the flash count at which no more updates of a card are to begin; None: nobody has set one."""
    return card.wear.flash_count if card.wear is not None else None


def processes_of(result: CommandResult) -> Value[str]:
    """Return what ``pgrep`` printed; it ends with 1 where it found none, and with more where it could not."""
    if result.exit_code in (0, 1):
        return result.stdout
    return Unknown(result.stderr.strip()[-200:] or f"`pgrep` ended with exit code {result.exit_code}")

"""The interlock: what cannot be undone happens only to a card whose inventory entry permits it by name.

And nothing at all is written to a card that is another one, that updates already, or that is worn enough.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, get_args

from harness.errors import ConfigurationError, RefusedError
from harness.images import facts as image_facts
from harness.judgement.values import Unknown, Value


class CardEntry(Protocol):
    """What the drivers need of a card in the inventory (see :class:`harness.inventory.model.Card`)."""

    @property
    def name(self) -> str:
        """The card's name on its host."""
        ...

    @property
    def address(self) -> str:
        """The PCI address at which the inventory has the card."""
        ...

    @property
    def identity(self) -> str | None:
        """The card's first MAC, where the inventory states it."""
        ...

    @property
    def irreversible(self) -> Collection[str]:
        """The irreversible acts that are permitted on this card."""
        ...

    @property
    def wear(self) -> WearBudget | None:
        """How many updates it may have behind it; None: as many as it takes."""
        ...


class WearBudget(Protocol):
    """The most that a card may be worn (see :class:`harness.inventory.model.Wear`)."""

    @property
    def flash_count(self) -> int | None:
        """At this value of the card's own flash counter no further update begins."""
        ...

    @property
    def per_run(self) -> int | None:
        """So many updates begin in one run at most."""
        ...


class Standing(Protocol):
    """What is looked at of a card before it is written to (see :class:`harness.cards.truth.CardTruth`)."""

    @property
    def address(self) -> Value[str]:
        """Where it answered."""
        ...

    @property
    def identity(self) -> Value[str]:
        """Who it is."""
        ...

    @property
    def update_status(self) -> Value[str]:
        """``idle``, or how far an update of it is; not every driver generation shows it."""
        ...

    @property
    def flash_count(self) -> Value[int]:
        """Its flash counter."""
        ...


class Irreversible(Protocol):
    """What the interlock looks at in the facts of an image (see :class:`harness.images.facts.ImageFacts`)."""

    @property
    def irreversible(self) -> frozenset[str]:
        """``root-key``, ``key-cancellation``; both for bytes that cannot be parsed."""
        ...


def named_acts(text: str, option: str) -> frozenset[str]:
    """Return the irreversible acts that ``text`` of a command-line ``option`` names, separated by commas.

    :raises ConfigurationError: there is no such act. A name that is misspelt must not count as "none".
    """
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    known = get_args(image_facts.Irreversible)
    if unknown := sorted(names - set(known)):
        raise ConfigurationError(
            f"{option} names {', '.join(map(repr, unknown))}, and there is no such irreversible act.",
            hint=f"Known: {','.join(known)}.",
        )
    return names


def check(entry: CardEntry, facts: Irreversible, allowed_on_real: Collection[str], real: bool) -> None:
    """Return if the image of ``facts`` may go to the card ``entry``.

    :param facts: decided from the very bytes that will be written.
    :param allowed_on_real: the names given with ``--hil-irreversible``; they count for real cards.
    :param real: whether the card is real hardware.
    :raises RefusedError: the card's entry, or the command line, does not permit what the image does; or the
        entry of a real card does not say which card it is about.
    """
    forbidden = facts.irreversible - frozenset(entry.irreversible)
    if forbidden:
        names = ", ".join(sorted(forbidden))
        raise RefusedError(
            f"The image does what cannot be undone ({names}, or it cannot be told), and the inventory "
            f"does not permit that on {entry.name}; nothing was changed.",
            hint=f"If it is meant: `irreversible: [{names}]` in the inventory entry of {entry.name}.",
        )
    if real and (unnamed := facts.irreversible - frozenset(allowed_on_real)):
        names = ",".join(sorted(facts.irreversible))
        raise RefusedError(
            f"{entry.name} is real hardware, and the image does what cannot be undone "
            f"({', '.join(sorted(unnamed))}); nothing was changed.",
            hint=f"If it is meant: run again with --hil-irreversible={names}.",
        )
    if real and facts.irreversible and entry.identity is None:
        raise RefusedError(
            f"The image does what cannot be undone, and the inventory permits it to whatever card stands at "
            f"{entry.address}: {entry.name} has no identity there; nothing was changed.",
            hint="State the card's identity (its first MAC address; `hil card show` reads it): only so is a "
            "card that was exchanged told.",
        )


def check_standing(
    entry: CardEntry, seen: Standing, name: str, *, known: str | None = None, while_updating: bool = False
) -> None:
    """Return if what was ``seen`` at a card's address is that card, and is not being updated.

    :param known: the identity that it had before, where the inventory states none.
    :param while_updating: an update is meant to be disturbed.
    :raises RefusedError: it is another one, cannot be told, or updates.
    """
    if isinstance(seen.identity, Unknown):
        raise RefusedError(
            f"Which card stands at the address of {name} cannot be read (identity {seen.identity}); "
            "nothing was changed.",
            hint="Bring the card's drivers up first; `hil card show` says what can be read.",
        )
    expected = entry.identity or known
    if expected is not None and seen.identity != expected.lower():
        said = "in the inventory" if entry.identity else "as it was read before"
        raise RefusedError(
            f"{name} is {expected} {said}, but at {seen.address} {seen.identity} answers; "
            "nothing was changed.",
            hint="Was the card exchanged? Correct its identity in the inventory.",
        )
    if not while_updating and isinstance(seen.update_status, str) and seen.update_status != "idle":
        raise RefusedError(
            f"An update of {name} is running (status {seen.update_status}); nothing was changed.",
            hint="Wait for the update to end: another act could break it.",
        )


def check_wear(entry: CardEntry, seen: Standing, name: str, begun: int) -> None:
    """Return if another update of a card is within its budget.

    :param begun: updates of it that this run has begun.
    :raises RefusedError: the budget is used up, or the card's counter cannot be read.
    """
    if reason := worn_out(entry, seen.flash_count, begun):
        raise RefusedError(
            f"{name}: {reason}; nothing was changed.",
            hint="`wear` of the card in the inventory says how many updates it may have.",
        )


def worn_out(entry: CardEntry, flash_count: Value[int], begun: int) -> str:
    """Return why a card's budget of updates allows no further one; empty where it does."""
    if entry.wear is None:
        return ""
    most, per_run = entry.wear.flash_count, entry.wear.per_run
    if per_run is not None and begun >= per_run:
        return f"its budget of {per_run} updates in a run is used up"
    if most is None:
        return ""
    if isinstance(flash_count, Unknown):
        return f"it has a budget of updates, and its flash counter cannot be read ({flash_count})"
    return (
        f"its budget of {most} updates is used up (flash counter {flash_count})"
        if flash_count >= most
        else ""
    )

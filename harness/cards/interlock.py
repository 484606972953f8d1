"""The interlock: what cannot be undone happens only to a card whose inventory entry permits it by name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, get_args

from harness.errors import ConfigurationError, RefusedError
from harness.images import facts as image_facts


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

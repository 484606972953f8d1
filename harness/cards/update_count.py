"""How many updates of its cards a run has begun: what the interlock asks for, and a count for one process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harness.cards.interlock import CardEntry


class UpdateCount(Protocol):
    """The updates of cards that the run has begun; a card is told by its entry in the inventory."""

    def begun(self, entry: CardEntry) -> int:
        """Return how many it has begun. :raises InfrastructureError: nobody can tell."""
        ...

    def begin(self, entry: CardEntry, updates: int = 1) -> None:
        """Count ``updates`` more, before they are begun.

        :raises InfrastructureError: that cannot be kept.
        """
        ...


class OwnCount:
    """A count of its own for whoever has it: right where nobody else updates the cards in this run."""

    def __init__(self) -> None:
        #: Entries of an inventory last for as long as it does.
        self._begun: Counter[int] = Counter()

    def begun(self, entry: CardEntry) -> int:
        """Return how many were begun."""
        return self._begun[id(entry)]

    def begin(self, entry: CardEntry, updates: int = 1) -> None:
        """Count ``updates`` more."""
        self._begun[id(entry)] += updates

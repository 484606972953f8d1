"""The updates of a lab's cards that a run has begun: one count for all of the run's processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.cards.update_count import OwnCount

if TYPE_CHECKING:
    from harness.cards.interlock import CardEntry
    from harness.inventory.model import Lab
    from harness.leases.holder import LeaseHolder
    from harness.leases.updates import UpdateStore


class RunUpdates:
    """The count for all gates of one lab: those of its cards and those of its systems.

    Only cards whose entry has a budget for a run are counted. An emulated card that no other process reaches
    is counted here; each process of the run that starts such a lab has cards of its own.

    :param key: returns what tells a card (``host/card``) from all others; None where nobody else reaches it.
    :param holder: whose database has the count, and whose run it is.
    """

    def __init__(self, entry: Lab, key: Callable[[str], str | None], holder: LeaseHolder) -> None:
        self._entry = entry
        self._key = key
        self._holder = holder
        self._own = OwnCount()

    def begun(self, entry: CardEntry) -> int:
        """Return how many were begun. :raises InfrastructureError: the database does not answer."""
        key = self._counted(entry)
        return self._own.begun(entry) if key is None else self._store().begun(self._holder.run, key)

    def begin(self, entry: CardEntry, updates: int = 1) -> None:
        """Count ``updates`` more. :raises InfrastructureError: the database does not do it."""
        key = self._counted(entry)
        if key is None:
            self._own.begin(entry, updates)
        else:
            self._store().begin(self._holder.run, key, updates)

    def _counted(self, entry: CardEntry) -> str | None:
        """Return under what the card is counted in the database; None where it is not."""
        if entry.wear is None or entry.wear.per_run is None:
            return None
        names = (f"{host.name}/{card.name}" for host, card in self._entry.cards() if card is entry)
        return next(map(self._key, names), None)

    def _store(self) -> UpdateStore:
        from harness.leases.updates import UpdateStore

        return UpdateStore(self._holder.database)

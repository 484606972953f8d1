"""How many updates of a real card the scenario that runs now may make: what its campaign reserved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.errors import RefusedError
from harness.judgement.records import Intent

if TYPE_CHECKING:
    from harness.judgement.records import Record


class Wear:
    """What is reserved, by card; a card that nothing is reserved for may be updated as often as it is."""

    def __init__(self) -> None:
        self._allowed: Counter[str] = Counter()
        #: Sequence numbers of updates that were refused: they are none.
        self._refused: set[int] = set()

    def allow(self, card: str, updates: int) -> None:
        """Reserve so many more updates of the card ``host/card``."""
        self._allowed[card] += updates

    def check(self, card: str, records: Iterable[Record]) -> None:
        """Return if what was begun last on a card is no update, or one within what is reserved.

        :raises RefusedError: it is one more.
        """
        if card not in self._allowed:
            return
        begun = [r for r in records if isinstance(r, Intent) and r.subject.name == card]
        updates = [r for r in begun if r.operation == "flash" and r.seq not in self._refused]
        if updates and begun[-1] is updates[-1] and len(updates) > self._allowed[card]:
            self._refused.add(updates[-1].seq)
            raise RefusedError(
                f"{self._allowed[card]} updates of {card} were reserved for what has run of the campaign so "
                "far, and this is one more; nothing was changed.",
                hint="Say how many updates the scenario makes: @pytest.mark.hil_wear(2).",
            )

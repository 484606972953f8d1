"""What was read of a card that a scenario did not apply to: it excludes further ones without asking again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from harness.scenarios.prepare import OtherState, require_state

if TYPE_CHECKING:
    from harness.cards.truth import CardTruth
    from harness.scenarios.given import Given

#: Seconds for which a reading excludes: somebody may flash by hand, past all leases.
GOOD_FOR: Final = 60.0


class Excluding:
    """Readings of real cards, each good until anybody may have written to its card.

    They only exclude: a card that seems to be in the state that a scenario starts from is read anew.

    :param turn: returns a number that changes once a card (``host/card``) may have been written to; None
        where nobody would know of it. :param now: seconds of a clock that only goes forward.
    """

    def __init__(self, turn: Callable[[str], int | None], now: Callable[[], float] = time.monotonic) -> None:
        self._turn = turn
        self._now = now
        self._seen: dict[str, tuple[int, float, CardTruth]] = {}

    @contextmanager
    def watched(self, card: str, given: Given) -> Iterator[None]:
        """Prepare ``card`` meanwhile, and remember what was read where the scenario does not apply to it.

        :raises OtherState: it is known not to, so that nothing needs to be read.
        """
        turn, began = self._turn(card), self._now()
        if turn is not None and card in self._seen:
            at, when, seen = self._seen[card]
            if at == turn and began - when < GOOD_FOR:
                require_state(card, seen, given)
        try:
            yield
        except OtherState as other:
            if turn is not None and turn == self._turn(card):
                self._seen[card] = (turn, began, other.seen)
            raise

"""The rounds of a campaign as pytest sees them: each makes its items when they are run, and keeps none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from harness.scenarios.campaign_course import Turn

#: Stands between two items of a worker, so that it has no more than one in hand.
IDLE: Final = (1 << 31) - 1


class Idle(pytest.Item):
    """Does nothing: xdist's workers begin an item only when they know the next one."""

    def runtest(self) -> None:
        """Do nothing."""

    def reportinfo(self) -> tuple[str, None, str]:
        """Return what there is to say of it."""
        return str(self.path), None, self.name


def item_of(item: pytest.Item, number: int) -> pytest.Item:
    """Return ``item`` for the round of that number, with a node id of its own."""
    if not isinstance(item, pytest.Function):
        raise pytest.UsageError(f"{item.nodeid} cannot be repeated: it is no scenario.")
    made: pytest.Item = type(item).from_parent(
        item.parent,
        name=numbered(item.name, number),
        callspec=getattr(item, "callspec", None),
        fixtureinfo=item._fixtureinfo,
        originalname=item.originalname,
    )
    made.own_markers[:] = item.own_markers
    made.keywords.update({mark.name: mark for mark in item.own_markers})
    return made


def numbered(name: str, number: int) -> str:
    """Return the name, or the node id, of a scenario in the round of that number."""
    base, bracket, values = name.partition("[")
    return f"{base}[{values.removesuffix(']')}-round{number}]" if bracket else f"{base}[round{number}]"


class RoundItems(list[pytest.Item]):
    """The items of one round, and at the places behind them those of the next ones, made when asked for.

    What a worker of xdist takes for its items: place ``n`` is the cell ``n % len`` of the round
    ``n // len + 1``.
    """

    def __init__(self, items: Sequence[pytest.Item], session: pytest.Session, *, single: bool) -> None:
        super().__init__(items)
        self._single = single
        self._idle = Idle.from_parent(session, name="idle", nodeid="idle")
        #: The one that runs and the one after it.
        self._made: dict[int, pytest.Item] = {}

    def __getitem__(self, place: Any) -> Any:
        """Return the item at a place; the same one as long as it or the next is in hand."""
        if place == IDLE:
            return self._idle
        if not isinstance(place, int) or (self._single and place < len(self)):
            return super().__getitem__(place)
        if place not in self._made:
            turn = turn_at(place, len(self))
            self._made = dict([*self._made.items()][-1:])
            self._made[place] = item_of(super().__getitem__(turn.at), turn.number)
        return self._made[place]


def place_of(turn: Turn, cells: int) -> int:
    """Return the place of a turn among the items of all rounds."""
    return (turn.number - 1) * cells + turn.at


def turn_at(place: int, cells: int) -> Turn:
    """Return the turn at a place: the inverse of :func:`place_of`."""
    return Turn(place // cells + 1, place % cells)

"""The states of a card's health, and what leads from one to another; pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(str, Enum):
    """How far a card is to be trusted. Runs use the first two, and are BLOCKED from the others."""

    GOOD = "good"
    SUSPECT = "suspect"
    QUARANTINED = "quarantined"
    MAINTENANCE = "maintenance"

    @property
    def usable(self) -> bool:
        """Whether runs may use the card."""
        return self in (State.GOOD, State.SUSPECT)


class Event(str, Enum):
    """What happens to a card's health; the last four are done by a person.

    ``clean``: a check or a scenario found nothing. ``doubt``: nobody knows the state that the card is in, or
    a check warns. ``failure``: it could not be put back, or failed itself. ``clear-unchecked``: it is
    cleared, and nobody has looked.
    """

    CLEAN = "clean"
    DOUBT = "doubt"
    FAILURE = "failure"
    QUARANTINE = "quarantine"
    MAINTENANCE = "maintenance"
    CLEAR = "clear"
    CLEAR_UNCHECKED = "clear-unchecked"


_ANYWHERE: Final = {Event.QUARANTINE: State.QUARANTINED, Event.MAINTENANCE: State.MAINTENANCE}
_CLEARED: Final = {Event.CLEAR: State.GOOD, Event.CLEAR_UNCHECKED: State.SUSPECT}
_USED: Final = {
    Event.CLEAN: State.GOOD,
    Event.DOUBT: State.SUSPECT,
    Event.FAILURE: State.QUARANTINED,
    **_ANYWHERE,
}


def _stays(state: State) -> dict[Event, State]:
    return dict.fromkeys((Event.CLEAN, Event.DOUBT, Event.FAILURE), state)


#: State -> event -> state. What is not here is not possible: a card that is good cannot be cleared.
TRANSITIONS: Final[Mapping[State, Mapping[Event, State]]] = {
    State.GOOD: _USED,
    State.SUSPECT: {**_USED, Event.CLEAR: State.GOOD},
    State.QUARANTINED: {**_stays(State.QUARANTINED), **_ANYWHERE, **_CLEARED},
    State.MAINTENANCE: {**_stays(State.MAINTENANCE), **_ANYWHERE, **_CLEARED},
}


def after(state: State, event: Event) -> State | None:
    """Return the state that follows on ``event``; None where that is not possible in ``state``."""
    return TRANSITIONS[state].get(event)

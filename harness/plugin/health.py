"""What the end of a scenario says of the health of its card."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from harness.errors import CardHangsError, CardLostError
from harness.health.states import Event
from harness.judgement.model import Outcome, RunState
from harness.scenarios.states import FINISHED, INTERRUPTED

if TYPE_CHECKING:
    from harness.judgement.judge import ScenarioJudgement
    from harness.plugin.session import HilSession

#: What the scenario of an item says, once it has ended.
SAID = pytest.StashKey[tuple[Event, str]]()
#: Ends after which nobody knows what state the card is in.
_DOUBTFUL: Final = (RunState.INFRA.value, RunState.BUG.value, INTERRUPTED)
#: What the card itself is to blame for.
_OF_THE_CARD: Final = (CardHangsError, CardLostError)


def said_by(
    error: BaseException | None, state: str, reason: str, judgement: ScenarioJudgement | None
) -> tuple[Event, str] | None:
    """Return what the end of a scenario does to its card's health, and why; None where it does nothing.

    A result that is not as stated is about what was tested; so is an UNKNOWN that is stated.

    :param error: what it raised. :param state: how it ended (:func:`harness.scenarios.states.state_of`).
    """
    first = reason.partition("\n")[0]
    if isinstance(error, _OF_THE_CARD):
        return Event.FAILURE, first
    if state in _DOUBTFUL:
        return Event.DOUBT, f"{state}: {first}"
    if state != FINISHED or error is not None or judgement is None:
        return None
    if judgement.outcome is Outcome.UNKNOWN:
        return None if judgement.as_stated else (Event.DOUBT, "the outcome of its operation is UNKNOWN")
    return (Event.CLEAN, "a scenario ended as stated") if judgement.as_stated else None


@contextmanager
def health_noted(session: HilSession, item: pytest.Item, card: str) -> Iterator[None]:
    """Take what the scenario of ``item`` says into the health of its card, once it was put back."""
    yield
    said = item.stash.get(SAID, None)
    if said is not None:
        session.note(card, *said)

"""Whatever happens to a card: it is used only while nothing speaks against it, and only people let it go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.health.states import TRANSITIONS, Event, State, after

BY_PEOPLE = {Event.QUARANTINE, Event.MAINTENANCE, Event.CLEAR, Event.CLEAR_UNCHECKED}
KEPT_AWAY = {State.QUARANTINED, State.MAINTENANCE}
EVENTS = st.lists(st.sampled_from(Event), max_size=40)

#: As docs/health.md says it; "-": not possible.
TABLE = """
             clean        doubt        failure      quarantine   maintenance  clear  clear-unchecked
good         good         suspect      quarantined  quarantined  maintenance  -      -
suspect      good         suspect      quarantined  quarantined  maintenance  good   -
quarantined  quarantined  quarantined  quarantined  quarantined  maintenance  good   suspect
maintenance  maintenance  maintenance  maintenance  quarantined  maintenance  good   suspect
"""
_HEADS, *_ROWS = [line.split() for line in TABLE.strip().splitlines()]


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row[0])
def test_each_event_leads_where_the_table_says(row: list[str]) -> None:
    state, *expected = row
    found = [after(State(state), Event(event)) for event in _HEADS]
    assert [following.value if following else "-" for following in found] == expected


def test_the_table_has_every_state_and_event() -> None:
    assert set(_HEADS) == {event.value for event in Event}
    assert {row[0] for row in _ROWS} == {state.value for state in State} == {s.value for s in TRANSITIONS}


def walk(events: list[Event], state: State = State.GOOD) -> list[tuple[State, Event, State]]:
    """Return the steps that are possible, in order; what is not possible changes nothing."""
    steps = []
    for event in events:
        following = after(state, event)
        if following is not None:
            steps.append((state, event, following))
            state = following
    return steps


@given(EVENTS)
def test_only_people_let_a_card_go(events: list[Event]) -> None:
    for before, event, following in walk(events):
        if before in KEPT_AWAY and following not in KEPT_AWAY:
            assert event in (Event.CLEAR, Event.CLEAR_UNCHECKED)


@given(EVENTS)
def test_a_failure_keeps_runs_away_from_then_on(events: list[Event]) -> None:
    state = walk([*events, Event.FAILURE])[-1][2]
    assert not state.usable
    assert all(not s[2].usable for s in walk([e for e in events if e not in BY_PEOPLE], state))


@given(EVENTS)
def test_nothing_that_is_in_doubt_is_good_before_somebody_looked(events: list[Event]) -> None:
    doubted = False
    for _, event, following in walk(events):
        if event in (Event.DOUBT, Event.FAILURE, Event.QUARANTINE, Event.MAINTENANCE, Event.CLEAR_UNCHECKED):
            doubted = True
        elif event in (Event.CLEAN, Event.CLEAR) and following.usable:
            doubted = False
        assert (following is State.GOOD) == (not doubted)


@given(EVENTS)
def test_from_everywhere_there_is_a_way_back(events: list[Event]) -> None:
    steps = walk(events)
    state = steps[-1][2] if steps else State.GOOD
    assert (after(state, Event.CLEAR) or after(state, Event.CLEAN)) is State.GOOD

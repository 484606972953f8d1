"""The course of a campaign: which cell is next, what is reserved before it begins, and what ends it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scenarios.campaign_course import Cell, Course, Turn
from harness.scenarios.campaigns import Budget, Campaign, Stop

CELLS = [Cell("test_a", "x"), Cell("test_a", "y"), Cell("test_b", "x")]


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def campaign(**said: Any) -> Campaign:
    known = {"about": "x", "scenarios": (), "path": Path("mine.campaign.yaml")}
    return Campaign.model_construct(
        **{name: each.default for name, each in Campaign.model_fields.items()} | known | said
    )


def course(cells: list[Cell] = CELLS, clock: Clock | None = None, **said: Any) -> Course:
    return Course(cells, campaign(**said), 7, clock or Clock())


def turns(made: Course) -> list[tuple[int, int]]:
    return [(turn.number, turn.at) for turn in iter(made.next, None)]


def test_rounds_come_one_after_the_other_in_the_order_of_the_campaign() -> None:
    assert turns(course(repeat=2)) == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]


def test_a_random_order_is_another_one_in_each_round_and_the_same_by_its_seed() -> None:
    cells = [Cell(f"test_{number}") for number in range(20)]
    found = turns(course(cells, repeat=2, order="random"))
    first, second = ([at for number, at in found if number == wanted] for wanted in (1, 2))
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second != list(range(20))
    assert turns(course(cells, repeat=2, order="random")) == found


def test_a_soak_makes_rounds_until_its_duration_is_over_and_keeps_none() -> None:
    clock = Clock()
    made = course(clock=clock, duration=3600.0)
    made.begin()
    for _ in range(10_000):
        assert made.next() is not None
    assert made.rounds == 3334
    assert sum(map(len, made._open)) <= 2 * len(CELLS)
    clock.now += 3600
    assert made.next() is None
    assert made.over == "the duration of 3600 s is over"
    assert made.left(10_000) == {"the duration of 3600 s is over": 2}


def test_a_turn_that_was_not_begun_is_given_again() -> None:
    made = course(duration=3600.0)
    first = [made.next() for _ in CELLS]
    ahead = made.next()
    assert ahead == Turn(2, 0)
    made.give_back(Turn(2, 0))
    assert (made.rounds, made.planned) == (1, len(first))
    assert made.next() == ahead


def test_who_may_not_begin_what_is_left_takes_from_the_next_round_and_no_further() -> None:
    made = course(repeat=9)
    only_y = [made.next(lambda cell: cell.device == "y") for _ in range(3)]
    assert only_y == [Turn(1, 1), Turn(2, 1), None]
    assert made.next() == Turn(1, 0)
    assert not made.ended
    assert made.next() == Turn(1, 2)
    assert made.next(lambda cell: cell.device == "y") == Turn(3, 1), "the first round is over"


@pytest.mark.parametrize(
    ("stop", "kind", "why"),
    [
        (Stop(not_as_stated=2), "not_as_stated", "it was to stop after 2 that are not as stated"),
        (Stop(could_not_run=2), "could_not_run", "it was to stop after 2 that could not run"),
    ],
)
def test_it_stops_when_what_it_stops_by_has_arrived(stop: Stop, kind: str, why: str) -> None:
    made = course(repeat=2, stop=stop)
    assert made.next()
    made.counted(kind)
    assert made.next()
    made.counted(kind)
    assert made.next() is None
    assert (made.over, made.ended, made.left(2)) == (why, True, {why: 4})


def test_a_used_up_time_ends_it_and_says_how_many_were_left_out() -> None:
    clock = Clock()
    made = course(clock=clock, repeat=2, budget=Budget.model_construct(time=10.0, flashes=None))
    made.begin()
    assert made.next()
    clock.now += 10
    assert made.next() is None
    assert made.left(1) == {"the budget of 10 s is used up": 5}


WORN = [Cell("a", "x", "x", 1), Cell("b", "x", "x", 2), Cell("a2", "y", "y", 1), Cell("c", "x")]


def test_a_budget_of_updates_is_reserved_before_and_each_scenario_comes_first_once() -> None:
    budget = Budget.model_construct(time=None, flashes=4)
    made = course(WORN, repeat=3, budget=budget)
    found = turns(made)
    assert [at for number, at in found if number == 1] == [0, 1, 2, 3]
    assert [at for number, at in found if number == 2] == [0, 2, 3], "2 more of b would be 5 of x"
    assert [at for number, at in found if number == 3] == [2, 3]
    assert made.left(len(found)) == {"the budget of 4 updates of each real card is used up": 3}


def test_a_soak_of_which_nothing_can_be_afforded_any_more_ends() -> None:
    made = course(WORN[:2], duration=3600.0, budget=Budget.model_construct(time=None, flashes=3))
    made.begin()
    assert turns(made) == [(1, 0), (1, 1)]
    assert made.ended
    assert made.left(2) == {"the budget of 3 updates of each real card is used up": 2}


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 3)), min_size=1, max_size=8
    ),
    st.integers(0, 6),
    st.integers(1, 4),
    st.lists(st.sampled_from(["x", "y", "z", "xyz"]), max_size=60),
)
def test_no_turn_is_given_twice_and_no_budget_is_exceeded_whoever_asks(
    said: list[tuple[str, str, int]], most: int, repeat: int, askers: list[str]
) -> None:
    cells = [Cell(name, card, card if cost else "", cost) for name, card, cost in said]
    made = course(
        cells, repeat=repeat, order="random", budget=Budget.model_construct(time=None, flashes=most)
    )
    given_out: list[Turn] = []
    for asker in [*askers, *["xyz"] * (len(cells) * repeat + 1)]:
        turn = made.next(lambda cell, asker=asker: cell.device in asker)  # type: ignore[misc]
        assert len(made._open) <= 2
        if turn is not None:
            given_out.append(turn)
    assert len(set(given_out)) == len(given_out)
    worn: Counter[str] = Counter()
    for turn in given_out:
        worn[cells[turn.at].card] += cells[turn.at].cost
    assert all(worn[card] <= most for card in "xyz")
    assert made.ended
    assert made.planned == len(given_out) + sum(made.left(len(given_out)).values())
    free = [turn for turn in given_out if not cells[turn.at].card]
    assert len(free) == repeat * sum(not cell.card for cell in cells), "what wears no card is never left out"

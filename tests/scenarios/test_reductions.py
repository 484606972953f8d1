"""What is left of a scenario is what is needed for what is kept: no step more, none without its cause."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plugin import steps  # noqa: F401 -- it knows them all
from harness.scenarios.reductions import Data, fewest_steps, repaired, shrunk, simpler, without_unused_names


def flashes(*numbers: int) -> Data:
    """Steps that can be told apart: waits of so many seconds."""
    return {"steps": [{"wait": number} for number in numbers]}


def waits(data: Data) -> list[int]:
    return [step["wait"] for step in data["steps"]]


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(1, n), min_size=1))))
def test_exactly_the_steps_are_left_that_are_needed(drawn: tuple[int, set[int]]) -> None:
    size, needed = drawn
    tried: list[Data] = []

    def accept(data: Data) -> bool:
        tried.append(data)
        return needed <= set(waits(data))

    assert waits(fewest_steps(flashes(*range(1, size + 1)), accept)) == sorted(needed)
    assert len(tried) <= size * size + 8 * size


def test_what_takes_a_result_goes_with_what_gives_it() -> None:
    data = {
        "steps": [
            {"upload": "A/csk0", "as": "one"},
            {"upload": "A/csk1", "as": "two"},
            {"refused": [{"apply": "$one"}]},
            {"apply": "$two"},
        ]
    }
    without = repaired({"steps": data["steps"][1:]})
    assert without == {"steps": [{"upload": "A/csk1", "as": "two"}, {"apply": "$two"}]}
    assert repaired({"steps": [{"apply": "$one"}]}) is None
    needs_two = fewest_steps(data, lambda less: {"apply": "$two"} in less["steps"])
    assert needs_two["steps"] == [{"upload": "A/csk1", "as": "two"}, {"apply": "$two"}]


def test_steps_within_steps_are_left_out_and_taken_out() -> None:
    data: Data = {
        "steps": [{"hold-strategy": "a/b", "at": "copying", "meanwhile": ["abort-strategy", "look"]}]
    }
    inner = fewest_steps(data, lambda less: "look" in less["steps"][0]["meanwhile"])
    assert inner["steps"][0]["meanwhile"] == ["look"]
    assert shrunk(data, lambda less: "look" in str(less))["steps"] == ["look"]


def test_arguments_and_what_is_given_become_simpler() -> None:
    data: Data = {
        "given": {"card": {"root": "A", "cancelled": [0, 1]}, "lab": "mine", "needs": ["power"]},
        "steps": [
            {"push": "index", "client": "oci-once", "at": "before:ping", "action": "restart", "tag": "v2"},
            {"flash": "A/csk1", "promise": "lands", "activate": False, "by": "firmware-upload"},
        ],
    }
    found = shrunk(data, lambda less: "push" in str(less) and "flash" in str(less) and "'root'" in str(less))
    assert found == {
        "given": {"card": {"root": "A"}, "lab": "mine"},  # which lab it is about is never guessed
        "steps": [{"push": "tiny", "client": "oci-once"}, {"flash": "unsigned", "promise": "lands"}],
    }


def test_a_fault_of_a_push_goes_as_a_whole() -> None:
    data: Data = {"steps": [{"push": "tiny", "client": "x", "at": "before:ping", "action": "restart"}]}
    for each in simpler(data):
        step: dict[str, Any] = each["steps"][0]
        assert ("at" in step) == ("action" in step)


def test_names_that_nothing_takes_are_not_kept() -> None:
    data: Data = {"steps": [{"upload": "A/csk0", "as": "one"}, {"boot": None, "as": "gone"}]}
    assert without_unused_names(data)["steps"] == [{"upload": "A/csk0"}, "boot"]

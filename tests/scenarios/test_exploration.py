"""The engine of exploration: budgets hold, a seed decides, what is found is shrunk, nothing is done twice."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.errors import InfrastructureError
from harness.scenarios.exploration import (
    Budget,
    Disagreement,
    Explored,
    Interrupted,
    explore,
    replayed,
    shrunk,
)

PLENTY = Budget(10_000, 60.0, 10_000)


@dataclass(frozen=True)
class Add:
    """Adds to a sum; a negative number is passed over. ``wear``: what it costs."""

    number: int
    wear: int = 0


@dataclass
class Sum:
    """Says that it is at most ``limit``. ``log``: everything that was ever done, by whichever sum.

    ``ctrl_c``: in the step of this number, counted over all sums, somebody presses Ctrl-C.
    """

    limit: int
    log: list[int]
    ctrl_c: int = 0
    steps: list[Add] = field(default_factory=list)
    updates: int = 0
    closed: bool = False

    def do(self, step: Add) -> None:
        if step.number < 0:
            return
        if step.number == 13:
            raise InfrastructureError("the lab is gone")
        self.steps.append(step)
        self.log.append(step.number)
        self.updates += step.wear
        if len(self.log) == self.ctrl_c:
            raise KeyboardInterrupt
        if sum(each.number for each in self.steps) > self.limit:
            raise Disagreement(f"the sum is more than {self.limit}")

    def close(self) -> None:
        self.closed = True


class Lab:
    """Makes sums, and remembers them."""

    def __init__(self, limit: int = 1 << 30, ctrl_c: int = 0) -> None:
        self.limit, self.log, self.made, self.ctrl_c = limit, list[int](), list[Sum](), ctrl_c

    def __call__(self) -> Sum:
        self.made.append(Sum(self.limit, self.log, self.ctrl_c))
        return self.made[-1]


def found_by(*steps: Add) -> Explored[Add]:
    """Return what an exploration found, not shrunk yet."""
    return Explored(len(steps), 0, 1.0, 5, steps, "too much")


NUMBERS = ((Add(1), Add(2)), (Add(3, wear=1),), (Add(-1),))


@pytest.mark.parametrize(("steps", "wear", "seed"), [(1, 20, 1), (37, 200, 2), (200, 0, 3), (2000, 7, 4)])
def test_no_budget_is_exceeded(steps: int, wear: int, seed: int) -> None:
    lab = Lab()
    found = explore(lab, NUMBERS, Budget(steps, 60.0, wear), seed=seed, length=10, burst=5)
    assert found.reason == ""
    assert found.steps == len(lab.log) <= steps
    assert found.updates == lab.log.count(3) <= wear
    assert found.steps == steps or found.updates == wear, "one of them is used up"
    assert all(made.closed for made in lab.made)


@pytest.mark.parametrize("steps", [298, 299, 300])
def test_it_also_ends_where_an_earlier_history_went_on(steps: int) -> None:
    """Hypothesis takes that for flaky."""
    assert explore(Lab(), NUMBERS, Budget(steps, 60.0, 300), seed=4, length=20, burst=5).steps == steps


def test_no_time_is_no_step() -> None:
    lab = Lab()
    assert explore(lab, NUMBERS, Budget(100, 0.0, 100), seed=1).steps == 0
    assert lab.made == []


def test_what_is_left_of_the_wear_ends_it_where_every_step_costs_more() -> None:
    found = explore(Lab(), [[Add(1, wear=3)]], Budget(1000, 60.0, 7), seed=1, length=10, burst=5)
    assert (found.steps, found.updates) == (2, 6)


def test_a_seed_decides_what_is_done() -> None:
    first, again, other = Lab(), Lab(), Lab()
    for lab, seed in ((first, 3), (again, 3), (other, 4)):
        explore(lab, NUMBERS, Budget(300, 60.0, 300), seed=seed, length=20, burst=5)
    assert first.log == again.log != other.log


def test_a_seed_decides_it_whatever_code_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis draws constants from all modules that are loaded, and another process has others.

    It draws them for every twentieth number alone: that takes many histories to be seen.
    """
    kinds = tuple((Add(number),) for number in range(9))
    before, after = Lab(), Lab()
    explore(before, kinds, Budget(4000, 100.0, 1), seed=3, length=10, burst=5)
    lengths = [f"bytes({length}).replace(bytes(1), b'x'), b'{'y' * length}'" for length in range(1, 50)]
    (tmp_path / "many_constants.py").write_text(f"ALL = {[*range(520)]}\nBYTES = [{', '.join(lengths)}]")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("many_constants")
    explore(after, kinds, Budget(4000, 100.0, 1), seed=3, length=10, burst=5)
    assert (len(before.log), len(after.log)) == (4000, 4000)
    differing = [number for number in range(4000) if before.log[number] != after.log[number]]
    assert not differing[:1]


@pytest.mark.parametrize(
    ("steps", "wear", "jobs", "parts"),
    [
        (10, 7, 3, [(3, 2), (3, 2), (4, 3)]),
        (2, 100, 4, [(1, 50), (1, 50)]),
        (100, 1, 4, [(100, 1)]),
        (100, 0, 4, [(100, 0)]),
        (5, 5, 1, [(5, 5)]),
    ],
)
def test_parts_of_a_budget_are_all_of_it(
    steps: int, wear: int, jobs: int, parts: list[tuple[int, int]]
) -> None:
    shares = Budget(steps, 9.0, wear).shares(jobs)
    assert sorted((share.steps, share.wear) for share in shares) == parts
    assert {share.seconds for share in shares} == {9.0}, "they go on at once"


def test_what_is_found_ends_it_at_once_and_nothing_is_done_twice() -> None:
    lab = Lab(limit=12)
    found = explore(lab, NUMBERS, PLENTY, seed=5, length=20, burst=5)
    assert found.reason == "the sum is more than 12"
    assert [step.number for step in found.counterexample] == lab.log[-len(found.counterexample) :]
    assert found.steps == len(lab.log), "not even what was found is tried again: a card would wear"
    assert sum(step.number for step in found.counterexample[:-1]) <= 12


def test_the_fewest_steps_are_left_of_it() -> None:
    lab = Lab(limit=12)
    found = explore(lab, NUMBERS, PLENTY, seed=5, length=20, burst=5)
    shrunken = shrunk(found, lab)
    fewest = shrunken.counterexample
    assert shrunken.reason == "the sum is more than 12"
    assert (shrunken.steps, shrunken.seed) == (found.steps, 5), "what was explored stays as it was"
    assert sum(step.number for step in fewest) > 12
    for at in range(len(fewest)):
        assert replayed((*fewest[:at], *fewest[at + 1 :]), lab) is None, "no step can be left out"
    assert all(made.closed for made in lab.made)


def test_what_does_not_matter_is_left_out() -> None:
    noise = (Add(1), Add(2), Add(1))
    fewest = shrunk(found_by(*noise, Add(9), *noise, Add(9)), Lab(limit=8))
    assert (fewest.counterexample, fewest.reason) == ((Add(9),), "the sum is more than 8")


def test_without_time_it_is_left_as_it_was() -> None:
    found = found_by(*[Add(3)] * 9)
    assert shrunk(found, Lab(limit=5), seconds=0.0) == found


def test_plainer_steps_are_tried_too() -> None:
    fewest = shrunk(
        found_by(Add(9)), Lab(limit=5), lambda steps: iter([(Add(6),)] if steps[0].number == 9 else [])
    )
    assert fewest.counterexample == (Add(6),)


def test_a_lab_that_fails_ends_it_with_its_error() -> None:
    lab = Lab()
    with pytest.raises(InfrastructureError, match="the lab is gone"):
        explore(lab, [*NUMBERS, [Add(13)]], PLENTY, seed=1, length=20, burst=5)
    assert all(made.closed for made in lab.made)


def test_ctrl_c_leaves_what_was_done_until_then() -> None:
    lab = Lab(ctrl_c=23)
    with pytest.raises(Interrupted) as end:
        explore(lab, NUMBERS, PLENTY, seed=1, length=10, burst=5)
    found = end.value.found
    assert (found.steps, found.updates, found.seed, found.interrupted) == (23, lab.log.count(3), 1, True)
    assert (found.counterexample, found.reason) == ((), "")
    assert all(made.closed for made in lab.made)


def test_ctrl_c_while_it_is_shrunk_leaves_the_fewest_until_then() -> None:
    found = found_by(*[Add(1)] * 8, Add(9))
    lab = Lab(limit=8, ctrl_c=12)
    with pytest.raises(Interrupted) as end:
        shrunk(found, lab)
    fewer = end.value.found
    assert fewer.interrupted
    assert fewer.reason == "the sum is more than 8"
    assert 1 < len(fewer.counterexample) < 9
    assert all(made.closed for made in lab.made)

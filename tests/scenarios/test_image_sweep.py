"""What sweeps of cards and of systems share: which trials are made, and what is recorded of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from harness.errors import InfrastructureError
from harness.judgement.records import Fault, ScenarioEnded, Subject
from harness.judgement.values import Unknown
from harness.plugin.update_trials import UpdatePlan
from harness.record.history import History
from harness.scenarios.image_sweep import ImageLane
from harness.scenarios.promised import FlashedState
from harness.scenarios.sweep import Ledger
from harness.scenarios.sweep_journal import Journal
from harness.scenarios.sweep_results import Trial

PLAN = UpdatePlan(("one", "two"), ("reboot", "abort"))


class Counted:
    """Who is told how many trials there will not be."""

    def __init__(self) -> None:
        self.less = 0

    def told(self, trial: Trial) -> None:
        """It is in the ledger."""

    def spared(self, count: int) -> None:
        self.less += count


class Lane(ImageLane):
    """Passes two points with each image; nothing may be tried with the image `two`."""

    def __init__(
        self, history: History, ledger: Ledger, tried: Callable[[Trial], None], plan: UpdatePlan
    ) -> None:
        self.stop = Event()
        super().__init__(
            *("lane", history, plan),
            operation="update",
            by="who",
            subject=Subject("record", "lane"),
            ledger=ledger,
            stop=self.stop,
        )
        self.tried = tried

    def _takes(self, of: str) -> bool:
        return of != "two"

    def _passed(self, of: str) -> tuple[str, ...]:
        return ("preparing", "copying")

    def _makes_sense(self, action: str, point: str) -> bool:
        return action == "reboot" or point == "copying"

    def _trial(self, trial: Trial) -> None:
        with self._scenario(f"{trial.action} at {trial.point}"):
            self.tried(trial)
        self._ledger.note(trial)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with closing(History(tmp_path / "history.jsonl")) as opened:
        yield opened


@pytest.fixture
def begin(history: History, tmp_path: Path) -> Callable[..., tuple[Lane, Counted]]:
    def begun(tried: Callable[[Trial], None], plan: UpdatePlan = PLAN, **ledger: Any) -> tuple[Lane, Counted]:
        counted = Counted()
        journal = Journal(tmp_path, "update", {})
        return Lane(history, Ledger(history, journal, counted, **ledger), tried, plan), counted

    return begun


def ends(history: History) -> list[tuple[str, str]]:
    return [(r.scenario, r.state) for r in history.records if isinstance(r, ScenarioEnded)]


def test_each_action_is_tried_where_it_makes_sense_and_the_rest_is_spared(begin) -> None:
    seen: list[Trial] = []
    lane, counted = begin(seen.append)
    lane.run()
    cells = [(trial.of, trial.action, trial.point, trial.at, trial.by) for trial in seen]
    assert cells == [
        ("one", "reboot", "preparing", "preparing", "who"),
        ("one", "reboot", "copying", "copying", "who"),
        ("one", "abort", "copying", "copying", "who"),
    ]
    assert counted.less == 2 * PLAN.trials - 3, "also all of the image that may not be tried"
    assert lane.result().points == {"one": ("preparing", "copying")}


def test_a_point_that_was_named_and_does_not_come_is_recorded_and_not_tried(begin, history: History) -> None:
    lane, _ = begin(pytest.fail, UpdatePlan(("one",), ("abort",), ("reported",)))
    lane.run()
    (fault,) = [record for record in history.records if isinstance(record, Fault)]
    assert (fault.point, fault.action, fault.state) == ("reported", "abort", "not-reached")
    (trial,) = lane.result().trials
    assert (trial.reached, trial.reason) == (False, fault.detail)


def test_what_was_tried_before_is_not_tried_again_and_a_stop_ends_it(begin) -> None:
    seen: list[str] = []

    def tried(trial: Trial) -> None:
        seen.append(f"{trial.action} {trial.point}")
        lane.stop.set()

    lane, _ = begin(tried, earlier=[Trial("lane", "preparing", "reboot", of="one")])
    lane.run()
    assert seen == ["reboot copying"]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (InfrastructureError("gone"), "INFRA"),
        (ValueError("odd"), "BUG"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_however_a_trial_ends_that_is_recorded(
    begin, history: History, error: BaseException, state: str
) -> None:
    def tried(trial: Trial) -> None:
        raise error

    lane, _ = begin(tried)
    with pytest.raises(type(error)):
        lane.run()
    assert ends(history) == [("sweep update one, undisturbed", "finished"), ("reboot at preparing", state)]


def test_what_is_left_of_a_card() -> None:
    before = FlashedState(0x23000410010310, "aa", frozenset({1}))
    after = FlashedState(0x23000410010311, "aa", frozenset({1}))
    assert before.left_of(before, after) == "old"
    assert after.left_of(before, after) == "new"
    assert before.left_of(before, before) == "old", "nothing was to change"
    assert FlashedState(Unknown("no answer"), "aa", frozenset({1})).left_of(before, after) == "unknown"
    assert FlashedState(0x23000410010311, "bb", frozenset({1})).left_of(before, after) == "mixed"
    factory = 0x23000410010310 | 1 << 36  # fact sheet of the N3000, section 4.7
    assert FlashedState(factory, "aa", frozenset({1})).left_of(before, after) == "factory"
    assert FlashedState(factory, "aa", frozenset()).left_of(before, after) == "mixed"

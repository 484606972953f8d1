"""Sweeps of any operation: what was cut off goes on where it was, and nothing is tried twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.judgement.records import (
    Claim,
    Completion,
    Evidence,
    Intent,
    Observation,
    Promise,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
)
from harness.record.history import History
from harness.record.runs import make_run_dir, read_run
from harness.scenarios.sweep import Ledger, Sweep
from harness.scenarios.sweep_journal import JOURNAL, Entry, Journal, judged_entries, unfinished
from harness.scenarios.sweep_results import PUSH, Kind, LaneResult, Trial

POINTS = ("a", "b", "c")
KIND = replace(PUSH, name="fake")


def record_reset(history: History, lane: str) -> int:
    """Record a reset that was reported done, and the card back: what a judge calls a MATCH."""
    card = Subject("card", lane)
    promise = Promise("returns", source="x")
    intent = history.add(Intent(operation="reset", subject=card, promise=promise)).seq
    said, done = Evidence("RSU operation complete", "rsu"), {"result": "done"}
    history.add(Claim(reporter="rsu", subject=card, statement=done, evidence=said, intent=intent))
    history.add(Completion(intent=intent, how="returned"))
    values = {"address": "0000:b2:00.0", "identity": "64:4c:36:00:00:01", "bitstream_id": 1}
    history.add(
        Observation(
            probe="truth",
            subject=card,
            moment="after-reset",
            values=values,
            sources=dict.fromkeys(values, "x"),
            intent=intent,
        )
    )
    return intent


@dataclass
class Lane:
    """Tries each point once."""

    name: str
    history: History
    ledger: Ledger
    stop: Event
    tried: list[tuple[str, str]]
    dies_at: str = ""

    def run(self) -> None:
        self.history.add(ScenarioStarted(scenario=self.name))
        for point in POINTS:
            if self.stop.is_set() or self.ledger.is_done("", point, "x"):
                continue
            if point == self.dies_at:
                raise InfrastructureError("the lab is gone")
            self.tried.append((self.name, point))
            intent = record_reset(self.history, self.name)
            self.ledger.note(Trial(self.name, point, "x", "done", by="rsu"), intent)
        self.history.add(ScenarioEnded(scenario=self.name))

    def let_go(self) -> None:
        pass

    def result(self) -> LaneResult:
        return LaneResult(self.name, self.ledger.trials())


@dataclass
class Faked:
    """Two lanes that try three points each."""

    dies_at: str = ""
    groups: tuple[tuple[str, ...], ...] = (("one",), ("two",))
    options: dict[str, Any] = field(default_factory=lambda: {"points": list(POINTS)})
    tried: list[tuple[str, str]] = field(default_factory=list)
    blocked: tuple[str, ...] = ()
    kind: Kind = KIND

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        yield

    @contextmanager
    def bench(self, lane: str) -> Iterator[str]:
        if lane in self.blocked:
            raise BlockedError("There is no such thing.", hint="Buy one.")
        yield lane

    def started(self, run: str, lane: str, bench: str) -> RunStarted:
        return RunStarted(run=run, lab="none")

    def lane(self, name: str, bench: str, history: History, ledger: Ledger, stop: Event) -> Lane:
        return Lane(name, history, ledger, stop, self.tried, self.dies_at)


def points(trials: list[Trial]) -> list[tuple[str, str, str]]:
    return sorted((trial.lane, trial.point, trial.verdict) for trial in trials)


ALL = sorted((lane, point, "MATCH") for lane in ("one", "two") for point in POINTS)


def test_what_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    first = Faked(dies_at="c")
    result = Sweep(first, tmp_path).run()
    assert [lane.failed for lane in result.lanes] == ["the lab is gone"] * 2
    assert result.exit_code() == 3
    again = Faked()
    whole = Sweep(again, tmp_path).run()
    assert sorted(again.tried) == [("one", "c"), ("two", "c")]
    assert points(whole.trials) == ALL
    assert (whole.earlier, whole.exit_code()) == (4, 0)
    assert sorted(path.name for path in tmp_path.glob("history*")) == [
        "history-one.jsonl",
        "history-one~2.jsonl",
        "history-two.jsonl",
        "history-two~2.jsonl",
    ]


def test_each_repetition_stands_for_one(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "fake", {})
    with History(tmp_path / "history-one.jsonl") as history:
        done = Trial("one", "a", "x")
        ledger = Ledger(history, journal, Untold(), [done, done])
        assert [ledger.is_done("", "a", "x") for _ in range(3)] == [True, True, False]
        assert not ledger.is_done("other", "a", "x")


class Untold:
    def told(self, trial: Trial) -> None:
        pass

    def spared(self, count: int) -> None:
        pass


def test_a_line_that_was_cut_off_is_none_and_is_tried_again(tmp_path: Path) -> None:
    Sweep(Faked(), tmp_path).run()
    journal = tmp_path / JOURNAL
    text = journal.read_text(encoding="utf-8")
    journal.write_text(text[:-20], encoding="utf-8")  # in the middle of the last line
    again = Faked()
    assert points(Sweep(again, tmp_path).run().trials) == ALL
    assert len(again.tried) == 1
    assert len(journal.read_text(encoding="utf-8").splitlines()) == len(text.splitlines())


@pytest.mark.parametrize(
    "line",
    ["nonsense", "[]", "{}", '{"trial": {"lane": 1}, "history": "x", "intent": 1}',
     '{"trial": {"lane": "a", "point": "b", "action": "c"}, "history": "../x", "intent": 1}'],
)  # fmt: skip
def test_a_damaged_journal_is_told_with_what_helps(tmp_path: Path, line: str) -> None:
    Sweep(Faked(), tmp_path).run()
    with (tmp_path / JOURNAL).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(ConfigurationError) as told:
        Sweep(Faked(), tmp_path).run()
    assert "--fresh" in told.value.hint


@given(st.text(), st.text(), st.integers(0, 9), st.floats(0, 100), st.none() | st.integers(1, 9))
def test_a_journal_gives_back_what_was_written(
    tmp_path_factory, word, reason, seconds, waited, intent
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    journal = Journal(folder, "fake", {"word": word})
    journal.begin()
    trial = Trial("one", word, "x", reason=reason, seconds=seconds, waited=waited, others={"a": word})
    entry = Entry(trial, "history-one.jsonl", intent)
    journal.add(entry)
    assert journal.entries() == [entry]


def test_one_like_it_that_was_cut_off_is_found_and_no_other(tmp_path: Path) -> None:
    def begun(name: str, **options: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        Journal(folder, "fake", options).begin()
        return folder

    begun("1", points=["a"])
    mine = begun("2", points=["b"])
    over = begun("3", points=["b"])
    (over / "sweep.json").write_text(json.dumps({"interrupted": False}))
    assert unfinished(tmp_path, "fake", {"points": ("b",)}) == mine
    assert unfinished(tmp_path, "other", {"points": ("b",)}) is None
    interrupted = begun("4", points=["b"])
    (interrupted / "sweep.json").write_text(json.dumps({"interrupted": True}))
    assert unfinished(tmp_path, "fake", {"points": ["b"]}) == interrupted
    import os

    held = make_run_dir(interrupted)
    try:
        assert unfinished(tmp_path, "fake", {"points": ["b"]}) == mine, "the other one is worked on"
    finally:
        os.close(held)


def test_earlier_trials_are_judged_again_from_their_histories(tmp_path: Path) -> None:
    Sweep(Faked(), tmp_path).run()
    entries = Journal(tmp_path, "fake", {}).entries()
    assert {entry.trial.verdict for entry in entries} == {"NOT_REACHED"}, "not judged when it was written"
    assert {trial.verdict for trial in judged_entries(tmp_path, entries)} == {"MATCH"}
    (tmp_path / "history-one.jsonl").unlink()
    with pytest.raises(ConfigurationError):
        judged_entries(tmp_path, entries)


def test_lanes_of_a_group_come_one_after_the_other_and_one_that_is_blocked_ends_no_other(
    tmp_path: Path,
) -> None:
    swept = Faked(groups=(("one", "two", "three"),), blocked=("two",))
    result = Sweep(swept, tmp_path, workers=4).run()
    assert [lane for lane, _ in swept.tried] == ["one"] * 3 + ["three"] * 3
    assert result.lanes[1].blocked == "There is no such thing."
    assert result.exit_code() == 3
    assert result.exit_code(allow_blocked=True) == 0
    assert {record.how for record in read_run(tmp_path) if record.kind == "run-ended"} == {"finished"}

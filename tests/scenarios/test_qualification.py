"""Which trials a qualification makes, with which scenarios, on which cards, and which of them come first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import InfrastructureError
from harness.plugin.qualifying import Qualifying
from harness.scenarios.kill_matrix import KillMatrix, Row, Seen, Trial
from harness.scenarios.qualification import Qualification, QualificationPlan

FOUND = "FALSE_SUCCESS"


def defect(
    name: str, kind: str = "cloud", beside: Sequence[str] = (), generation: str = ""
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "reference": "a document",
        "predicts": FOUND,
        "beside": beside,
        "generation": generation,
    }


def seen(scenario: str, *unstated: str) -> Seen:
    return Seen(scenario, "not-as-stated" if unstated else "as-stated", unstated)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The trials that are made, in order; each finds what `finds` says of it."""
    tasks: list[Any] = []

    def make(self: Qualification, task: Any, work: Path) -> tuple[list[Seen], str]:
        tasks.append(task)
        return self.finds(task), ""  # type: ignore[attr-defined]

    monkeypatch.setattr(Qualification, "_started", make)
    return tasks


def qualify(
    folder: Path, finds: Callable[[Any], list[Seen]], *defects: dict[str, Any], **options: Any
) -> Qualification:
    plans = folder / "plans"
    plans.mkdir(exist_ok=True)
    found = Qualification(QualificationPlan(plans, defects, [], folder / "state", jobs=1, **options))
    found.finds = finds  # type: ignore[attr-defined]
    return found


class TestADefectThatNeedsOthers:
    def test_what_notices_it_is_tried_once_more_without_it_and_nothing_else_is(
        self, tmp_path: Path, made: list[Any]
    ) -> None:
        def finds(task: Any) -> list[Seen]:
            return [seen("one"), seen("two", FOUND)] if task.of else [seen("two")]

        matrix = qualify(tmp_path, finds, defect("needy", beside=("other",))).run()
        _, with_it, without = made
        assert (with_it.defects, with_it.until) == (("needy", "other"), FOUND)
        assert (without.defects, without.only) == (("other",), ("two",))
        assert matrix.rows[0].detected_by == ["two"]

    def test_what_shows_without_it_detects_nothing_and_all_is_tried(
        self, tmp_path: Path, made: list[Any]
    ) -> None:
        def finds(task: Any) -> list[Seen]:
            more = [seen("three", FOUND)] if task.of and not task.until else []
            return [seen("two", FOUND), *more]

        matrix = qualify(tmp_path, finds, defect("needy", beside=("other",))).run()
        assert [(bool(task.of), task.until, task.only) for task in made[1:]] == [
            (True, FOUND, ()),
            (False, "", ("two",)),
            (False, "", ()),
            (True, "", ()),
        ]
        assert matrix.rows[0].detected_by == ["three"]

    def test_a_trial_without_it_that_came_to_nothing_shows_nothing(
        self, tmp_path: Path, made: list[Any]
    ) -> None:
        """What is not known to be silent without the defect may be no word of it."""

        def finds(task: Any) -> list[Seen]:
            return [] if task.only else [seen("two", FOUND)]

        matrix = qualify(tmp_path, finds, defect("needy", beside=("other",))).run()
        assert [task.only for task in made[1:]] == [(), ("two",), (), ()]
        assert matrix.rows[0].status == "missed"

    def test_what_nobody_notices_is_missed_after_all_was_tried(self, tmp_path: Path, made: list[Any]) -> None:
        matrix = qualify(tmp_path, lambda task: [seen("one")], defect("needy", beside=("other",))).run()
        assert [task.only for task in made[1:]] == [(), (), ()]
        assert matrix.rows[0].status == "missed"


class TestGenerations:
    DEVICES = {"": ("d/card0",), "D": ("d/card0",), "A": ("a/card0",)}

    def test_a_defect_of_one_is_tried_on_its_card_and_without_any_on_all(
        self, tmp_path: Path, made: list[Any]
    ) -> None:
        found = qualify(
            tmp_path, lambda task: [seen("one")], defect("x", "tool"), defect("x-of-a", "tool", (), "A"),
            devices=self.DEVICES,
        )  # fmt: skip
        found.run()
        told = [
            [w.removeprefix("--hil-device=") for w in found._arguments(task, tmp_path) if "--hil-device" in w]
            for task in made
        ]
        assert told == [["d/card0", "a/card0"], ["d/card0"], ["a/card0"]]

    def test_one_that_no_card_has_is_blocked(self, tmp_path: Path, made: list[Any]) -> None:
        lone = defect("x-of-b", "tool", generation="B")
        matrix = qualify(tmp_path, lambda task: [seen("one")], lone, devices=self.DEVICES).run()
        assert [task.of for task in made] == [""], "what needs no such card is tried"
        assert matrix.rows[0].status == "blocked"
        assert matrix.exit_code == 3
        assert "generation B" in matrix.to_json()["kill_matrix"]["defects"][0]["trouble"]


def test_scenarios_that_noticed_a_defect_come_first(tmp_path: Path, made: list[Any]) -> None:
    (tmp_path / "plans" / "deep").mkdir(parents=True)
    noticed = {"old": ["kept"], "known": ["kept"]}
    (tmp_path / "plans/deep/noticed_first.json").write_text(json.dumps(noticed))
    (tmp_path / "state").mkdir()
    (tmp_path / "state/killers.json").write_text(json.dumps({"known": ["last"]}))
    found = qualify(tmp_path, lambda task: [seen("one")], defect("known"))
    found.run()
    assert found._journal.killers == {"old": ["kept"], "known": ["last"]}


class TestOneThatWasInterrupted:
    """After the trial of `a`, while that of `b` is made."""

    @staticmethod
    def interrupt_after_a(folder: Path, *defects: dict[str, Any]) -> tuple[KillMatrix, list[str]]:
        ended, said = Event(), list[str]()

        def finds(task: Any) -> list[Seen]:
            assert task.name != "b" or ended.wait(60)
            return [seen("one")]

        def told(row: Row | None, trial: Trial, left: int, seconds: float) -> None:
            if trial.name == "a":
                raise KeyboardInterrupt

        def say(line: str) -> None:
            said.append(line)
            ended.set()

        found = qualify(folder, finds, *defects)
        found.told, found.say = told, say
        return found.run(), said

    def made_by(self, made: list[Any], found: Qualification, **options: Any) -> list[str]:
        made.clear()
        found.run(**options)
        return [task.name for task in made]

    def test_gives_the_matrix_so_far(self, tmp_path: Path, made: list[Any]) -> None:
        matrix, said = self.interrupt_after_a(tmp_path, *map(defect, "abc"))
        assert [row.status for row in matrix.rows] == ["missed", "not-tried", "not-tried"]
        assert (len(matrix.corrected), matrix.interrupted) == (1, True)
        assert said == ["interrupted; the trials that run undo what they did first"]

    def test_goes_on_and_a_smaller_one_in_between_takes_nothing_from_it(
        self, tmp_path: Path, made: list[Any]
    ) -> None:
        every = [defect(name) for name in "abc"]
        self.interrupt_after_a(tmp_path, *every)
        smaller, again, last = (
            qualify(tmp_path, lambda task: [seen("one")], *d) for d in (every[2:], every, every)
        )
        assert self.made_by(made, smaller) == ["c"], "what was made without a defect counts"
        assert self.made_by(made, again) == ["corrected/cloud", "b", "c"], "what was told is made again"
        assert self.made_by(made, last) == ["corrected/cloud", "a", "b", "c"]

    def test_begins_anew_where_that_is_asked_or_the_plan_has_changed(
        self, tmp_path: Path, made: list[Any]
    ) -> None:
        every, whole = [defect(name) for name in "abc"], ["corrected/cloud", "a", "b", "c"]
        self.interrupt_after_a(tmp_path, *every)
        assert self.made_by(made, qualify(tmp_path, lambda task: [seen("one")], *every), fresh=True) == whole
        self.interrupt_after_a(tmp_path, *every)
        (tmp_path / "plans" / "test_more.py").write_text("")
        said: list[str] = []
        found = qualify(tmp_path, lambda task: [seen("one")], *every)
        found.say = said.append
        assert self.made_by(made, found) == whole
        assert said == ["begins anew: plan, inventory or options have changed since 2 trials were made"]


def test_what_cannot_be_kept_ends_it_at_once(tmp_path: Path, made: list[Any]) -> None:
    begun = Event()

    def finds(task: Any) -> list[Seen]:
        (tmp_path / "state/trials.jsonl").unlink(missing_ok=True)
        (tmp_path / "state/trials.jsonl").mkdir(exist_ok=True)
        assert task.name == "corrected/cloud" or begun.wait(60)
        return [seen("one")]

    found = qualify(tmp_path, finds, *(defect(str(number)) for number in range(50)))
    found._end_all = _also(begun.set, found._end_all)  # type: ignore[method-assign]
    with pytest.raises(InfrastructureError, match="cannot be kept: Is a directory"):
        found.run()
    assert len(made) < 51


def _also(act: Callable[[], None], then: Callable[..., None]) -> Callable[..., None]:
    def both(*arguments: Any) -> None:
        then(*arguments)
        act()

    return both


def test_a_trial_without_a_defect_is_one_for_each_choice_of_cards(tmp_path: Path, made: list[Any]) -> None:
    """So that what was made on the first card alone does not stand for what was to be made on all."""
    devices = {"": ("d/card0",), "A": ("a/card0",)}
    of_a, of_any = defect("x-of-a", "tool", (), "A"), defect("x", "tool")
    for one in ((of_any,), (of_a,)):
        qualify(tmp_path, lambda task: [seen("one")], *one, devices=devices).run()
    assert [task.name for task in made if not task.of] == ["corrected/card", "corrected/card-A"]


def test_only_what_is_named_is_run_and_what_is_to_be_first_is(tmp_path: Path) -> None:
    config: Any = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))
    items: list[Any] = [
        SimpleNamespace(nodeid=name, fixturenames=fixtures)
        for name, fixtures in (("a", ["cloud"]), ("b", ["cloud"]), ("c", ["card"]), ("d", ["cloud"]))
    ]
    plugin = Qualifying(tmp_path, "cloud", first=["d"], only=["a", "c", "d"])
    plugin.pytest_collection_modifyitems(config, items)
    assert [item.nodeid for item in items] == ["d", "a"]

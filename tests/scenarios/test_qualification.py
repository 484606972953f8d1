"""Which trials a qualification makes, with which scenarios, on which cards, and which of them come first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.plugin.qualifying import Qualifying
from harness.scenarios.kill_matrix import Seen
from harness.scenarios.qualification import Plan, Qualification

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
    found = Qualification(Plan(plans, defects, [], folder / "state", jobs=1, **options))
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
    assert found._killers == {"old": ["kept"], "known": ["last"]}


def test_only_what_is_named_is_run_and_what_is_to_be_first_is(tmp_path: Path) -> None:
    config: Any = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))
    items: list[Any] = [
        SimpleNamespace(nodeid=name, fixturenames=fixtures)
        for name, fixtures in (("a", ["cloud"]), ("b", ["cloud"]), ("c", ["card"]), ("d", ["cloud"]))
    ]
    plugin = Qualifying(tmp_path, "cloud", first=["d"], only=["a", "c", "d"])
    plugin.pytest_collection_modifyitems(config, items)
    assert [item.nodeid for item in items] == ["d", "a"]

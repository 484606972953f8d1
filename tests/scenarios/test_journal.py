"""Steps are recorded as they are taken: arguments, results, what is taken within, how each ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from harness.errors import DeviceError
from harness.judgement.records import Promise, Record, Setting, StepEnded, StepTaken
from harness.scenarios.journal import end_journal, keep_journal, note_setting, take, taking


@dataclass
class Kept:
    """A history in memory."""

    records: list[Record] = field(default_factory=list)

    def add(self, record: Any) -> Any:
        self.records.append(replace(record, seq=len(self.records) + 1))
        return self.records[-1]

    def steps(self) -> list[StepTaken]:
        return [record for record in self.records if isinstance(record, StepTaken)]


@dataclass(frozen=True)
class Described:
    name: str
    kinds: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def kept() -> Iterator[Kept]:
    history = Kept()
    keep_journal(history)
    yield history
    end_journal()


FLASH = Described("flash", {"image": "image", "promise": "promise", "activate": "flag"})
UPLOAD, APPLY = Described("upload", {"image": "image"}), Described("apply", {"image": "result"})
REFUSED, AT = Described("refused", {"act": "steps"}), Described("at", {"point": "text", "act": "steps"})


def flash(fixture: object, image: object, promise: object = None, *, activate: bool = True) -> None: ...


def test_what_is_given_is_recorded_and_what_is_not_said_is_not(kept: Kept) -> None:
    take(FLASH, flash, (object(), "A/csk0", Promise("unchanged", ("0x11",), "UG")), {"activate": False})
    take(FLASH, flash, (object(), "unsigned"), {"activate": True})
    first, second = kept.steps()
    promise = {"effect": "unchanged", "codes": ("0x11",), "source": "UG"}
    assert first.arguments == {"image": "A/csk0", "promise": promise, "activate": False}
    assert second.arguments == {"image": "unsigned"}
    ends = [record for record in kept.records if isinstance(record, StepEnded)]
    assert [(end.step, end.error) for end in ends] == [(first.seq, {}), (second.seq, {})]


def test_a_step_that_is_a_part_of_another_is_not_recorded(kept: Kept) -> None:
    def both(fixture: object) -> None:
        take(FLASH, flash, (fixture, "A/csk0"), {})

    take(Described("both"), both, (object(),), {})
    assert [step.name for step in kept.steps()] == ["both"]


def test_steps_that_a_step_is_given_are_recorded_as_its_own_whenever_they_are_taken(kept: Kept) -> None:
    waiting: list[Any] = []

    def at(fixture: object, point: str, act: Any) -> None:
        waiting.append(act)

    def update(fixture: object) -> None:
        waiting.pop()()

    def act() -> None:
        take(FLASH, flash, (object(), "A/csk0"), {})

    take(AT, at, (object(), "copying", act), {})
    take(Described("update"), update, (object(),), {})
    asked, updated, inner = kept.steps()
    assert (asked.name, updated.name, inner.name) == ("at", "update", "flash")
    assert (asked.within, updated.within, inner.within) == (None, None, asked.seq)


def test_what_a_step_returned_is_known_where_it_is_an_argument(kept: Kept) -> None:
    uuid = "5b0a4c7e-0000-4000-8000-000000000000"
    take(UPLOAD, lambda fixture, image: uuid, (object(), "A/csk0"), {})
    take(APPLY, lambda fixture, image: None, (object(), uuid), {})
    take(APPLY, lambda fixture, image: None, (object(), "of nobody, and long enough"), {})
    upload, known, unknown = kept.steps()
    assert known.arguments == {"image": {"result_of": upload.seq}}
    assert unknown.arguments == {"image": {"unnamed": "of nobody, and long enough"}}


def test_a_step_that_raised_says_so_and_the_next_one_is_recorded(kept: Kept) -> None:
    def refuse(fixture: object) -> None:
        raise DeviceError("no", hint="later")

    with pytest.raises(DeviceError):
        take(Described("boot"), refuse, (object(),), {})
    take(Described("look"), lambda fixture: None, (object(),), {})
    assert [step.name for step in kept.steps()] == ["boot", "look"]
    ended = kept.records[1]
    assert isinstance(ended, StepEnded)
    assert ended.error == {"kind": "device", "message": "no", "hint": "later"}


def test_a_step_that_is_taken_by_hand_has_the_steps_within_it(kept: Kept) -> None:
    with taking(Described("hold", {"card": "text"}), {"card": "a/b"}) as inner:
        take(FLASH, flash, (object(), "A/csk0"), {})
        with inner():
            take(FLASH, flash, (object(), "A/csk1"), {})
    hold, within = kept.steps()
    assert (within.within, within.arguments) == (hold.seq, {"image": "A/csk1"})


def test_nothing_is_recorded_where_no_scenario_runs() -> None:
    history = Kept()
    keep_journal(history)
    end_journal()
    take(FLASH, flash, (object(), "A/csk0"), {})
    note_setting(history, card={"root": "A"})
    assert history.records == []


def test_what_was_given_is_recorded_as_far_as_something_was(kept: Kept) -> None:
    note_setting(kept, card={}, needs=[])
    note_setting(kept, card={"root": "A"}, needs=[])
    assert [record.values for record in kept.records if isinstance(record, Setting)] == [
        {"card": {"root": "A"}}
    ]

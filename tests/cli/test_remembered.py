"""What `hil status` forgets of its looks changes nothing of what it shows of the last one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli.remembered import Remembered
from harness.judgement.model import VerdictKind
from harness.judgement.records import Claim, Evidence, Record, Subject
from harness.judgement.side_by_side import Row, side_by_side
from tests.judgement.cloud_records import FACTORY, IMAGE_11, Cloud
from tests.judgement.system_records import USER, Story

#: What is set in a look, and to what: enough of it for every verdict that needs to know since when.
_OF_SYSTEM = {
    "status": ("pending", "in-progress", "completed", "failed"),
    "update": ("", "pending", "in-progress"),
    "card": ("idle", "programming"),
    "runs": (1, 2),
    "shown": ("0x1", "0x2"),
    "counted": (5, 6),
}
_OF_CLOUD = {
    "sync": ("in-sync", "out-of-sync", "unknown"),
    "step": ("initial", "updating", "complete", "failed"),
    "status": ("pending", "completed", "failed"),
    "runs": (FACTORY, IMAGE_11["bitstream_id"]),
    "booted": ("first", "second"),
}


def rounds(values: dict[str, tuple[Any, ...]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Draw looks: each changes one thing or nothing, comes once or several times, and lets time pass."""
    change = st.one_of(
        st.just({}), *(st.fixed_dictionaries({k: st.sampled_from(v)}) for k, v in values.items())
    )
    look = st.fixed_dictionaries(
        {"change": change, "times": st.integers(1, 4), "later": st.sampled_from([1.0, 100.0, 4000.0])}
    )
    return st.lists(look, min_size=1, max_size=6)


def compared(story: Story | Cloud, apply: Callable[[str, Any], None], looks: list[dict[str, Any]]) -> int:
    """Take looks; hold what is shown of each by what is kept to what all records show; return how many looks
    were forgotten at the end."""
    memory, taken = Remembered(), 0
    for look in looks:
        for name, value in look["change"].items():
            apply(name, value)
        for _ in range(look["times"]):
            story.look(look["later"])
            with memory.look():
                for record in story.records[taken:]:
                    memory.add(record)
            taken = len(story.records)
            assert rows(memory.records) == rows(story.records)
    kept = {record.seq for record in memory.records}
    return sum(record.seq not in kept and record.kind == "completion" for record in story.records)


def rows(records: list[Record]) -> list[Row]:
    return side_by_side(records)


@settings(deadline=None, max_examples=40)
@given(rounds(_OF_SYSTEM))
def test_of_one_system(looks: list[dict[str, Any]]) -> None:
    story = Story()
    story.upload(USER)

    def apply(name: str, value: Any) -> None:
        if name == "status":
            story.states["user"] = value
        elif name == "update":
            story.host["device_image_update"] = value
        elif name == "shown":
            story.device["bitstream_id"] = value
        else:
            field = {"card": "update_status", "runs": "bitstream_id", "counted": "flash_count"}[name]
            story.card[field] = value

    compared(story, apply, looks)


@settings(deadline=None, max_examples=40)
@given(rounds(_OF_CLOUD))
def test_of_a_cloud(looks: list[dict[str, Any]]) -> None:
    cloud = Cloud("near", "far")
    cloud.upload(IMAGE_11)
    cloud.images["image-11"] |= {"applied": True, "applied_labels": [["", ""]]}
    near = cloud["near"]

    def apply(name: str, value: Any) -> None:
        if name == "sync":
            near.row["firmware_sync_status"] = value
        elif name == "step":
            near.step, cloud.strategy = {"cloud": "near", "state": value, "details": ""}, "applying"
        elif name == "status":
            near.images["image-11"], near.states["image-11"] = {}, value
        else:
            near.card[{"runs": "bitstream_id", "booted": "boot_id"}[name]] = value

    compared(cloud, apply, looks)


def test_of_looks_that_find_the_same_the_first_and_the_last_are_kept() -> None:
    story = Story()
    busy = {"change": {"update": "in-progress"}, "times": 9, "later": 100.0}

    def apply(name: str, value: Any) -> None:
        story.host["device_image_update"] = value

    assert compared(story, apply, [{"change": {}, "times": 5, "later": 1.0}, busy]) == 2 + 7
    (said,) = (row for row in rows(story.records) if "is said for" in row.truth)
    assert "800 s" in said.truth


def test_what_was_otherwise_in_between_is_kept() -> None:
    story = Story()

    def apply(name: str, value: Any) -> None:
        story.host["device_image_update"] = value

    looks = [{"change": {"update": each}, "times": 1, "later": 200.0} for each in ("in-progress", "") * 2]
    assert compared(story, apply, looks[:3]) == 0
    assert not [row for row in rows(story.records) if "is said for" in row.truth], "it began again just now"


@pytest.mark.parametrize(("most", "kept"), [(4, [1, 2, 3, 4, 5, 6]), (3, [3, 4, 5, 6]), (0, [5, 6])])
def test_the_oldest_are_forgotten_beyond_so_many_records_and_the_last_look_never(
    most: int, kept: list[int]
) -> None:
    memory = Remembered(most)
    for number in range(3):
        with memory.look():
            for said in range(2):
                subject = Subject("record", f"system1/image/{number}{said}")
                memory.add(Claim(reporter="x", subject=subject, statement={}, evidence=Evidence("")))
    assert [record.seq for record in memory.records] == kept


def test_a_clock_that_is_set_between_looks_does_not_change_how_long_something_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A real lab has no time of its own: since when something is said is told by when it was recorded."""
    memory = Remembered()
    story = Story()
    story.host["device_image_update"] = "in-progress"
    taken, now = 0, time.time()
    for ahead in (0.0, 86400.0):
        monkeypatch.setattr("time.time", lambda ahead=ahead: now + ahead)
        story.look(1.0)
        with memory.look():
            for record in story.records[taken:]:
                memory.add(replace(record, source_time=None))
        taken = len(story.records)
    (said,) = (row for row in rows(memory.records) if "is said for" in row.truth)
    assert said.verdict is VerdictKind.MATCH, said.truth

"""Records of clouds and systems that are damaged, missing or of odd types are judged all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.judgement.judge import judge
from harness.judgement.model import VerdictKind
from harness.judgement.records import (
    Claim,
    Completion,
    Intent,
    Observation,
    Record,
    Subject,
)
from harness.judgement.side_by_side import side_by_side
from harness.judgement.values import Unknown
from tests.judgement.cloud_records import (
    ABC,
    IMAGE_11,
    TWIN,
    Cloud,
    field_report,
)
from tests.judgement.system_records import BMC, CANCEL, HOST, KEY, NEW, PLACE, SYSTEM, USER, Story

#: What a field can be that another program wrote, or that this way in does not show.
ODD = (None, "", "garbage", Unknown("not shown"), True, False, 0)
REPORTED = field_report().records
#: One of each type that JSON has, and a list of what cannot be a key.
TYPES = (None, True, 1.5, "odd", [], [[]], {})


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([0.01, 0.05, 0.2]))
def test_records_that_are_damaged_or_missing_are_judged_as_well(chance: Random, share: float) -> None:
    """Nothing is made of them that is not a verdict; `hil status` shows what there is."""
    damaged = [d for record in REPORTED if (d := _damaged(record, chance, share)) is not None]
    assert judge(damaged).outcomes is not None
    assert all(isinstance(row.verdict, VerdictKind) for row in side_by_side(damaged))


@pytest.mark.parametrize("odd", TYPES, ids=repr)
def test_a_field_of_any_type_is_judged(odd: Any) -> None:
    """Whatever a field of a record of a cloud or a system is, what comes of it is verdicts."""
    for records in (_short_cloud(), _short_system()):
        for number, name, field in _fields(records):
            record = replace(records[number], **{name: {**getattr(records[number], name), field: odd}})
            changed = [*records[:number], record, *records[number + 1 :]]
            try:
                judge(changed)
                side_by_side(changed)
            except Exception as error:
                raise AssertionError(f"{field} of {record} cannot be judged") from error


def _short_cloud() -> list[Record]:
    cloud = Cloud("sub")
    cloud.label("sub", **ABC)
    cloud.apply(cloud.upload(IMAGE_11 | {"sha256": "11" * 32}), **ABC)
    cloud.orchestrate(sub="complete")
    cloud.write("sub", "image-11")
    cloud.alarms.add("sub")
    update = {"hosts": [HOST], "result": "success", "reason": ""}
    cloud["sub"].vim = {"uuid": "one", "state": "applied", "updates": [update]}
    cloud.images["unread"] = {"uuid": "unread", "bitstream_type": "functional", "bmc": False}
    cloud.images["unread"] |= {"applied": True, "applied_labels": [["", ""]]}
    cloud.look()
    cloud.unlabel("sub", *ABC)
    cloud.remove("image-11")
    cloud.apply(cloud.upload(TWIN), **ABC)
    cloud.look()
    return cloud.records


def _short_system() -> list[Record]:
    story = Story()
    story.labels, story.floating, story.second = [("a", "b")], [("c", "d")], {"bitstream_id": 3}
    story.owe(USER, BMC, KEY, CANCEL)
    story.act("image-upload", target="new", fields={"name": "new"})
    story.act("label-assign", target=HOST, device=PLACE, labels=["a=b"])
    story.update(user="completed", key="completed", bmc="failed")
    story.boot(bitstream_id=NEW)
    story.act("image-remove", target="user")
    story.act("label-remove", target=HOST, device=PLACE, keys=["a"])
    story.act("image-delete", target="user")
    subject, given = (
        Subject("record", f"{SYSTEM}/image/user"),
        {"sha256": "11", "size": 3, "http_status": 200},
    )
    story.add(Observation(probe="file-server", subject=subject, values=given))
    story.look()
    return story.records


def _fields(records: list[Record]) -> Iterator[tuple[int, str, str]]:
    """Yield each field once of each kind of record: the record's number, what it is part of, its name."""
    seen = set()
    for number, record in enumerate(records):
        for name in ("statement", "values", "parameters", "error"):
            for field in getattr(record, name, ()):
                subject = getattr(record, "subject", None)
                about = (subject.name.split("/")[1:] if subject else None, getattr(record, "operation", None))
                if (key := (record.kind, str(about), name, field)) not in seen:
                    seen.add(key)
                    yield number, name, field
    for number, record in enumerate(records):  # what joins the looks at a cloud
        if isinstance(record, Intent) and record.operation == "look":
            yield number, "parameters", "of"


def _damaged(record: Record, chance: Random, share: float) -> Record | None:
    if chance.random() > share:
        return record
    if isinstance(record, Claim) and record.statement:
        return replace(record, statement=_changed(record.statement, chance))
    if isinstance(record, Observation):
        return replace(record, values=_changed(record.values, chance))
    if isinstance(record, Completion):
        return replace(record, how=chance.choice(["raised", "never", "timed-out"]))
    return None


def _changed(fields: Mapping[str, Any], chance: Random) -> dict[str, Any]:
    return {**fields, chance.choice(sorted(fields)): chance.choice(ODD)}

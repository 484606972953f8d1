"""What was uploaded, held to what is shown, listed and given out of it; and labels that no image has.

What is expected: fact sheet of StarlingX, sections 1.1, 1.2, 3.2, 4.4 and 4.8.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.judgement.records import Claim, Completion, Evidence, Intent, Observation, Subject
from harness.judgement.values import Unknown
from tests.judgement.system_records import SYSTEM, USER, Story, worst

HERE = USER | {"sha256": "ab" * 32, "size": 4}
FIELDS = {
    "bitstream_type": "functional",
    "pci_vendor": "8086",
    "pci_device": "0b30",
    "bitstream_id": "0x23000410010311",
    "name": "user",
    "bmc": "False",
}


@pytest.fixture
def story() -> Story:
    return Story()


def uploaded(story: Story, **shown: Any) -> str:
    """Upload an image as the driver does: the answer shows it, and so does every list."""
    subject = Subject("record", SYSTEM)
    intent = story.add(Intent(operation="image-upload", subject=subject, parameters={"fields": FIELDS})).seq
    uuid = story.upload(HERE, **{"name": "user", "bitstream_id": "23000410010311", **shown})
    answer = Subject("record", f"{SYSTEM}/image/{uuid}")
    said = story.images[uuid]
    story.add(Claim(reporter="sysinv", subject=answer, statement=said, evidence=Evidence("x"), intent=intent))
    story.add(Completion(intent=intent, how="returned"))
    return uuid


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"sha256": "ab" * 32, "size": 4}, "MATCH"),
        ({"sha256": "cd" * 32, "size": 2}, "MISREPORT"),
        ({"sha256": Unknown("404"), "size": Unknown("404"), "http_status": "404"}, "LOST"),
        ({"sha256": Unknown("worker is away"), "http_status": ""}, "UNVERIFIABLE"),
    ],
)
def test_what_a_controller_gives_is_what_it_was_given(story: Story, given: Any, verdict: str) -> None:
    uuid = uploaded(story)
    subject = Subject("record", f"{SYSTEM}/image/{uuid}")
    story.add(Observation(probe="file-server", subject=subject, values=given))
    assert worst(story, "file-server") == verdict


def test_what_a_controller_gives_of_another_sessions_image_is_what_that_is(story: Story) -> None:
    story.images["user"] = {"uuid": "user", "applied": False, "applied_labels": None}
    story.look()
    given = {"sha256": "cd" * 32, "size": 2, "image": HERE | {"sha256": "cd" * 32}}
    subject = Subject("record", f"{SYSTEM}/image/user")
    story.add(Observation(probe="file-server", subject=subject, values=given))
    story.states["user"] = "pending"
    story.images["user"] |= {"applied": True, "applied_labels": [["", ""]]}
    story.look()
    story.update(user="completed")
    story.boot(bitstream_id=HERE["bitstream_id"] + 1)
    assert story.end().verdicts["sysinv-image-state"].value == "FALSE_SUCCESS"


def test_what_a_controller_gives_does_not_change_what_was_uploaded(story: Story) -> None:
    uuid = uploaded(story)
    given = {"sha256": "cd" * 32, "size": 2, "image": HERE | {"sha256": "cd" * 32}}
    subject = Subject("record", f"{SYSTEM}/image/{uuid}")
    story.add(Observation(probe="file-server", subject=subject, values=given))
    assert worst(story, "file-server") == "MISREPORT"


@pytest.mark.parametrize(
    ("shown", "verdict"),
    [
        ({}, "MATCH"),
        ({"bitstream_id": "0x23000410010311"}, "MATCH"),
        ({"bitstream_id": "23000410010312"}, "MISREPORT"),
        ({"pci_device": "0b31"}, "MISREPORT"),
        ({"bitstream_type": "root-key"}, "MISREPORT"),
        ({"bmc": True}, "MISREPORT"),
        ({"bmc": Unknown("not shown by this way in")}, "MATCH"),
        ({"name": None}, "MISREPORT"),
    ],
)
def test_what_is_shown_is_what_was_uploaded(story: Story, shown: Any, verdict: str) -> None:
    uploaded(story, **shown)
    story.look()
    assert worst(story, "sysinv-image") == verdict


@pytest.mark.parametrize(
    ("deleted", "refusal", "verdict"),
    [(False, "", "LOST"), (True, "", "MATCH"), (False, "device", "LOST"), (False, "infrastructure", "MATCH")],
)
def test_an_image_is_listed_until_somebody_deletes_it(
    story: Story, deleted: bool, refusal: str, verdict: str
) -> None:
    """Section 4.8: one label that is not there any more, and the whole list is refused."""
    uuid = uploaded(story, applied=False, applied_labels=None)
    story.look()
    if deleted:
        story.act("image-delete", target=uuid)
    del story.images[uuid]
    story.look()
    if refusal:
        last = story.records[-1]
        assert isinstance(last, Completion)
        error = {"kind": refusal, "message": "No device label entry found for None"}
        story.records[-1] = Completion(intent=last.intent, how="raised", error=error, seq=last.seq)
    assert worst(story, "sysinv-image") == verdict


@pytest.mark.parametrize(
    ("labels", "verdict"),
    [([["k", "v"]], "MATCH"), ([["k", "w"]], "STALE"), (None, "STALE"), (Unknown("not shown"), None)],
)
def test_a_label_that_no_device_carries_is_there_for_an_image(
    story: Story, labels: Any, verdict: str | None
) -> None:
    story.upload(USER, applied=isinstance(labels, list), applied_labels=labels)
    story.floating = [("k", "v")]
    story.look()
    found = story.end().verdicts.get("sysinv-label")
    assert (found.value if found else None) == verdict


def test_a_label_that_a_device_carries_needs_no_image(story: Story) -> None:
    story.labels = [("k", "v")]
    story.look()
    assert "sysinv-label" not in story.end().verdicts

"""What a StarlingX system says of images on cards and of its hosts, held to its cards and to itself.

Expected values are those of the fact sheet of StarlingX, sections 1 to 4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.judgement.records import Claim
from harness.judgement.values import Unknown
from tests.judgement.system_records import (
    BMC,
    CANCEL,
    ELSEWHERE,
    HOST,
    KEY,
    NEW,
    OTHER,
    ROOT,
    USER,
    Story,
    worst,
)


@pytest.fixture
def story() -> Story:
    return Story()


# -- an image on a card (sections 1.4, 3.2, 3.4, 4.7) ----------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "status", "count", "truth", "verdict"),
    [
        (USER, "completed", 1, {"bitstream_id": NEW}, "MATCH"),
        (USER, "completed", 1, {}, "FALSE_SUCCESS"),
        (USER, "completed", 1, {"bitstream_id": Unknown("I/O error")}, "UNVERIFIABLE"),
        (USER, "failed", 1, {}, "MATCH"),
        (USER, "failed", 0, {}, "NOT_ATTEMPTED"),
        (USER, "failed", 1, {"bitstream_id": NEW}, "FALSE_FAILURE"),
        (BMC, "completed", 1, {"bmc_version": "D.2.0.20"}, "MATCH"),
        (BMC, "completed", 1, {}, "FALSE_SUCCESS"),
        (BMC, "failed", 1, {}, "MATCH"),
        (KEY, "completed", 1, {"sr_root": ROOT}, "MATCH"),
        (KEY, "completed", 1, {}, "FALSE_SUCCESS"),
        (KEY, "failed", 1, {"sr_root": ROOT}, "FALSE_FAILURE"),
        (CANCEL, "completed", 1, {"sr_cancelled": [1, 3]}, "MATCH"),
        (CANCEL, "completed", 1, {"sr_cancelled": [1]}, "FALSE_SUCCESS"),
    ],
)
def test_a_status_is_held_to_the_card(
    story: Story, facts: dict[str, Any], status: str, count: int, truth: dict[str, Any], verdict: str
) -> None:
    story.owe(facts)
    if facts["effect"] in ("root-key", "key-cancellation"):
        story.card |= truth
    story.update(count=count, **{facts["name"]: status})
    if isinstance(truth.get("bitstream_id"), Unknown):
        story.card |= truth | {"boot_id": "second"}
        story.look(600)
    else:
        story.boot(**truth)
    assert worst(story, "sysinv-image-state") == verdict


@pytest.mark.parametrize(("sha256", "verdict"), [("22" * 32, "UNVERIFIABLE"), ("11" * 32, "MATCH")])
def test_the_id_of_an_image_of_other_bytes_does_not_show_that_this_one_is_held(
    story: Story, sha256: str, verdict: str
) -> None:
    story.owe(USER | {"sha256": "11" * 32})
    story.update(user="completed")
    story.boot(bitstream_id=NEW)
    story.act("image-remove", target="user")
    story.images["user"] |= {"applied": False, "applied_labels": None}
    story.states = {}
    story.look()
    story.owe(USER | {"name": "twin", "sha256": sha256})
    story.update(twin="completed")
    story.boot(boot_id="third")
    assert worst(story, "sysinv-image-state") == verdict


@pytest.mark.parametrize(("count", "verdict"), [(1, "NOT_ATTEMPTED"), (2, "MATCH")])
def test_what_was_written_for_another_image_is_no_attempt_at_this_one(
    story: Story, count: int, verdict: str
) -> None:
    story.owe(KEY, USER)
    story.card["sr_root"] = ROOT
    story.update(count=count, key="completed", user="failed")
    story.boot()
    assert worst(story, "sysinv-image-state") == verdict


def test_a_status_that_documents_do_not_know_is_a_misreport(story: Story) -> None:
    story.owe(USER)
    story.update(user="done")
    assert worst(story, "sysinv-image-state") == "MISREPORT"


def test_a_completed_user_image_is_not_active_before_a_reset(story: Story) -> None:
    """`completed` is: written (section 3.4). Without a boot of the host the card shows nothing of it."""
    story.owe(USER)
    story.update(user="completed")
    assert worst(story, "sysinv-image-state") == "UNVERIFIABLE"


def test_an_image_that_was_written_over_before_the_reset_is_no_false_success(story: Story) -> None:
    story.owe(USER)
    story.update(user="completed")
    del story.states["user"]
    story.act("image-apply", target="other")
    story.images["user"] |= {"applied": False, "applied_labels": None}
    story.owe(OTHER)
    story.update(other="completed")
    story.boot(bitstream_id=NEW + 1)
    assert worst(story, "sysinv-image-state") == "UNVERIFIABLE"


@pytest.mark.parametrize(
    ("seconds", "status", "state", "verdict"),
    [
        (30, "idle", "finished", "MATCH"),
        (600, "program", "finished", "MATCH"),
        (600, "idle", "finished", "LOST"),
        (600, "idle", "interrupted", "STALE"),
        (600, Unknown("Input/output error"), "finished", "UNVERIFIABLE"),
    ],
)
def test_in_progress_while_the_card_is_idle_is_lost(
    story: Story, seconds: float, status: Any, state: str, verdict: str
) -> None:
    """An agent's word is cast as soon as its tool ends (section 3.2); one that never comes is lost."""
    story.owe(USER)
    story.update(user="in-progress")
    story.card["update_status"] = status
    story.look(seconds)
    assert story.end(state).verdicts["sysinv-image-state"].value == verdict


def test_a_completion_that_comes_late_is_stale(story: Story) -> None:
    story.owe(USER)
    story.update(user="in-progress")
    story.look(600)
    story.states["user"] = "completed"
    story.look()
    story.boot(bitstream_id=NEW)
    assert worst(story, "sysinv-image-state") == "STALE"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (None, "LOST"),
        (("image-remove", {"target": "user"}), "MATCH"),
        (("image-delete", {"target": "user"}), "MATCH"),
        (("image-apply", {"target": "other"}), "MATCH"),
        (("image-apply", {"target": "bmc"}), "LOST"),
        (("label-remove", {"target": HOST, "keys": ["k"]}), "MATCH"),
        (("label-remove", {"target": HOST, "keys": ["another"]}), "LOST"),
        (("host-reboot", {"target": HOST}), "LOST"),
    ],
)
def test_a_state_goes_only_when_somebody_takes_it(story: Story, change: Any, verdict: str) -> None:
    """LP 1890296, 1951602, and the states that a label's removal takes along (sections 4.2 to 4.5)."""
    story.upload(OTHER, applied=False, applied_labels=None)
    story.upload(BMC, applied=False, applied_labels=None)
    story.states[story.upload(USER, applied_labels=[["k", "v"]])] = "pending"
    story.labels = [("k", "v")]
    story.look()
    if change is not None:
        story.act(change[0], **change[1])
    story.states.clear()
    story.look()
    assert worst(story, "sysinv-image-state") == verdict


@pytest.mark.parametrize(("applied", "verdict"), [("bmc", "LOST"), ("other", "MATCH")])
def test_where_no_bmc_flag_is_shown_the_bytes_tell(story: Story, applied: str, verdict: str) -> None:
    """LP 1951602, on a release before 2021-11, whose lists have no such column (section 2.7)."""
    hidden = Unknown("not shown by this way in")
    for facts in (OTHER, BMC):
        story.upload(facts, applied=False, applied_labels=None, bmc=hidden)
    story.states[story.upload(USER, bmc=hidden)] = "pending"
    story.look()
    story.act("image-apply", target=applied)
    story.states.clear()
    story.look()
    assert worst(story, "sysinv-image-state") == verdict


def test_a_card_that_moved_keeps_its_states_by_its_identity(story: Story) -> None:
    story.owe(USER)
    story.card["address"] = ELSEWHERE
    story.look(600, address=ELSEWHERE)
    assert worst(story, "sysinv-image-state") == "MATCH"


def test_what_was_completed_is_not_pending_again_by_itself(story: Story) -> None:
    """LP 1890340."""
    story.owe(KEY)
    story.card["sr_root"] = ROOT
    story.update(key="completed")
    story.act("image-apply", target="key")
    story.states["key"] = "pending"
    story.look()
    assert worst(story, "sysinv-image-state") == "MISREPORT"


def test_a_state_of_no_image_is_a_misreport(story: Story) -> None:
    """Section 4.8: an image that is deleted leaves its states behind."""
    story.owe(USER)
    story.act("image-delete", target="user")
    del story.images["user"]
    story.states = {"": "pending"}
    story.look()
    assert worst(story, "sysinv-image-state") == "MISREPORT"


def test_one_image_is_said_once_of_a_device(story: Story) -> None:
    """Section 4.6: two rows for the same image and device."""
    story.states[story.upload(USER)] = "pending"
    story.look()
    first = next(r for r in story.records if isinstance(r, Claim) and "/state/" in r.subject.name)
    story.records.insert(story.records.index(first) + 1, replace(first, seq=first.seq))
    assert worst(story, "sysinv-image-state") == "MISREPORT"


# -- a host (sections 1.5, 3.4, 4.7) ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "statuses", "verdict"),
    [
        ("", ["completed"], "MATCH"),
        (None, [], "MATCH"),
        ("", ["failed"], "FALSE_SUCCESS"),
        (None, ["pending"], "CONTRADICTION"),
        ("", ["in-progress"], "CONTRADICTION"),
        ("pending", ["failed"], "MATCH"),
        ("pending", ["pending"], "MATCH"),
        ("pending", [], "STALE"),
        ("pending", ["completed"], "STALE"),
        ("in-progress", ["in-progress"], "MATCH"),
        ("in-progress", ["pending"], "MATCH"),
        (Unknown("not shown"), ["failed"], "UNVERIFIABLE"),
    ],
)
def test_a_host_is_held_to_the_states_of_its_devices(
    story: Story, value: Any, statuses: list[str], verdict: str
) -> None:
    for number, status in enumerate(statuses):
        story.states[story.upload(USER | {"name": f"image{number}"})] = status
    story.host = {"device_image_update": value}
    story.look()
    assert worst(story, "sysinv-host") == verdict


@pytest.mark.parametrize(
    ("seconds", "statuses", "verdict"),
    [
        (299, ["failed"], "MATCH"),
        (300, ["failed"], "STALE"),
        (300, [], "LOST"),
        (300, ["pending"], "LOST"),  # the update was taken, and nothing comes of it
        (9999, ["in-progress"], "MATCH"),
    ],
)
def test_a_host_that_is_busy_with_nothing(
    story: Story, seconds: float, statuses: list[str], verdict: str
) -> None:
    """The audit of every 300 s fails what has timed out and leaves the host in progress (section 4.7)."""
    for status in statuses:
        story.states[story.upload(USER)] = status
    story.host["device_image_update"] = "in-progress"
    story.look()
    story.look(seconds)
    assert worst(story, "sysinv-host") == verdict


def test_a_completed_image_needs_a_reboot(story: Story) -> None:
    story.owe(USER)
    story.update(user="completed")
    story.host["reboot_needed"] = False
    story.look()
    assert worst(story, "sysinv-host") == "FALSE_SUCCESS"


def test_a_host_that_has_booted_needs_none(story: Story) -> None:
    story.owe(USER)
    story.update(user="completed")
    story.card |= {"boot_id": "second", "bitstream_id": NEW}
    story.look(600)
    assert worst(story, "sysinv-host") == "STALE"

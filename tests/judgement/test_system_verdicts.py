"""What a StarlingX system says of devices, labels and alarms, what is asked of it, and all of it together.

Expected values are those of the fact sheet of StarlingX, sections 1 to 4.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judgement.judge import judge_scenario
from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import from_json, to_json
from harness.judgement.values import NOT_EXPOSED, Unknown
from tests.judgement.system_records import (
    ELSEWHERE,
    HOST,
    KEY,
    NEW,
    OLD,
    OTHER,
    ROOT,
    USER,
    Story,
    diverged,
    worst,
)


@pytest.fixture
def story() -> Story:
    return Story()


# -- the fields of a device (sections 1.6, 3.1) ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown", "truth", "verdict"),
    [
        ("bitstream_id", f"{OLD:#x}", {}, "MATCH"),
        ("bitstream_id", f"{OLD:x}".upper(), {}, "MATCH"),
        ("bitstream_id", f"{NEW:#x}", {}, "MISREPORT"),
        ("bitstream_id", "", {}, "UNKNOWN_AS_VALUE"),
        ("bitstream_id", "", {"bitstream_id": Unknown("Input/output error")}, "UNKNOWN_AS_VALUE"),
        ("bitstream_id", None, {"bitstream_id": Unknown("Input/output error")}, "UNKNOWN_AS_VALUE"),
        ("bitstream_id", f"{OLD:#x}", {"bitstream_id": Unknown("Input/output error")}, "UNVERIFIABLE"),
        ("root_key", "", {}, "MATCH"),
        ("root_key", "", {"sr_root": ROOT}, "MISREPORT"),
        ("root_key", f"0x{ROOT.upper()}", {"sr_root": ROOT}, "MATCH"),
        ("root_key", "", {"sr_root": Unknown("all ones")}, "UNKNOWN_AS_VALUE"),
        ("revoked_key_ids", "0-2,5", {"sr_cancelled": [0, 1, 2, 5]}, "MATCH"),
        ("revoked_key_ids", "0-2", {"sr_cancelled": [0, 1]}, "MISREPORT"),
        ("revoked_key_ids", "garbage", {}, "MISREPORT"),
        ("boot_page", "factory", {}, "MISREPORT"),
        ("bmc_fw_version", "D.2.0.12", {"bmcfw_version": NOT_EXPOSED}, "MATCH"),
        ("bmc_build_version", "D.2.0.7", {}, "MISREPORT"),
    ],
)
def test_a_field_is_held_to_the_card(
    story: Story, name: str, shown: Any, truth: dict[str, Any], verdict: str
) -> None:
    story.device[name] = shown
    story.card |= truth
    story.look()
    assert worst(story, "sysinv-device") == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(60, "MATCH"), (1200, "STALE")])
def test_a_field_that_was_true_may_lag_within_its_bound(story: Story, seconds: float, verdict: str) -> None:
    """A card is reported once in an agent's life (section 3.1): a key that was programmed is not shown."""
    story.look()
    story.card["sr_root"] = ROOT
    story.look()
    story.look(seconds)
    assert worst(story, "sysinv-device") == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(60, "UNVERIFIABLE"), (1200, "LOST")])
def test_fields_that_nobody_reports_are_lost(story: Story, seconds: float, verdict: str) -> None:
    """LP 1981824: the agent is not installed."""
    story.device = dict.fromkeys(story.device)
    story.look()
    story.look(seconds)
    assert worst(story, "sysinv-device") == verdict


def test_a_device_at_the_address_that_a_card_has_left_is_stale(story: Story) -> None:
    story.look()
    story.card["address"] = ELSEWHERE
    story.look()
    assert worst(story, "sysinv-device") == "STALE"


# -- applied and labels (sections 4.1, 4.3, 4.6) ---------------------------------------------------------

FLOAT = [["k", "v"]]


@pytest.mark.parametrize(
    ("user", "other", "states", "verdict"),
    [
        ((True, FLOAT), (False, None), [], "MATCH"),
        ((True, FLOAT), (True, FLOAT), [], "CONTRADICTION"),
        ((True, [["", ""]]), (True, [["", ""]]), ["other"], "MISREPORT"),
        ((True, FLOAT + FLOAT), (False, None), [], "MISREPORT"),
        ((False, FLOAT), (False, None), [], "CONTRADICTION"),
        ((True, [["", ""]]), (False, None), [], "CONTRADICTION"),
        ((False, None), (False, None), ["user"], "CONTRADICTION"),
        ((Unknown("not shown"), Unknown("not shown")), (False, None), ["user"], None),
    ],
)
def test_applied_is_held_to_labels_and_states(
    story: Story, user: Any, other: Any, states: list[str], verdict: str | None
) -> None:
    story.upload(USER, applied=user[0], applied_labels=user[1])
    story.upload(OTHER, applied=other[0], applied_labels=other[1])
    story.states = dict.fromkeys(states, "pending")
    story.look()
    judged = story.end()
    assert judged.verdicts["sysinv-applied"].value == (verdict or "MATCH")


@pytest.mark.parametrize("bmc", [False, Unknown("not shown by this way in")])
def test_images_of_other_kinds_are_applied_to_one_label(story: Story, bmc: Any) -> None:
    """A root key and a functional image do not take each other's place (section 4.2)."""
    for facts in (USER, KEY):
        story.upload(facts, applied_labels=FLOAT, bmc=bmc)
    story.look()
    assert worst(story, "sysinv-applied") == "MATCH"


def test_an_image_of_a_label_that_a_card_carries_is_owed_to_it(story: Story) -> None:
    story.labels = [("k", "v")]
    story.upload(USER, applied_labels=FLOAT)
    story.look()
    assert worst(story, "sysinv-applied") == "CONTRADICTION"


# -- alarm 900.006 (section 3.6) -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stands", "statuses", "reboot", "verdict"),
    [
        (False, [], False, "MATCH"),
        (False, ["completed"], False, "MATCH"),
        (True, ["pending"], False, "MATCH"),
        (True, ["failed"], False, "MATCH"),
        (True, ["in-progress"], False, "MATCH"),
        (True, ["completed"], True, "MATCH"),
        (True, ["completed"], False, "STALE"),
        (True, [], False, "STALE"),
        (False, ["pending"], False, "CONTRADICTION"),
        (False, ["completed"], True, "CONTRADICTION"),
    ],
)
def test_the_alarm_stands_while_something_is_to_be_done(
    story: Story, stands: bool, statuses: list[str], reboot: bool, verdict: str
) -> None:
    for status in statuses:
        story.states[story.upload(USER)] = status
    story.host["reboot_needed"] = reboot
    story.alarm = stands
    story.look()
    assert worst(story, "alarm-900.006") == verdict


@pytest.mark.parametrize(("stands", "verdict"), [(True, "STALE"), (False, "MATCH")])
def test_the_alarm_goes_with_the_last_image_although_a_host_is_to_be_booted(
    story: Story, stands: bool, verdict: str
) -> None:
    story.host = {"device_image_update": "", "reboot_needed": True}
    story.alarm = stands
    story.look()
    assert worst(story, "alarm-900.006") == verdict


@pytest.mark.parametrize(
    ("given", "stands", "verdict"),
    [
        (False, False, "MATCH"),
        (False, True, "STALE"),
        (True, True, "MATCH"),
        (True, False, "CONTRADICTION"),
    ],
)
def test_the_alarm_comes_again_with_an_image_that_a_device_is_given_and_with_no_other(
    story: Story, given: bool, stands: bool, verdict: str
) -> None:
    """It is raised as an image is applied to a device (section 3.6), and by no upload."""
    story.host = {"device_image_update": "", "reboot_needed": True}
    story.look()
    story.upload(USER)
    story.states |= {"user": "completed"} if given else {}
    story.alarm = stands
    story.look()
    assert worst(story, "alarm-900.006") == verdict


# -- what was asked --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promise", "truth", "outcome"),
    [
        ("lands", {"bitstream_id": NEW}, "AS_INTENDED"),
        ("lands", {}, "FAILED"),
        ("unchanged", {}, "AS_INTENDED"),
        ("unchanged", {"bitstream_id": NEW}, "BREACH"),
    ],
)
def test_an_update_is_held_to_what_is_promised_of_its_images(
    story: Story, promise: str, truth: dict[str, Any], outcome: str
) -> None:
    story.owe(USER, promise=promise)
    story.update(user="failed" if promise == "unchanged" else "completed")
    story.boot(**truth)
    judged = story.end()
    assert judged.outcome is Outcome(outcome)


def test_an_image_that_is_written_after_a_failed_root_key_is_a_breach(story: Story) -> None:
    """Section 4.7: no failure is passed on."""
    story.owe(KEY, USER, promise="unchanged")
    story.update(count=2, key="failed", user="completed")
    story.boot(bitstream_id=NEW)
    judged = story.end()
    assert judged.outcome is Outcome.BREACH


@pytest.mark.parametrize(
    ("how", "kind", "outcome"),
    [
        ("returned", "", "AS_INTENDED"),
        ("raised", "device", "FAILED"),
        ("raised", "infrastructure", "UNKNOWN"),
        ("timed-out", "infrastructure", "UNKNOWN"),
    ],
)
def test_a_change_that_the_system_refuses_has_failed(story: Story, how: str, kind: str, outcome: str) -> None:
    story.act("image-upload", how, kind)
    assert story.end().outcome is Outcome(outcome)


def test_what_the_interlock_refuses_is_no_outcome(story: Story) -> None:
    story.act("image-apply", "raised", "refused", target="user")
    assert story.end().outcomes == ()


@pytest.mark.parametrize(
    ("administrative", "how", "kind", "outcome"),
    [
        ("unlocked", "returned", "", "AS_INTENDED"),
        ("locked", "returned", "", "FAILED"),
        # Of a controller that was told to boot itself: the link breaks.
        ("unlocked", "raised", "infrastructure", "AS_INTENDED"),
        ("locked", "raised", "infrastructure", "FAILED"),
        ("unlocked", "raised", "device", "FAILED"),
    ],
)
def test_a_host_that_was_unlocked_must_come_up(
    story: Story, administrative: str, how: str, kind: str, outcome: str
) -> None:
    """LP 2160223: where the reset of the cards fails, the host stays locked (section 3.3)."""
    story.act("host-unlock", how, kind, target=HOST)
    up = administrative == "unlocked"
    story.host |= {
        "administrative": administrative,
        "operational": "enabled" if up else "disabled",
        "availability": "available" if up else "online",
    }
    story.look(600)
    assert story.end().outcome is Outcome(outcome)


# -- all of it -------------------------------------------------------------------------------------------


def whole_life(story: Story) -> None:
    story.look()
    story.owe(KEY, USER)
    story.device["root_key"] = story.card["sr_root"] = ROOT
    story.update(count=2, key="completed", user="completed")
    story.boot(bitstream_id=NEW)
    for image in list(story.states):
        story.act("image-remove", target=image)
        del story.states[image]
        story.images[image] |= {"applied": False, "applied_labels": None}
    story.look()


def test_a_life_as_documents_have_it_diverges_nowhere(story: Story) -> None:
    whole_life(story)
    judged = story.end()
    assert diverged(judged) == []
    assert judged.outcome is Outcome.AS_INTENDED
    assert set(judged.verdicts) == {
        "sysinv-image-state",
        "sysinv-applied",
        "sysinv-host",
        "sysinv-device",
        "alarm-900.006",
    }


def test_a_stored_history_is_judged_to_the_same_result(story: Story) -> None:
    whole_life(story)
    live = story.end()
    assert judge_scenario([from_json(to_json(record)) for record in story.records]) == live


@given(st.integers(0, 60), st.data())
def test_a_history_that_breaks_off_is_judged_all_the_same(cut: int, data: st.DataObject) -> None:
    """Whatever records are missing, nothing is raised, and nothing is found that the whole story has not."""
    story = Story()
    whole_life(story)
    kept = story.records[: 1 + cut]
    missing = data.draw(st.sets(st.integers(1, max(1, len(kept) - 1)), max_size=3))
    left = [record for number, record in enumerate(kept) if number not in missing or number == 0]
    judged = judge_scenario(left)
    if not missing:
        assert [v for v in judged.divergences if v.kind is not VerdictKind.UNVERIFIABLE] == []


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x, max_size=2)))
def test_no_value_that_a_system_shows_breaks_the_judge(value: Any) -> None:
    story = Story()
    story.states[story.upload(USER, applied=value, applied_labels=value)] = "completed"
    story.device = dict.fromkeys(story.device, value)
    story.host = {"device_image_update": value, "reboot_needed": value}
    story.look()
    story.look()
    story.end()

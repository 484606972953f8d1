"""The steps of an update of a StarlingX system, and what a scenario says that the system must do with an act.

What is expected: fact sheet of StarlingX, sections 3.2, 4.2 and 4.7.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.judgement.model import Outcome
from tests.judgement.system_records import BMC, CANCEL, HOST, KEY, NEW, OTHER, ROOT, USER, Story, diverged


@pytest.fixture
def story() -> Story:
    return Story()


def steps(story: Story, *written: tuple[int, str]) -> Outcome:
    """An update of two cards that is looked at whenever one is written: which one, and with which image."""
    story.second = {"flash_count": 5}
    for facts in (KEY, CANCEL, USER):
        uuid = story.upload(facts)
        story.states[uuid] = story.second_states[uuid] = "pending"
    story.look()
    story.act("host-update", target=HOST)
    for number, image in written:
        card, states = (story.card, story.states) if number == 0 else (story.second, story.second_states)
        card["update_status"], states[image] = "preparing", "in-progress"
        story.look()
        card["update_status"], states[image] = "idle", "completed"
    for card in (story.card, story.second):
        card |= {"sr_root": ROOT, "sr_cancelled": [3], "flash_count": 8, "bitstream_id": NEW}
    story.look()
    return story.end().outcome


@pytest.mark.parametrize(
    ("written", "outcome"),
    [
        # As it was observed: section 4.7.
        (["key", "key", "cancel", "cancel", "user", "user"], "AS_INTENDED"),
        (["key", "cancel", "key", "cancel", "user", "user"], "BREACH"),
        (["key", "key", "user", "cancel", "cancel", "user"], "BREACH"),
        (["user", "key", "key", "cancel", "cancel", "user"], "BREACH"),
    ],
)
def test_images_are_written_by_kind_over_all_cards(story: Story, written: list[str], outcome: str) -> None:
    seen: list[tuple[int, str]] = []
    for image in written:
        seen.append((int(any(image == before for _, before in seen)), image))
    assert steps(story, *seen) is Outcome(outcome)


def test_a_host_writes_one_card_after_the_other(story: Story) -> None:
    story.second = {"update_status": "preparing"}
    uuid = story.upload(USER)
    story.states[uuid] = story.second_states[uuid] = "pending"
    story.look()
    story.act("host-update", target=HOST)
    story.card["update_status"] = "transferring"
    story.states[uuid] = story.second_states[uuid] = "in-progress"
    story.look()
    for card in (story.card, story.second):
        card |= {"update_status": "idle", "bitstream_id": NEW}
    story.look()
    assert story.end().outcome is Outcome.BREACH


def test_what_a_card_shows_while_it_is_written_is_not_the_end_of_the_update(story: Story) -> None:
    """A root key is on the card when it is done, not when the update was asked for."""
    story.owe(KEY)
    story.act("host-update", target=HOST)
    story.card["update_status"], story.states["key"] = "programming", "in-progress"
    story.host["device_image_update"] = "in-progress"
    story.look()
    story.card |= {"update_status": "idle", "sr_root": ROOT, "flash_count": 6}
    story.device["root_key"] = ROOT
    story.states["key"] = "completed"
    story.host = {"device_image_update": "", "reboot_needed": True}
    story.look()
    judged = story.end()
    assert judged.outcome is Outcome.AS_INTENDED
    assert diverged(judged) == []


@pytest.mark.parametrize(
    ("other", "outcome"),
    [(OTHER, "BREACH"), (BMC, "AS_INTENDED"), (KEY, "AS_INTENDED")],
)
def test_two_images_for_one_part_of_a_card_are_not_written_together(
    story: Story, other: dict[str, Any], outcome: str
) -> None:
    story.owe(USER, other)
    story.act("host-update", target=HOST)
    story.card |= {"flash_count": 7, "sr_root": ROOT, "boot_id": "second", "bitstream_id": NEW}
    story.card["bmc_version"] = "D.2.0.20"
    if other is OTHER:
        story.card["bitstream_id"] = NEW + 1
    story.states = dict.fromkeys(story.states, "completed")
    story.look()
    assert story.end().outcome is Outcome(outcome)


@pytest.mark.parametrize(
    ("retimers", "status", "was", "outcome"),
    [
        (True, "completed", False, "AS_INTENDED"),
        (True, "failed", False, "BREACH"),
        (False, "completed", False, "BREACH"),
        (True, "failed", True, "AS_INTENDED"),  # of an update before
    ],
)
def test_retimers_are_reset_for_an_image_with_them_that_was_written(
    story: Story, retimers: bool, status: str, was: bool, outcome: str
) -> None:
    promise = "lands" if status == "completed" else "unchanged"
    story.retimer_flag = was
    story.states[story.upload(BMC, promise, retimer_included=retimers)] = "pending"
    story.look()
    story.retimer_flag = True
    story.update(bmc=status)
    story.boot(**({"bmc_version": "D.2.0.20"} if status == "completed" else {}))
    assert story.end().outcome is Outcome(outcome)


@pytest.mark.parametrize(("was", "outcome"), [(ROOT, "AS_INTENDED"), ("", "BREACH")])
def test_a_refused_root_key_that_is_on_the_card_already_has_changed_nothing(
    story: Story, was: str, outcome: str
) -> None:
    """A programmed root key refuses every other root-key image (0x1A), its own as well."""
    story.card["sr_root"] = was
    story.owe(KEY, promise="unchanged")
    story.look()
    story.card["sr_root"] = ROOT
    story.update(key="failed")
    assert story.end().outcome is Outcome(outcome)


@pytest.mark.parametrize(
    ("status", "outcome"), [("pending", "AS_INTENDED"), ("failed", "BREACH"), ("completed", "BREACH")]
)
def test_nothing_is_begun_on_a_card_after_its_root_key_has_failed(
    story: Story, status: str, outcome: str
) -> None:
    story.owe(KEY, USER, promise="unchanged")
    story.update(key="failed", user=status)
    story.boot()
    assert story.end().outcome is Outcome(outcome)


@pytest.mark.parametrize(
    ("how", "error", "outcome"),
    [
        ("returned", "", "AS_INTENDED"),
        ("raised", "infrastructure", "AS_INTENDED"),
        ("raised", "device", "UNKNOWN"),
    ],
)
def test_an_image_that_is_taken_back_while_it_is_written_is_owed_no_more(
    story: Story, how: str, error: str, outcome: str
) -> None:
    """Nor one that may have been, for no answer came; where the system refused that, it is owed, and must not
    be gone."""
    story.owe(KEY)
    update = story.act("host-update", target=HOST)
    story.act("image-remove", how, error, target="key")
    story.states.clear()
    story.look()
    (told,) = [each.outcome for each in story.end().outcomes if each.intent == update]
    assert told is Outcome(outcome)


@pytest.mark.parametrize(
    ("promise", "how", "kind", "outcome"),
    [
        ("refused", "raised", "device", "AS_INTENDED"),
        ("refused", "returned", "", "BREACH"),
        ("taken", "returned", "", "AS_INTENDED"),
        ("taken", "raised", "device", "BREACH"),
        ("taken", "raised", "infrastructure", "UNKNOWN"),
        ("refused", "timed-out", "", "UNKNOWN"),
    ],
)
def test_an_act_is_held_to_what_the_system_must_do_with_it(
    story: Story, promise: str, how: str, kind: str, outcome: str
) -> None:
    story.act("label-assign", how, kind, target=HOST, promise=promise)
    assert story.end().outcome is Outcome(outcome)

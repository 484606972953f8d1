"""What a system controller says of its subclouds, held to the subclouds and to every card.

Expected values are those of the first field report and of the fact sheet of StarlingX, sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.judgement.judge import judge
from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import (
    Claim,
    Completion,
    Intent,
    Observation,
    Record,
    Subject,
    from_json,
    to_json,
)
from harness.judgement.side_by_side import FIRMWARE, side_by_side
from harness.judgement.values import Unknown
from tests.judgement.cloud_records import (
    CANCEL_1,
    FACTORY,
    IMAGE_2,
    IMAGE_11,
    KEY_A,
    KEY_B,
    ROOT_A,
    ROOT_B,
    Cloud,
    unread,
)
from tests.judgement.system_records import BMC, CANCEL, HOST, KEY, NEW, PLACE, SYSTEM, USER, Story

MATCH, FALSE_SUCCESS = VerdictKind.MATCH, VerdictKind.FALSE_SUCCESS
SYNC, STEP, STRATEGY, ALARM = "dcmanager-sync", "dcmanager-step", "dcmanager-strategy", "alarm-280.002"
ACROSS, UPLOAD = "controller-applied", "controller-upload"
ABC = {"subcloud": "abc"}


@pytest.fixture
def one() -> Cloud:
    """A subcloud that holds the one image that is applied to the label of its card."""
    cloud = Cloud("sub")
    cloud.look()
    cloud.label("sub", **ABC)
    cloud.apply(cloud.upload(IMAGE_11), **ABC)
    cloud.orchestrate(sub="complete")
    cloud.write("sub", "image-11")
    cloud.look()
    return cloud


def field_report() -> Cloud:
    """The first field report: two rounds, four subclouds, two images for the same labels."""
    cloud = Cloud("sub1", "sub2", "sub3", "sub4")
    cloud["sub3"].card["sr_root"] = ROOT_A
    cloud.look()
    own = {"sub1": ABC, "sub2": ABC, "sub3": {"subcloud3": "3"}, "sub4": {"subcloud4": "4"}}
    every = ABC | {"subcloud3": "3", "subcloud4": "4"}
    for name, labels in own.items():
        cloud.label(name, **labels)
    cloud.apply(cloud.upload(IMAGE_11), **every)
    cloud.orchestrate(**dict.fromkeys(own, "complete"))
    for name in own:
        cloud.write(name, "image-11")
    cloud.forget("sub1")
    cloud.forget("sub2")
    cloud.look()
    cloud.label("sub1", **ABC)
    cloud.label("sub2", **ABC)
    cloud.apply(cloud.upload(IMAGE_2), **every)
    cloud.orchestrate(sub1="complete", sub2="complete", sub3="failed", sub4="complete")
    for name in ("sub1", "sub2", "sub4"):
        cloud.write(name, "image-2")
    cloud.fail("sub3", "image-2")
    cloud.forget("sub1")
    cloud.forget("sub2")
    for name in ("sub3", "sub4"):
        cloud[name].row["firmware_sync_status"] = "out-of-sync"
        cloud.alarms.add(name)
    cloud.look()
    return cloud


class TestTheFirstFieldReport:
    def test_controller_and_subcloud4_contradict_each_other_about_image_11(self) -> None:
        verdict = field_report().last(ACROSS, "sub4/image/image-11")
        assert verdict.kind is VerdictKind.CONTRADICTION
        ours, theirs = verdict.claims
        assert "central lists image-11" in ours and "applied True" in ours and "subcloud4=4" in ours
        assert "sub4 lists image-11" in theirs and "applied False | applied_labels none" in theirs
        assert "holds image-2 (bitstream_id is 0x2 (the image's: 0x2))" in verdict.truth
        assert "does not hold image-11 (bitstream_id is 0x2 (the image's: 0x11))" in verdict.truth

    @pytest.mark.parametrize("name", ["sub1", "sub2"])
    def test_in_sync_for_the_wrong_reason_is_a_false_success(self, name: str) -> None:
        verdict = field_report().last(SYNC, name)
        assert verdict.kind is FALSE_SUCCESS
        assert "image-11 and image-2" in verdict.truth and "can hold one of them" in verdict.truth
        assert "label subcloud=abc is gone, and nobody took it off" in verdict.truth

    def test_out_of_sync_is_true(self) -> None:
        assert field_report().kind(SYNC, "sub3") is MATCH
        assert field_report().kind(SYNC, "sub4") is MATCH
        assert field_report().kind(ALARM, "sub4") is MATCH

    def test_subcloud3_failed_as_documents_promise(self) -> None:
        cloud = field_report()
        verdict = cloud.last(STEP, "sub3")
        assert verdict.kind is MATCH and "refuses an unsigned image" in verdict.truth
        assert cloud.outcomes() == {f"sub{n}": Outcome.AS_INTENDED for n in (1, 2, 3, 4)}
        assert cloud.judged().verdicts[STRATEGY] is MATCH

    def test_the_first_round_is_as_it_is_told(self) -> None:
        cloud = field_report()
        first = [v for v in cloud.judged().judged if v.reporter in (SYNC, STEP, STRATEGY, ALARM)]
        two_looks = [v for v in first if v.records[0] < next(v.records[0] for v in first if v.kind != MATCH)]
        assert len(two_looks) > 12
        assert {v.kind for v in two_looks} == {MATCH}

    def test_a_stored_history_is_judged_to_the_same(self) -> None:
        cloud, again = field_report(), Cloud()
        again.records = [from_json(to_json(record)) for record in cloud.records]
        assert again.judged().judged == cloud.judged().judged


class TestSyncStatus:
    def test_it_is_true_while_each_card_holds_what_is_listed_for_it(self, one: Cloud) -> None:
        assert one.kind(SYNC) is MATCH

    def test_rows_alone_are_no_truth(self, one: Cloud) -> None:
        """Every row says completed, and the card runs something else."""
        one["sub"].card["bitstream_id"] = 0x99
        one.look()
        assert one.kind(SYNC) is FALSE_SUCCESS

    def test_an_image_for_every_device_is_for_one_without_labels_too(self) -> None:
        cloud = Cloud("sub")
        cloud.apply(cloud.upload(IMAGE_11))
        cloud.look()
        assert cloud.kind(SYNC) is FALSE_SUCCESS

    def test_what_is_for_another_label_does_not_count(self, one: Cloud) -> None:
        one.apply(one.upload(IMAGE_2), subcloud="other")
        one.look()
        assert one.kind(SYNC) is MATCH

    def test_a_label_that_somebody_took_off_does_not_count(self, one: Cloud) -> None:
        one["sub"].card["bitstream_id"] = 0x99
        one.unlabel("sub", "subcloud")
        one.look()
        assert one.kind(SYNC) is MATCH

    def test_a_label_that_was_refused_does_not_count(self) -> None:
        cloud = Cloud("sub")
        cloud.look()
        given = {"target": "controller-0", "device": "0000:b4:00.0", "labels": ["subcloud=abc"]}
        cloud.act("sub", "label-assign", "raised", **given)
        cloud.apply(cloud.upload(IMAGE_11), **ABC)
        cloud.look()
        assert cloud.kind(SYNC) is MATCH

    def test_a_root_key_that_was_programmed_is_held_at_once(self) -> None:
        cloud = Cloud("sub")
        cloud.apply(cloud.upload(KEY_A))
        cloud.write("sub", "key-a", boot=False)
        cloud.look()
        assert cloud.kind(SYNC) is MATCH

    def test_a_root_key_and_a_functional_image_have_room_beside_each_other(self, one: Cloud) -> None:
        one.apply(one.upload(KEY_A), **ABC)
        one["sub"].card["sr_root"] = ROOT_A
        one.look()
        assert one.kind(SYNC) is MATCH

    def test_what_is_written_and_not_reset_is_not_known(self) -> None:
        cloud = Cloud("sub")
        cloud.apply(cloud.upload(IMAGE_11))
        cloud.look()
        cloud.write("sub", "image-11", {}, boot=False)
        cloud.look()
        assert cloud.kind(SYNC) is VerdictKind.UNVERIFIABLE

    def test_a_card_that_cannot_be_read_makes_it_unverifiable(self, one: Cloud) -> None:
        unread("bitstream_id")(one["sub"])
        one.look()
        assert one.kind(SYNC) is VerdictKind.UNVERIFIABLE

    def test_a_card_that_nobody_read_makes_it_unverifiable(self, one: Cloud) -> None:
        one["sub"].others = 1
        one.look()
        assert one.kind(SYNC) is VerdictKind.UNVERIFIABLE
        one["sub"].others, one["sub"].read = 0, False
        one.look()
        assert one.kind(SYNC) is VerdictKind.UNVERIFIABLE

    @pytest.mark.parametrize("answers", ["no", "broken"])
    def test_what_was_seen_before_says_nothing_of_now(self, one: Cloud, answers: str) -> None:
        one["sub"].answers = answers
        one.look()
        one.look(500)
        assert one.kind(SYNC) is VerdictKind.UNVERIFIABLE
        assert one.kind(STEP) is VerdictKind.UNVERIFIABLE
        assert one.kind(STRATEGY) is VerdictKind.UNVERIFIABLE
        one["sub"].answers = "yes"
        one.look()
        assert one.kind(SYNC) is MATCH

    def test_one_image_that_is_held_does_not_hide_one_that_is_not(self) -> None:
        cloud = Cloud("sub")
        cloud["sub"].card["sr_root"] = ROOT_A
        cloud.apply(cloud.upload(KEY_A))
        cloud.apply(cloud.upload(IMAGE_11))
        cloud.look()
        assert cloud.kind(SYNC) is FALSE_SUCCESS

    @pytest.mark.parametrize(
        ("seconds", "expected"),
        [(70, MATCH), (90, VerdictKind.STALE), (3600, VerdictKind.STALE), (3730, VerdictKind.LOST)],
    )
    def test_unknown_is_true_until_the_audit_that_is_due(
        self, one: Cloud, seconds: float, expected: VerdictKind
    ) -> None:
        one["sub"].row["firmware_sync_status"] = "unknown"
        one.look()
        one.look(seconds)
        assert one.kind(SYNC) is expected

    def test_a_change_of_an_image_asks_for_an_audit_anew(self, one: Cloud) -> None:
        one["sub"].row["firmware_sync_status"] = "unknown"
        one.look()
        one.now += 70
        one.upload(IMAGE_2)
        one.act("central", "image-upload", target="image-2")
        one.look(70)
        assert one.kind(SYNC) is MATCH

    @pytest.mark.parametrize("change", [{"management": "unmanaged"}, {"availability": "offline"}])
    def test_a_subcloud_that_nobody_asks_has_no_status(self, one: Cloud, change: dict[str, str]) -> None:
        one["sub"].row |= change | {"firmware_sync_status": "unknown"}
        one.look()
        one.look(9000)
        assert one.kind(SYNC) is MATCH
        one["sub"].row["firmware_sync_status"] = "in-sync"
        one.look()
        assert one.kind(SYNC) is VerdictKind.UNKNOWN_AS_VALUE
        one["sub"].card["bitstream_id"] = 0x99
        one.look()
        assert one.kind(SYNC) is FALSE_SUCCESS

    @pytest.mark.parametrize(("seconds", "expected"), [(3600, MATCH), (3700, VerdictKind.STALE)])
    def test_out_of_sync_lags_by_an_hour_where_nobody_asks_for_an_audit(
        self, seconds: float, expected: VerdictKind
    ) -> None:
        cloud = Cloud("sub")
        cloud.apply(cloud.upload(IMAGE_11))
        cloud["sub"].row["firmware_sync_status"] = "out-of-sync"
        cloud.look(100)
        assert cloud.kind(SYNC) is MATCH
        cloud.write("sub", "image-11", {})
        cloud.look()
        cloud.look(seconds)
        assert cloud.kind(SYNC) is expected

    def test_out_of_sync_must_go_soon_after_the_step_is_complete(self) -> None:
        cloud = Cloud("sub", "late")
        cloud.apply(cloud.upload(IMAGE_11))
        cloud.orchestrate(sub="applying fw update strategy", late="initial")
        cloud.strategy = "applying"
        cloud["sub"].row["firmware_sync_status"] = "out-of-sync"
        cloud.look()
        cloud.write("sub", "image-11", {})
        cloud.look()
        cloud.look(4000)
        assert cloud.kind(SYNC, "/subcloud/sub") is MATCH, "the step is not over"
        assert cloud["sub"].step is not None
        cloud["sub"].step["state"] = "complete"
        cloud.look()
        assert cloud.kind(SYNC, "/subcloud/sub") is MATCH
        cloud.look(90)
        assert cloud.kind(SYNC, "/subcloud/sub") is VerdictKind.STALE

    def test_out_of_sync_that_never_was_true_is_a_false_failure(self) -> None:
        """A subcloud that was moved here has the same image by another uuid (LP 1952444)."""
        cloud = Cloud("sub")
        cloud.upload(IMAGE_11)
        cloud["sub"].card["bitstream_id"] = 0x11
        cloud.look()
        cloud.apply("image-11")
        cloud["sub"].row["firmware_sync_status"] = "out-of-sync"
        cloud.look()
        assert cloud.kind(SYNC) is VerdictKind.UNVERIFIABLE, "the audit may still come"
        cloud.look(90)
        assert cloud.kind(SYNC) is VerdictKind.FALSE_FAILURE


TWIN = IMAGE_11 | {"name": "image-11b", "sha256": "22" * 32}


class TestImagesOfTheSameId:
    """A card shows the id of an image, not its bytes: two images of one id are not told apart by it."""

    @pytest.fixture
    def replaced(self) -> Cloud:
        """A card that holds one image; another of the same id and other bytes is applied in its place."""
        cloud = Cloud("sub")
        cloud.look()
        cloud.label("sub", **ABC)
        cloud.apply(cloud.upload(IMAGE_11 | {"sha256": "11" * 32}), **ABC)
        cloud.orchestrate(sub="complete")
        cloud.write("sub", "image-11")
        cloud.look()
        cloud.remove("image-11")
        cloud.apply(cloud.upload(TWIN), **ABC)
        return cloud

    def test_in_sync_with_an_image_that_never_came_is_a_false_success(self, replaced: Cloud) -> None:
        replaced.look()
        verdict = replaced.last(SYNC)
        assert verdict.kind is FALSE_SUCCESS
        assert "sub never had it, and image-11 shows just so" in verdict.truth

    def test_what_the_subcloud_had_and_did_not_write_is_not_known(self, replaced: Cloud) -> None:
        replaced["sub"].images["image-11b"] = ABC
        replaced.look()
        assert replaced.kind(SYNC) is VerdictKind.UNVERIFIABLE

    def test_nor_what_it_says_it_wrote(self, replaced: Cloud) -> None:
        replaced.orchestrate(sub="complete")
        replaced.write("sub", "image-11b")
        replaced.look()
        assert replaced.kind(SYNC) is VerdictKind.UNVERIFIABLE
        assert replaced.kind("sysinv-image-state", "image-11b") is VerdictKind.UNVERIFIABLE
        assert replaced.outcomes() == {"sub": Outcome.UNKNOWN}

    def test_it_is_known_again_where_the_card_held_another_meanwhile(self, replaced: Cloud) -> None:
        replaced["sub"].card["bitstream_id"] = FACTORY
        replaced["sub"].states = {}
        replaced.look()
        replaced.orchestrate(sub="complete")
        replaced.write("sub", "image-11b")
        replaced.look()
        assert replaced.kind(SYNC) is MATCH
        assert replaced.kind("sysinv-image-state", "image-11b") is MATCH

    def test_the_one_that_was_written_is_held(self, replaced: Cloud) -> None:
        replaced.remove("image-11b")
        replaced.apply("image-11", **ABC)
        replaced.look()
        assert replaced.kind(SYNC) is MATCH

    def test_the_same_bytes_are_the_same_image(self) -> None:
        cloud = Cloud("sub")
        first = cloud.upload(TWIN)
        cloud.apply(first)
        cloud.write("sub", first, {})
        cloud.look()
        cloud.remove(first)
        cloud.apply(cloud.upload(TWIN | {"name": "again"}))
        cloud.look()
        assert cloud.kind(SYNC) is MATCH


class TestAcross:
    def test_an_image_that_a_subcloud_does_not_list_after_its_strategy(self, one: Cloud) -> None:
        one.apply(one.upload(IMAGE_2), **ABC)
        one.remove("image-11")
        one.orchestrate(sub="complete")
        one.look()
        verdict = one.last(ACROSS, "image-2")
        assert verdict.kind is VerdictKind.CONTRADICTION
        assert verdict.claims[1] == "sub does not list it"

    def test_one_of_two_that_a_card_can_hold_need_not_be_there(self, one: Cloud) -> None:
        one.apply(one.upload(IMAGE_2), **ABC)
        one["sub"].images = {}
        one.orchestrate(sub="complete")
        one.write("sub", "image-2")
        one.look()
        assert one.kind(ACROSS, "sub/image") is MATCH

    @pytest.mark.parametrize("state", ["failed", "applying strategy", "aborted"])
    def test_a_step_that_did_not_bring_it_says_so_itself(self, one: Cloud, state: str) -> None:
        one.apply(one.upload(IMAGE_2), **ABC)
        one.orchestrate(sub=state)
        one.look()
        found = {v.subject.name for v in one.judged().judged if v.reporter == ACROSS}
        assert found == {"sub/image/image-11"}

    def test_a_strategy_for_others_brings_nothing_here(self, one: Cloud) -> None:
        one.apply(one.upload(IMAGE_2), **ABC)
        one.orchestrate(other="complete")
        one.look()
        found = {v.subject.name for v in one.judged().judged if v.reporter == ACROSS}
        assert found == {"sub/image/image-11"}

    def test_both_say_the_same(self, one: Cloud) -> None:
        assert one.kind(ACROSS) is MATCH

    def test_what_was_changed_since_the_last_strategy_is_no_contradiction(self, one: Cloud) -> None:
        one.remove("image-11")
        one.look()
        assert one.kind(ACROSS) is MATCH
        one.orchestrate(sub="complete")
        one.look()
        assert one.kind(ACROSS) is VerdictKind.CONTRADICTION, "the strategy was to remove it there"

    def test_a_strategy_that_is_under_way_leaves_it_open(self, one: Cloud) -> None:
        one["sub"].images["image-11"] = None
        one.orchestrate(sub="importing firmware")
        one.look()
        assert one.kind(ACROSS) is MATCH

    def test_a_subcloud_applies_more_than_its_controller(self, one: Cloud) -> None:
        """LP 1890355: an image is applied to all labels of a device."""
        one["sub"].images["image-11"] = ABC | {"site": "lab"}
        one.look()
        verdict = one.last(ACROSS)
        assert verdict.kind is VerdictKind.CONTRADICTION
        assert "does not apply image-11 to site=lab" in verdict.truth

    def test_a_subcloud_need_not_know_the_labels_of_others(self, one: Cloud) -> None:
        one.images["image-11"]["applied_labels"].append(["subcloud4", "4"])
        one.look()
        assert one.kind(ACROSS) is MATCH

    def test_an_image_that_is_not_there_yet_is_out_of_sync_and_no_contradiction(self, one: Cloud) -> None:
        one.apply(one.upload(IMAGE_2), **ABC)
        one.look()
        found = {v.subject.name for v in one.judged().judged if v.reporter == ACROSS}
        assert found == {"sub/image/image-11"}


class TestStatesOfSubclouds:
    STATES = "sysinv-image-state"

    def test_facts_of_an_image_are_those_of_its_controller(self, one: Cloud) -> None:
        one["sub"].card["bitstream_id"] = 0x99
        one["sub"].card["boot_id"] = "another"
        one.look()
        assert one.kind(self.STATES) is FALSE_SUCCESS

    def test_a_strategy_brings_an_image_in_the_place_of_another(self, one: Cloud) -> None:
        one.apply(one.upload(IMAGE_2), **ABC)
        one.orchestrate(sub="complete")
        one.write("sub", "image-2")
        one.look()
        assert one.judged().verdicts[self.STATES] is MATCH

    def test_a_strategy_takes_away_what_was_removed_on_the_controller(self, one: Cloud) -> None:
        one.remove("image-11")
        one.orchestrate(sub="complete")
        one["sub"].images, one["sub"].states = {"image-11": None}, {}
        one.look()
        assert one.judged().verdicts[self.STATES] is MATCH

    def test_what_was_removed_on_the_controller_stays_until_a_strategy_takes_it(self) -> None:
        cloud = Cloud("sub")
        cloud.apply(cloud.upload(IMAGE_11))
        cloud.write("sub", "image-11", {})
        cloud.look()
        cloud.remove("image-11")
        cloud["sub"].images, cloud["sub"].states = {"image-11": None}, {}
        cloud.look()
        assert cloud.kind(self.STATES) is VerdictKind.LOST

    def test_what_is_gone_after_a_strategy_without_cause_is_lost(self, one: Cloud) -> None:
        """LP 1890296: after the boot the device has no label and no state."""
        one.orchestrate(sub="complete")
        one.forget("sub")
        one.look()
        assert one.kind(self.STATES) is VerdictKind.LOST


class TestSideBySide:
    def test_each_card_has_one_row_with_what_everyone_says_of_it(self) -> None:
        rows = {row.device: row for row in side_by_side(field_report().records) if row.what == FIRMWARE}
        four = rows["sub4/card0"]
        assert four.controller == "out-of-sync; image-11 applied; image-2 applied"
        assert four.said == "image-11 not applied; image-2 applied to subcloud4=4, completed"
        assert four.truth.startswith("image-2; bitstream_id 0x2;")
        assert four.verdict is VerdictKind.CONTRADICTION
        assert rows["sub1/card0"].verdict is FALSE_SUCCESS
        assert "image-11; bitstream_id 0x11; root key aaaa" in rows["sub3/card0"].truth

    def test_an_image_that_only_the_subcloud_knows_is_named(self) -> None:
        cloud = Cloud("sub")
        uuid = cloud.upload(IMAGE_11)
        cloud.records[-1] = replace(cloud.records[-1], subject=Subject("record", f"sub/image/{uuid}"))
        cloud.write("sub", uuid, {})
        shown = cloud.images.pop(uuid)
        cloud["sub"].shown = {uuid: shown}
        cloud.look()
        (row,) = [row for row in side_by_side(cloud.records) if row.what == FIRMWARE]
        assert row.truth.startswith("image-11; bitstream_id 0x11;")

    def test_only_the_last_look_counts(self, one: Cloud) -> None:
        one["sub"].card["bitstream_id"] = 0x99
        one.look()
        one["sub"].card["bitstream_id"] = 0x11
        one.look()
        assert {row.verdict for row in side_by_side(one.records)} == {MATCH}

    def test_a_subcloud_whose_cards_nobody_read_has_a_row_too(self, one: Cloud) -> None:
        one["sub"].read = False
        one.look()
        (row,) = [row for row in side_by_side(one.records) if row.what == FIRMWARE]
        assert (row.device, row.controller, row.verdict) == ("sub", "in-sync", VerdictKind.UNVERIFIABLE)


class TestSteps:
    def test_complete_is_true_where_the_card_holds_what_is_owed(self, one: Cloud) -> None:
        assert one.kind(STEP) is MATCH
        assert one.outcomes()["sub"] is Outcome.AS_INTENDED

    def test_complete_and_the_card_runs_something_else(self, one: Cloud) -> None:
        one["sub"].card["bitstream_id"] = 0x99
        one.look()
        assert one.kind(STEP) is FALSE_SUCCESS
        assert one.kind(STRATEGY) is FALSE_SUCCESS

    def test_a_second_run_that_brings_back_the_older_image(self, one: Cloud) -> None:
        one.apply(one.upload(IMAGE_2), **ABC)
        one.orchestrate(sub="complete")
        one.write("sub", "image-2")
        one.look()
        assert one.kind(STEP) is MATCH
        one.orchestrate(sub="complete")
        one.write("sub", "image-11")
        one.look()
        assert one.judged().verdicts["sysinv-image-state"] is MATCH, "completed, replaced, completed again"
        verdict = one.last(STEP)
        assert verdict.kind is FALSE_SUCCESS and "bitstream_id is 0x11 (the image's: 0x2)" in verdict.truth

    def test_an_image_that_is_applied_after_a_strategy_is_for_the_next_one(self, one: Cloud) -> None:
        one.apply(one.upload(IMAGE_2), **ABC)
        one.look()
        assert one.kind(STEP) is MATCH
        one.apply(one.upload(KEY_A), **ABC)
        one.look()
        assert one.kind(STEP) is MATCH

    def test_failed_and_the_card_holds_it(self, one: Cloud) -> None:
        one.orchestrate(sub="failed")
        one.look()
        assert one.kind(STEP) is VerdictKind.FALSE_FAILURE
        assert one.kind(STRATEGY) is MATCH, "a step has failed, whether it had cause to or not"

    def test_a_strategy_that_failed_where_no_step_did(self, one: Cloud) -> None:
        one.strategy = "failed"
        one.look()
        assert one.kind(STRATEGY) is VerdictKind.FALSE_FAILURE

    def test_a_strategy_is_complete_and_a_step_is_not(self, one: Cloud) -> None:
        one.orchestrate(sub="failed")
        one.strategy = "complete"
        one.look()
        assert one.kind(STRATEGY) is VerdictKind.CONTRADICTION

    def test_a_step_goes_on_after_its_strategy_is_over(self, one: Cloud) -> None:
        one.orchestrate(sub="finishing fw update")
        one.look()
        assert one.kind(STEP) is VerdictKind.CONTRADICTION

    @pytest.mark.parametrize(("seconds", "expected"), [(3600, MATCH), (3700, VerdictKind.LOST)])
    def test_a_step_that_does_not_move(self, one: Cloud, seconds: float, expected: VerdictKind) -> None:
        one.orchestrate(sub="applying fw update strategy")
        one.strategy = "applying"
        one.look()
        one.look(seconds)
        assert one.kind(STEP) is expected

    def test_a_step_waits_for_what_has_failed(self, one: Cloud) -> None:
        """LP 1890915: the host is pending again, and nobody takes that for a failure."""
        one.apply(one.upload(IMAGE_2), **ABC)
        one.orchestrate(sub="applying fw update strategy")
        one.strategy = "applying"
        one.fail("sub", "image-2")
        one.look()
        one.look(200)
        assert one.kind(STEP) is MATCH
        one.look(100)
        assert one.kind(STEP) is VerdictKind.STALE

    def test_all_steps_are_over_and_the_strategy_is_not(self, one: Cloud) -> None:
        one.strategy = "applying"
        one.look()
        assert one.kind(STRATEGY) is MATCH
        one.look(90)
        assert one.kind(STRATEGY) is VerdictKind.STALE


class TestOutcomesOfAStrategy:
    @pytest.mark.parametrize(
        ("root", "cancelled", "facts", "held", "expected"),
        [
            ("", [], IMAGE_2, True, Outcome.AS_INTENDED),
            ("", [], IMAGE_2, False, Outcome.FAILED),
            (ROOT_A, [], IMAGE_2, False, Outcome.AS_INTENDED),
            (ROOT_A, [], IMAGE_2, True, Outcome.BREACH),
            (ROOT_A, [], IMAGE_11, False, Outcome.FAILED),
            (ROOT_B, [], IMAGE_11, False, Outcome.AS_INTENDED),
            (ROOT_A, [1], IMAGE_11, False, Outcome.AS_INTENDED),
            (ROOT_A, [2], IMAGE_11, True, Outcome.AS_INTENDED),
            ("", [], KEY_A, True, Outcome.AS_INTENDED),
            (ROOT_A, [], KEY_B, False, Outcome.AS_INTENDED),
            (ROOT_A, [], CANCEL_1, False, Outcome.FAILED),
            ("", [], CANCEL_1, False, Outcome.AS_INTENDED),
        ],
    )
    def test_an_image_lands_or_is_refused_as_documents_say(
        self, root: str, cancelled: list[int], facts: dict[str, object], held: bool, expected: Outcome
    ) -> None:
        cloud = Cloud("sub")
        cloud["sub"].card |= {"sr_root": root, "sr_cancelled": cancelled}
        cloud.look()
        uuid = cloud.upload(facts)
        cloud.apply(uuid)
        cloud.orchestrate(sub="complete" if held else "failed")
        if held:
            cloud.write("sub", uuid, {})
        else:
            cloud.fail("sub", uuid)
        cloud.look()
        assert cloud.outcomes()["sub"] is expected

    def test_a_root_key_of_the_same_strategy_keys_the_card_first(self) -> None:
        cloud = Cloud("sub")
        cloud.look()
        cloud.apply(cloud.upload(KEY_A))
        cloud.apply(cloud.upload(IMAGE_2))
        cloud.orchestrate(sub="failed")
        cloud.write("sub", "key-a", {})
        cloud["sub"].states["image-2"] = "failed"
        cloud.look()
        assert cloud.outcomes()["sub"] is Outcome.AS_INTENDED

    def test_a_card_that_cannot_be_read_leaves_it_unknown(self, one: Cloud) -> None:
        one.orchestrate(sub="complete")
        unread("bitstream_id")(one["sub"])
        one.look()
        assert one.outcomes()["sub"] is Outcome.UNKNOWN

    def test_a_strategy_that_is_not_over_has_no_outcome_yet(self, one: Cloud) -> None:
        one.orchestrate(sub="applying fw update strategy")
        one.look()
        assert one.outcomes()["firmware"] is Outcome.UNKNOWN

    def test_a_strategy_that_is_refused_failed(self, one: Cloud) -> None:
        one.act("central", "strategy-create", "raised")
        assert one.outcomes()["firmware"] is Outcome.FAILED


class TestTheAlarm:
    @pytest.mark.parametrize(
        ("status", "stands", "expected"),
        [
            ("out-of-sync", True, MATCH),
            ("in-sync", False, MATCH),
            ("unknown", False, MATCH),
            ("in-sync", True, VerdictKind.STALE),
            ("out-of-sync", False, VerdictKind.CONTRADICTION),
        ],
    )
    def test_it_stands_while_the_firmware_is_out_of_sync(
        self, one: Cloud, status: str, stands: bool, expected: VerdictKind
    ) -> None:
        one["sub"].row["firmware_sync_status"] = status
        one.alarms = {"sub"} if stands else set()
        one.look()
        assert one.kind(ALARM) is expected


class TestTheVault:
    UUID = "cbe0f5f7-f1d6-4b1b-8153-28951991d4ee"

    def test_an_image_that_no_subcloud_can_get_was_not_uploaded(self) -> None:
        cloud = Cloud("sub")
        cloud.apply(cloud.upload(IMAGE_11 | {"name": self.UUID}))
        cloud.orchestrate(sub="failed")
        assert cloud["sub"].step is not None
        path = f"/opt/dc-vault/device_images/functional-8086-0b30-{self.UUID}.bit"
        cloud["sub"].step["details"] = f"File does not exist: {path}"
        cloud.look()
        assert cloud.kind(UPLOAD) is FALSE_SUCCESS

    def test_an_image_that_a_subcloud_has_was(self, one: Cloud) -> None:
        assert one.kind(UPLOAD) is MATCH


#: What a field can be that another program wrote, or that this way in does not show.
ODD = (None, "", "garbage", Unknown("not shown"), True, False, 0)


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([0.01, 0.05, 0.2]))
def test_records_that_are_damaged_or_missing_are_judged_as_well(chance: Random, share: float) -> None:
    """Nothing is made of them that is not a verdict; `hil status` shows what there is."""
    damaged = [d for record in REPORTED if (d := _damaged(record, chance, share)) is not None]
    assert judge(damaged).outcomes is not None
    assert all(isinstance(row.verdict, VerdictKind) for row in side_by_side(damaged))


REPORTED = field_report().records


#: One of each type that JSON has, and a list of what cannot be a key.
TYPES = (None, True, 1.5, "odd", [], [[]], {})


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

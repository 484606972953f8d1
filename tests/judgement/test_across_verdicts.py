"""The rows of a system controller beside those of its subclouds (StarlingX's fact sheet, 4 and 5)."""

from __future__ import annotations

import pytest

from harness.judgement.model import VerdictKind
from tests.judgement.cloud_records import (
    ABC,
    IMAGE_2,
    IMAGE_11,
    Cloud,
)

MATCH = VerdictKind.MATCH
FALSE_SUCCESS = VerdictKind.FALSE_SUCCESS
ACROSS = "controller-applied"


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

    def test_what_may_have_changed_since_for_no_answer_came_is_none_either(self, one: Cloud) -> None:
        one.orchestrate(sub="complete")
        one.remove("image-11", "unanswered")
        one.look()
        assert one.kind(ACROSS) is MATCH

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

"""Steps, strategies and their outcomes, held to every card (fact sheet of StarlingX, section 5)."""

from __future__ import annotations

import pytest

from harness.judgement.model import Outcome, VerdictKind
from tests.judgement.cloud_records import (
    ABC,
    CANCEL_1,
    IMAGE_2,
    IMAGE_11,
    KEY_A,
    KEY_B,
    ROOT_A,
    ROOT_B,
    Cloud,
    unread,
)

MATCH = VerdictKind.MATCH
FALSE_SUCCESS = VerdictKind.FALSE_SUCCESS
STEP = "dcmanager-step"
STRATEGY = "dcmanager-strategy"


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

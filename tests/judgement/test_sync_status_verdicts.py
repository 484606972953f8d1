"""What dcmanager says of the firmware of a subcloud, held to every card (StarlingX's fact sheet, 5)."""

from __future__ import annotations

import pytest

from harness.judgement.model import Outcome, VerdictKind
from tests.judgement.cloud_records import (
    ABC,
    FACTORY,
    IMAGE_2,
    IMAGE_11,
    KEY_A,
    ROOT_A,
    TWIN,
    Cloud,
    unread,
)

MATCH = VerdictKind.MATCH
FALSE_SUCCESS = VerdictKind.FALSE_SUCCESS
SYNC = "dcmanager-sync"
STEP = "dcmanager-step"
STRATEGY = "dcmanager-strategy"


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

    @pytest.mark.parametrize(("how", "expected"), [("unanswered", MATCH), ("raised", FALSE_SUCCESS)])
    def test_nor_does_one_that_may_have_been_taken_off(
        self, one: Cloud, how: str, expected: VerdictKind
    ) -> None:
        """No answer came, and the system does not list it any more; where it had refused, it has lost it."""
        one["sub"].card["bitstream_id"] = 0x99
        off = {"target": "controller-0", "device": one["sub"].address, "keys": ["subcloud"]}
        one.act("sub", "label-remove", how, **off)
        one["sub"].labels = {}
        one.look()
        assert one.kind(SYNC) is expected

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

    @pytest.mark.parametrize(
        ("how", "expected"),
        [("returned", MATCH), ("unanswered", MATCH), ("raised", VerdictKind.STALE)],
    )
    def test_a_change_of_an_image_asks_for_an_audit_anew(
        self, one: Cloud, how: str, expected: VerdictKind
    ) -> None:
        """One of which no answer came may have, one that was refused has not."""
        one["sub"].row["firmware_sync_status"] = "unknown"
        one.look()
        one.now += 70
        one.upload(IMAGE_2)
        one.act("central", "image-upload", how, target="image-2")
        one.look(70)
        assert one.kind(SYNC) is expected

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

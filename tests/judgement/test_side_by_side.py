"""One row for each card: what everyone says of it beside what it holds, as `hil status` shows it."""

from __future__ import annotations

from dataclasses import replace

from harness.judgement.model import VerdictKind
from harness.judgement.records import (
    Subject,
)
from harness.judgement.side_by_side import FIRMWARE, side_by_side
from tests.judgement.cloud_records import (
    IMAGE_11,
    Cloud,
    field_report,
)

MATCH = VerdictKind.MATCH
FALSE_SUCCESS = VerdictKind.FALSE_SUCCESS


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

    def test_what_was_said_before_and_is_judged_by_the_last_look_has_no_row_of_its_own(self) -> None:
        cloud = Cloud("sub")
        cloud.upload(IMAGE_11)
        cloud.write("sub", "image-11", {}, boot=False)  # whether it was written shows with the next boot
        for _ in range(3):
            cloud.look()
        said = [row for row in side_by_side(cloud.records) if "is completed" in row.said]
        assert [row.verdict for row in said] == [VerdictKind.UNVERIFIABLE]

    def test_a_subcloud_whose_cards_nobody_read_has_a_row_too(self, one: Cloud) -> None:
        one["sub"].read = False
        one.look()
        (row,) = [row for row in side_by_side(one.records) if row.what == FIRMWARE]
        assert (row.device, row.controller, row.verdict) == ("sub", "in-sync", VerdictKind.UNVERIFIABLE)

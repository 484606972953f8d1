"""The first field report, judged: four subclouds, two rounds, two images for the same labels.

Expected values are those of the report.
"""

from __future__ import annotations

import pytest

from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import (
    from_json,
    to_json,
)
from tests.judgement.cloud_records import (
    Cloud,
    field_report,
)

MATCH = VerdictKind.MATCH
FALSE_SUCCESS = VerdictKind.FALSE_SUCCESS
SYNC = "dcmanager-sync"
STEP = "dcmanager-step"
STRATEGY = "dcmanager-strategy"
ALARM = "alarm-280.002"
ACROSS = "controller-applied"


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

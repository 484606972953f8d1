"""The published rules for resets, moved addresses and what state reporters show."""

import pytest

from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import Promise
from harness.judgement.values import ALL_ONES, NOT_EXPOSED, Unknown

OLD, NEW = 0x23000410010310, 0x23000411010311
GONE = {"address": Unknown("no device at 0000:b2:00.0"), "bitstream_id": Unknown("no device at 0000:b2:00.0")}


@pytest.mark.parametrize(
    ("result", "after", "verdict", "outcome"),
    [
        ("done", {}, "MATCH", "AS_INTENDED"),
        ("done", GONE, "FALSE_SUCCESS", "FAILED"),
        ("done", {"bitstream_id": ALL_ONES}, "FALSE_SUCCESS", "FAILED"),
        (
            "done",
            {"address": Unknown("timed out"), "bitstream_id": Unknown("timed out")},
            "UNVERIFIABLE",
            "UNKNOWN",
        ),
        ("done", {"bitstream_id": NOT_EXPOSED}, "MATCH", "AS_INTENDED"),
        ("failed", {}, "MATCH", "FAILED"),
        ("failed", {"bitstream_id": NEW}, "FALSE_FAILURE", "AS_INTENDED"),
        ("failed", GONE, "MATCH", "FAILED"),
        (None, {}, "LOST", "AS_INTENDED"),
    ],
)
def test_reset(tell, result, after, verdict, outcome) -> None:
    story = tell()
    story.reset(result, **after)
    judged = story.end()
    assert judged.verdicts == {"rsu": VerdictKind(verdict)}
    assert judged.outcome is Outcome(outcome)


def test_a_card_that_a_later_reset_brings_back_was_gone_all_the_same(tell) -> None:
    story = tell()
    story.reset("done", **GONE)
    story.reset("done")
    assert [v.kind.value for v in story.end().judged] == ["FALSE_SUCCESS", "MATCH"]


def test_a_reset_that_should_have_been_refused(tell) -> None:
    story = tell()
    story.reset("failed", promise=Promise("unchanged"), bitstream_id=NEW)
    assert story.end().outcome is Outcome.BREACH


def test_a_moved_card_makes_the_inventory_stale_once_per_move(tell) -> None:
    story = tell()
    story.reset(address="0000:b4:00.0")
    story.reset(address="0000:b4:00.0")
    stale = [v for v in story.end().judged if v.reporter == "inventory"]
    assert [v.kind for v in stale] == [VerdictKind.STALE]
    assert "0000:b2:00.0" in stale[0].claimed
    assert "0000:b4:00.0" in stale[0].truth
    assert "64:4c:36:00:00:01" in stale[0].truth


def test_a_card_that_stays_makes_nothing_stale(tell) -> None:
    story = tell()
    story.reset()
    assert "inventory" not in story.end().verdicts


def test_a_card_that_is_gone_has_not_moved(tell) -> None:
    story = tell()
    story.reset(**GONE)
    assert "inventory" not in story.end().verdicts


@pytest.mark.parametrize(
    ("name", "claimed", "truth", "verdict"),
    [
        ("flash_count", 5, 5, "MATCH"),
        ("flash_count", 6, 5, "MISREPORT"),
        ("bitstream_id", "0x23000410010310", OLD, "MATCH"),
        ("sr_root", "0xAA", "aa", "MATCH"),
        ("sr_root", "hash not programmed", "", "MATCH"),
        ("sr_root", "bb", "aa", "MISREPORT"),
        ("sr_cancelled", [2, 1], [1, 2], "MATCH"),
        ("sr_cancelled", [], [1], "MISREPORT"),
        ("interface_id", "a5d72a3c-c8b0-4939-912c-f715e5dc10ca", "a5d72a3cc8b04939912cf715e5dc10ca", "MATCH"),
        ("sr_cancelled", [], Unknown("Input/output error"), "UNKNOWN_AS_VALUE"),
        ("bitstream_id", 2**64 - 1, ALL_ONES, "UNKNOWN_AS_VALUE"),
        ("sr_root", Unknown("not supported"), NOT_EXPOSED, "UNVERIFIABLE"),
        ("retimer_version", "101c.1064", None, "UNVERIFIABLE"),
    ],
)
def test_a_field_that_fpgainfo_shows(tell, name, claimed, truth, verdict) -> None:
    story = tell()
    story.say("fpgainfo", None, **{name: claimed})
    story.observe("", None, **({} if truth is None else {name: truth}))
    judged = story.end()
    assert judged.verdicts == {"fpgainfo": VerdictKind(verdict)}
    assert name in judged.judged[0].claimed


def test_a_reporter_that_says_it_does_not_know_claims_nothing(tell) -> None:
    story = tell()
    story.observe("", None)
    story.say("fpgainfo", None, sr_root=Unknown("not supported"), flash_count=5)
    assert [v.kind.value for v in story.end().judged] == ["MATCH"]


def test_one_wrong_field_is_not_hidden_by_the_right_ones(tell) -> None:
    story = tell()
    story.observe("", None)
    story.say("fpgainfo", None, flash_count=5, boot_page="user", bmc_version="D.2.0.9")
    judged = story.end()
    assert judged.verdicts == {"fpgainfo": VerdictKind.MISREPORT}
    assert [v.claimed for v in judged.divergences] == ["bmc_version is D.2.0.9"]


def test_a_value_that_changes_while_it_is_shown_matches_on_either_side(tell) -> None:
    for shown in (5, 6):
        story = tell()
        story.observe("", None, flash_count=5)
        story.say("fpgainfo", None, flash_count=shown)
        story.observe("", None, flash_count=6)
        assert story.end().verdicts == {"fpgainfo": VerdictKind.MATCH}


def test_what_was_read_before_a_fault_says_nothing_about_what_is_shown_after_it(tell) -> None:
    story = tell()
    story.observe("", None)
    story.fault("fired", point="start", action="all-ones")
    story.say("fpgainfo", None, bitstream_id=2**64 - 1)
    story.observe("", None, bitstream_id=ALL_ONES)
    assert story.end().verdicts == {"fpgainfo": VerdictKind.UNKNOWN_AS_VALUE}


def test_an_inventory_that_names_an_address_itself_is_held_to_it_once(tell) -> None:
    story = tell()
    story.reset(address="0000:b4:00.0")
    story.say("inventory", None, address="0000:b2:00.0")
    assert [v.kind.value for v in story.end().judged if v.reporter == "inventory"] == ["STALE"]

"""The published rules for a flash: each row of docs/verdicts.md, on made-up records."""

from typing import Any

import pytest

from harness.judgement.model import Outcome, VerdictKind
from harness.judgement.records import Completion, Intent, Promise
from harness.judgement.values import ALL_ONES, Unknown

NEW, OLD, OTHER, FACTORY = 0x23000411010311, 0x23000410010310, 0x23000410010309, 0x23001410010310
REFUSED = Promise("unchanged", ("0x11",), "UG 683519")


def verdict_of(judged: Any, reporter: str = "fpgasupdate") -> Any:
    (verdict,) = [v for v in judged.judged if v.reporter == reporter]
    return verdict


@pytest.mark.parametrize(
    ("result", "error", "running", "count_after", "verdict"),
    [
        ("done", "", NEW, 6, "MATCH"),
        ("done", "", OLD, 6, "FALSE_SUCCESS"),
        ("done", "", OLD, 5, "FALSE_SUCCESS"),
        ("failed", "programming:hw-error", OLD, 6, "MATCH"),
        ("failed", "programming:hw-error", NEW, 6, "FALSE_FAILURE"),
        ("interrupted", "Caught SIGTERM", NEW, 6, "FALSE_FAILURE"),
        ("interrupted", "Caught SIGTERM", OLD, 6, "MATCH"),
        ("failed", "preparing:flash-wearout", OLD, 5, "MATCH"),
        ("failed", "programming:hw-error", OLD, 5, "NOT_ATTEMPTED"),
        ("not-sent", "Unknown file format", OLD, 5, "MATCH"),
        ("not-sent", "Unknown file format", NEW, 6, "FALSE_FAILURE"),
        ("not-sent", "Unknown file format", OLD, 6, "MISREPORT"),
        ("done", "", ALL_ONES, 6, "UNVERIFIABLE"),
        ("failed", "programming:hw-error", Unknown("gone"), 6, "UNVERIFIABLE"),
    ],
)
def test_claim_against_truth(tell, result, error, running, count_after, verdict) -> None:
    story = tell()
    story.flash(result=result, error=error, after={"flash_count": count_after})
    story.reset(bitstream_id=running, flash_count=count_after)
    assert verdict_of(story.end()).kind.value == verdict


@pytest.mark.parametrize(
    ("result", "running", "verdict"),
    [("failed", OLD, "UNVERIFIABLE"), ("failed", NEW, "MATCH"), ("done", OLD, "FALSE_SUCCESS")],
)
def test_what_a_reset_that_was_not_made_shows_says_nothing_of_the_image(
    tell, result, running, verdict
) -> None:
    story = tell()
    story.flash(result="done", after={"flash_count": 6})
    story.reset(result, bitstream_id=running, flash_count=6)
    assert verdict_of(story.end()).kind.value == verdict


@pytest.mark.parametrize("promises", [("lands", "unchanged"), ("unchanged", "lands"), ("lands", "lands")])
def test_of_an_image_that_was_tried_twice_before_a_reset_no_one_can_tell_which_try_landed(
    tell, promises
) -> None:
    story = tell()
    for number, promise in enumerate(promises, start=6):
        counts = {"before": {"flash_count": number - 1}, "after": {"flash_count": number}}
        story.flash(promise=Promise(promise), **counts)
    story.reset(bitstream_id=NEW, flash_count=7)
    assert [each.outcome for each in story.end().outcomes][:2] == [Outcome.UNKNOWN, Outcome.UNKNOWN]


def test_a_try_of_before_the_last_reset_or_that_erased_nothing_takes_no_part(tell) -> None:
    story = tell()
    story.flash(promise=Promise("unchanged"), result="failed")
    story.reset(bitstream_id=OLD, flash_count=6)
    at_six = {"flash_count": 6}
    story.flash(promise=Promise("unchanged"), result="failed", before=at_six, after=at_six)
    story.flash(before=at_six, after={"flash_count": 7})
    story.reset(bitstream_id=NEW, flash_count=7)
    outcomes = {each.outcome for each in story.end().outcomes}
    assert outcomes == {Outcome.AS_INTENDED}


def test_a_page_that_was_lost_and_written_again_cannot_be_seen_lost(tell) -> None:
    """Without another image over it, a card that runs a user page has not lost it."""
    for over, outcome in (("other", Outcome.UNKNOWN), (None, Outcome.FAILED)):
        story = tell()
        story.flash(promise=Promise("factory"), result=None, how="raised")
        if over:
            story.flash(over, before={"flash_count": 6}, after={"flash_count": 7})
        story.reset(bitstream_id=OTHER if over else OLD, boot_page="user", flash_count=7)
        assert story.end().outcomes[0].outcome is outcome


def test_a_verdict_says_who_claimed_what_what_is_true_and_how_it_was_read(tell) -> None:
    story = tell()
    story.flash(result="done")
    story.reset(bitstream_id=OLD, flash_count=6)
    text = str(verdict_of(story.end()))
    assert "fpgasupdate claimed: A/csk0 was flashed" in text
    assert "the card runs 0x23000410010310, the same as before" in text
    assert "A/csk0 is 0x23000411010311; flash count 5 -> 6" in text
    assert "bitstream_id after the reset, from /sys/card/bitstream_id" in text


@pytest.mark.parametrize(
    ("promise", "running", "auth_code", "outcome"),
    [
        (Promise("lands"), NEW, "", "AS_INTENDED"),
        (None, NEW, "", "AS_INTENDED"),
        (Promise("lands"), OLD, "", "FAILED"),
        (Promise("lands"), OLD, "0x11", "BREACH"),
        (Promise("lands"), ALL_ONES, "", "UNKNOWN"),
        (REFUSED, NEW, "", "BREACH"),
        (REFUSED, OLD, "0x11", "AS_INTENDED"),
        (REFUSED, OLD, "0x00000011", "AS_INTENDED"),
        (REFUSED, OLD, "0x12", "FAILED"),
        (REFUSED, OLD, "", "AS_INTENDED"),
        (REFUSED, ALL_ONES, "0x11", "UNKNOWN"),
        (Promise("unchanged", ("0x0C", "0x14")), OLD, "0x14", "AS_INTENDED"),
        (Promise("unchanged"), OLD, "0x14", "AS_INTENDED"),
    ],
)
def test_outcome_against_promise(tell, promise, running, auth_code, outcome) -> None:
    story = tell()
    story.flash(result="failed", promise=promise, auth_code=auth_code)
    story.reset(bitstream_id=running, flash_count=6)
    assert story.end().outcomes[0].outcome.value == outcome


@pytest.mark.parametrize(
    ("page", "running", "outcome"),
    [("factory", FACTORY, "AS_INTENDED"), ("user", NEW, "FAILED"), ("user", OLD, "FAILED")],
)
def test_a_promised_fallback(tell, page, running, outcome) -> None:
    story = tell()
    story.flash(result=None, how="timed-out", promise=Promise("factory"))
    story.reset(bitstream_id=running, boot_page=page, flash_count=6)
    assert story.end().outcomes[0].outcome.value == outcome


def test_a_page_that_was_lost_afterwards_hides_whether_an_image_had_landed(tell) -> None:
    """The power was cut while another one was copied to it: the factory image runs, as it must."""
    story = tell()
    story.flash(result="done")
    story.flash("other", result=None, how="timed-out", promise=Promise("factory"))
    story.reset(bitstream_id=FACTORY, boot_page="factory", flash_count=7)
    first, second = story.end().outcomes[:2]
    assert (first.outcome, second.outcome) == (Outcome.UNKNOWN, Outcome.AS_INTENDED)


def test_an_image_is_not_active_before_a_reset(tell) -> None:
    story = tell()
    story.flash(result="done")
    judged = story.end()
    assert verdict_of(judged).kind is VerdictKind.UNVERIFIABLE
    assert judged.outcome is Outcome.UNKNOWN
    assert "no reset followed" in verdict_of(judged).truth


def test_the_same_id_as_before_cannot_be_told_apart(tell) -> None:
    story = tell()
    story.flash(result="done", before={"bitstream_id": NEW}, after={"flash_count": 6, "bitstream_id": NEW})
    story.reset(bitstream_id=NEW, flash_count=6)
    verdict = verdict_of(story.end())
    assert verdict.kind is VerdictKind.UNVERIFIABLE
    assert "not told apart" in verdict.truth


def test_an_image_flashed_over_before_the_reset_is_not_called_false(tell) -> None:
    story = tell()
    story.flash("other", result="done")
    story.flash("A/csk0", result="done", before={"flash_count": 6}, after={"flash_count": 7})
    story.reset(bitstream_id=NEW, flash_count=7)
    kinds = [v.kind.value for v in story.end().judged if v.reporter == "fpgasupdate"]
    assert kinds == ["UNVERIFIABLE", "MATCH"]


def test_an_image_whose_id_is_unknown_is_judged_by_what_changes(tell) -> None:
    for running, verdict in ((OLD, "FALSE_SUCCESS"), (OTHER, "MATCH")):
        story = tell()
        story.flash("nameless", result="done")
        story.reset(bitstream_id=running, flash_count=6)
        assert verdict_of(story.end()).kind.value == verdict


def test_the_truth_may_come_from_a_later_reset_if_the_first_shows_nothing(tell) -> None:
    story = tell()
    story.flash(result="done")
    story.reset(bitstream_id=ALL_ONES, flash_count=ALL_ONES)
    story.reset(bitstream_id=NEW, flash_count=6)
    assert verdict_of(story.end()).kind is VerdictKind.MATCH


@pytest.mark.parametrize(
    ("image", "before", "after", "result", "verdict"),
    [
        ("root-key-B", {"sr_root": ""}, {"sr_root": "bb" * 32, "flash_count": 6}, "done", "MATCH"),
        ("root-key-B", {"sr_root": ""}, {"sr_root": "", "flash_count": 6}, "done", "FALSE_SUCCESS"),
        ("root-key-B", {"sr_root": ""}, {"sr_root": "bb" * 32, "flash_count": 6}, "failed", "FALSE_FAILURE"),
        ("root-key-B", {"sr_root": "bb" * 32}, {"sr_root": "bb" * 32, "flash_count": 6}, "failed", "MATCH"),
        ("root-key-B", {}, {"sr_root": Unknown("busy"), "flash_count": 6}, "done", "UNVERIFIABLE"),
        ("cancel-3", {"sr_cancelled": [1]}, {"sr_cancelled": [1, 3], "flash_count": 6}, "done", "MATCH"),
        ("cancel-3", {"sr_cancelled": [1]}, {"sr_cancelled": [1], "flash_count": 6}, "done", "FALSE_SUCCESS"),
        ("cancel-3", {"sr_cancelled": [3]}, {"sr_cancelled": [3], "flash_count": 6}, "done", "MATCH"),
        ("cancel-3", {"sr_cancelled": [3]}, {"sr_cancelled": [3], "flash_count": 6}, "failed", "MATCH"),
        ("cancel-3", {"sr_cancelled": [3]}, {"sr_cancelled": [], "flash_count": 6}, "done", "FALSE_SUCCESS"),
        ("raw-file", {}, {}, "not-sent", "MATCH"),
        ("raw-file", {}, {"sr_root": "bb" * 32, "flash_count": 6}, "failed", "FALSE_FAILURE"),
    ],
)
def test_keys_and_unparsed_bytes_are_judged_without_a_reset(
    tell, image, before, after, result, verdict
) -> None:
    story = tell()
    story.flash(image, result=result, before=before, after=after)
    assert verdict_of(story.end()).kind.value == verdict


@pytest.mark.parametrize(
    ("versions", "before", "verdict"),
    [
        ({"bmc_version": "D.2.0.7", "bmcfw_version": "D.2.0.21"}, {}, "MATCH"),
        ({}, {}, "FALSE_SUCCESS"),
        ({"bmc_version": "D.2.0.7"}, {}, "FALSE_SUCCESS"),
        (
            {"bmc_version": "D.2.0.7", "bmcfw_version": "D.2.0.21"},
            {"bmc_version": "D.2.0.7", "bmcfw_version": "D.2.0.21"},
            "UNVERIFIABLE",
        ),
        ({"bmc_version": ALL_ONES, "bmcfw_version": ALL_ONES}, {}, "UNVERIFIABLE"),
    ],
)
def test_a_bmc_image_is_judged_by_its_versions(tell, versions, before, verdict) -> None:
    story = tell()
    story.flash("bmc", result="done", before=before)
    story.reset(**(versions | {"flash_count": 6}))
    assert verdict_of(story.end()).kind.value == verdict


def test_a_root_entry_hash_that_changes_under_a_user_image_is_a_breach(tell) -> None:
    story = tell()
    story.flash(result="done", after={"sr_root": "bb" * 32, "flash_count": 6})
    story.reset(bitstream_id=NEW, flash_count=6)
    outcome = story.end().outcomes[0]
    assert outcome.outcome is Outcome.BREACH
    assert "sr_root changed" in outcome.reason


@pytest.mark.parametrize("how", ["timed-out", "never"])
def test_silence_after_an_accepted_flash_is_lost(tell, how) -> None:
    story = tell()
    story.flash(result=None, how=how)
    story.reset(bitstream_id=OLD, flash_count=6)
    assert verdict_of(story.end()).kind is VerdictKind.LOST


def test_silence_without_a_completion_is_lost_only_if_the_scenario_came_to_its_end(tell) -> None:
    for state, verdict in (("finished", "LOST"), ("interrupted", "UNVERIFIABLE")):
        story = tell()
        story.flash(result=None, how=None)
        assert verdict_of(story.end(state)).kind.value == verdict


def test_a_flash_that_the_lab_kept_from_starting_is_no_report_at_all(tell) -> None:
    story = tell()
    story.flash(result=None, how="raised", raised={"kind": "infrastructure"}, after={"flash_count": 5})
    assert not [v for v in story.end("INFRA").judged if v.reporter == "fpgasupdate"]


def test_a_flash_that_the_lab_lost_on_its_way_is_lost(tell) -> None:
    story = tell()
    story.flash(result=None, how="raised", raised={"kind": "infrastructure"}, after={"flash_count": 6})
    assert verdict_of(story.end()).kind is VerdictKind.LOST


def test_a_refused_flash_has_neither_outcome_nor_verdict(tell) -> None:
    story = tell()
    story.flash(result=None, how="raised", raised={"kind": "refused"}, after={"flash_count": 5})
    judged = story.end("REFUSED", "not permitted")
    assert (judged.outcomes, judged.judged) == ((), ())


@pytest.mark.parametrize(
    ("error", "verdict"), [("preparing:device-busy", "MATCH"), ("programming:hw-error", "UNVERIFIABLE")]
)
def test_two_updates_at_once_leave_open_whose_erase_was_counted(tell, error, verdict) -> None:
    """The count rose by one: it is A's or B's; the one that says it did not begin is believed."""
    story = tell()
    facts = {"name": "A", "effect": "user-image", "bitstream_id": NEW}
    card = story.records[0].subject
    first = story.add(Intent(operation="flash", subject=card, parameters={"image": facts}))
    story.observe("before", first.seq)
    second = story.flash("other", result="failed", error=error, promise=Promise("unchanged"))
    story.say("fpgasupdate", first.seq, result="done")
    story.add(Completion(intent=first.seq, how="returned"))
    story.observe("after", first.seq, flash_count=6)
    story.reset(bitstream_id=NEW, flash_count=6)
    judged = story.end()
    kinds = {v.intent: v.kind.value for v in judged.judged if v.reporter == "fpgasupdate"}
    assert kinds == {first.seq: "MATCH", second: verdict}
    assert judged.outcome is Outcome.AS_INTENDED


def test_a_flash_that_a_fault_struck_is_lost_even_if_nothing_was_erased_yet(tell) -> None:
    story = tell()
    facts = {"name": "A", "effect": "user-image", "bitstream_id": NEW}
    card = story.records[0].subject
    intent = story.add(Intent(operation="flash", subject=card, parameters={"image": facts})).seq
    story.observe("before", intent)
    story.fault("fired", point="preparing", action="power-cut")
    story.add(Completion(intent=intent, how="raised", error={"kind": "infrastructure"}))
    story.observe("after", intent)
    assert verdict_of(story.end()).kind is VerdictKind.LOST


@pytest.mark.parametrize(("running", "reporter"), [(OLD, "fpgasupdate"), (NEW, "kernel-log")])
def test_tool_and_kernel_log_contradict_each_other(tell, running, reporter) -> None:
    story = tell()
    story.flash(result="done", auth_code="0x11")
    story.reset(bitstream_id=running, flash_count=6)
    found = [v for v in story.end().judged if v.kind is VerdictKind.CONTRADICTION]
    assert [v.reporter for v in found] == [reporter]
    assert "0x11" in found[0].claimed


def test_an_operator_who_stops_the_run_makes_no_report_lost(tell) -> None:
    story = tell()
    story.fault("armed")
    story.flash(result=None, how="raised", raised={"kind": "KeyboardInterrupt"})
    assert verdict_of(story.end("interrupted")).kind is VerdictKind.UNVERIFIABLE


def test_a_lab_that_fails_meanwhile_makes_a_report_lost_only_if_the_card_was_touched(tell) -> None:
    for count, verdict in ((5, "UNVERIFIABLE"), (6, "LOST")):
        story = tell()
        story.flash(result=None, how="timed-out", after={"flash_count": count})
        assert verdict_of(story.end("INFRA", "the bench did not answer")).kind.value == verdict

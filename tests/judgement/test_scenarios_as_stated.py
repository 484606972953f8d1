"""A scenario is held to the outcome and the verdicts that it states."""

import pytest

from harness.judgement.judge import judge, judge_scenario
from harness.judgement.model import Outcome, RunState, VerdictKind
from harness.judgement.records import Promise, RunEnded, RunStarted, ScenarioEnded, ScenarioStarted

OLD, NEW = 0x23000410010310, 0x23000411010311


def good(story):
    story.flash(result="done")
    story.reset(bitstream_id=NEW, flash_count=6)
    return story


def false_success(story):
    story.flash(result="done")
    story.reset(bitstream_id=OLD, flash_count=6)
    return story


def test_a_regression_states_no_divergence(tell) -> None:
    judged = good(tell()).end()
    assert judged.as_stated
    assert judged.reasons == ()
    assert judged.outcome is Outcome.AS_INTENDED
    assert judged.verdicts == {"fpgasupdate": VerdictKind.MATCH, "rsu": VerdictKind.MATCH}
    assert judged.exit_codes == frozenset()


def test_a_divergence_that_nobody_stated_is_not_as_stated(tell) -> None:
    judged = false_success(tell()).end()
    assert not judged.as_stated
    assert judged.exit_codes == {1}
    assert any(r.startswith("the outcome is FAILED, stated is AS_INTENDED") for r in judged.reasons)
    assert any(
        r.startswith("FALSE_SUCCESS: fpgasupdate") and r.endswith("stated: MATCH") for r in judged.reasons
    )


def test_a_reproduction_states_its_divergence(tell) -> None:
    judged = false_success(tell(outcome="FAILED", verdicts={"fpgasupdate": "FALSE_SUCCESS"})).end()
    assert judged.as_stated
    assert all(judged.states(verdict) for verdict in judged.divergences)


def test_a_reproduction_that_shows_nothing_is_not_as_stated(tell) -> None:
    judged = good(tell(outcome="FAILED", verdicts={"fpgasupdate": "FALSE_SUCCESS"})).end()
    assert not judged.as_stated
    assert len(judged.reasons) == 2


def test_another_divergence_than_the_stated_one_is_not_as_stated(tell) -> None:
    story = tell(outcome="AS_INTENDED", verdicts={"fpgasupdate": "FALSE_FAILURE"})
    story.flash(result=None, how="timed-out")
    story.reset(bitstream_id=NEW, flash_count=6)
    judged = story.end()
    assert not judged.as_stated
    assert judged.verdicts["fpgasupdate"] is VerdictKind.LOST


def test_a_stated_reporter_that_says_nothing_is_not_as_stated(tell) -> None:
    judged = good(tell(verdicts={"fpgainfo": "MISREPORT"})).end()
    assert not judged.as_stated
    assert "fpgainfo said nothing" in judged.reasons[0]


def test_a_scenario_in_which_nothing_happened_is_not_as_stated(tell) -> None:
    judged = tell().end()
    assert not judged.as_stated
    assert "nothing was judged" in judged.reasons[0]


def test_a_scenario_that_only_reads_needs_no_operation(tell) -> None:
    story = tell()
    story.observe("", None)
    story.say("fpgainfo", None, flash_count=5)
    judged = story.end()
    assert judged.as_stated
    assert judged.outcome is None


@pytest.mark.parametrize(
    ("states", "as_stated"),
    [
        (["armed", "fired", "undone"], True),
        (["armed", "fired"], True),
        (["armed", "not-reached"], False),
        (["armed"], False),
    ],
)
def test_a_fault_that_never_came_to_its_point_is_not_as_stated(tell, states, as_stated) -> None:
    story = tell()
    for state in states:
        story.fault(state)
    judged = good(story).end()
    assert judged.as_stated is as_stated
    assert as_stated or "sigterm at programming was NOT_REACHED" in judged.reasons[0]


@pytest.mark.parametrize(
    ("state", "exit_codes"),
    [("INFRA", {3}), ("BLOCKED", {3}), ("REFUSED", {4}), ("BUG", {5}), ("NOT_APPLICABLE", set())],
)
def test_a_run_state_keeps_its_reason(tell, state, exit_codes) -> None:
    judged = tell().end(state, "for this reason")
    assert judged.run_state is RunState(state)
    assert judged.state_reason == "for this reason"
    assert judged.exit_codes == exit_codes
    assert judged.as_stated is (state == "NOT_APPLICABLE")


def test_what_was_found_before_the_lab_failed_is_not_hidden(tell) -> None:
    judged = false_success(tell()).end("INFRA", "the host is gone")
    assert judged.run_state is RunState.INFRA
    assert judged.exit_codes == {1, 3}
    assert any("FALSE_SUCCESS" in reason for reason in judged.reasons)


def test_a_scenario_cut_short_is_not_blamed_for_what_it_did_not_come_to(tell) -> None:
    story = tell()
    story.flash(result="done")
    judged = story.end("INFRA", "the host is gone")
    assert judged.exit_codes == {3}
    assert judged.reasons == ()


def test_a_history_that_stops_in_a_scenario_is_judged_so_far(tell) -> None:
    story = tell()
    story.flash(result=None, how=None)
    judged = judge_scenario(story.records)
    assert judged.interrupted
    assert not judged.as_stated
    assert judged.verdicts == {"fpgasupdate": VerdictKind.UNVERIFIABLE}
    assert judged.exit_codes == frozenset()


def test_the_end_of_another_scenario_ends_nothing(tell) -> None:
    story = good(tell())
    story.records.insert(1, ScenarioEnded(scenario="another", state="INFRA"))
    assert story.end().as_stated


def test_records_without_a_scenario_cannot_be_judged_as_one() -> None:
    with pytest.raises(ValueError, match="no scenario"):
        judge_scenario([RunEnded()])


def test_a_run_of_several_histories_whose_numbers_repeat(tell) -> None:
    """Each process of a run writes a history of its own, numbered from 1."""
    first, second = good(tell()), false_success(tell())
    first.end()
    second.end()
    start = RunStarted(run="r", lab="emulated")
    records = [start, *first.records, RunEnded(), start, *second.records, RunEnded()]
    judgement = judge(records)
    assert [s.as_stated for s in judgement.scenarios] == [True, False]
    assert judgement.finished
    assert judgement.exit_codes == {1}
    assert judgement.count_verdicts() == {VerdictKind.FALSE_SUCCESS: 1, VerdictKind.MATCH: 3}
    assert not judge(records[:-1]).finished
    assert not judge([*records[:-1], RunEnded(how="interrupted")]).finished


def test_what_diverges_between_scenarios_is_found_too(tell) -> None:
    story = false_success(tell())
    records = [r for r in story.records if not isinstance(r, ScenarioStarted)]
    judgement = judge([RunStarted(run="r", lab="emulated"), *records, RunEnded()])
    assert [v.kind for v in judgement.outside_divergences] == [VerdictKind.FALSE_SUCCESS]
    assert not judgement.as_stated
    assert judgement.exit_codes == {1}


def test_a_refused_unsigned_image_is_as_intended(tell) -> None:
    """The first field report: a card with a root entry hash refuses an unsigned image, rightly."""
    story = tell()
    story.flash(
        result="failed",
        error="programming:hw-error",
        auth_code="0x11",
        promise=Promise("unchanged", ("0x11",), "UG 683519"),
    )
    story.reset(bitstream_id=OLD, flash_count=6)
    judged = story.end()
    assert judged.as_stated
    assert judged.verdicts["fpgasupdate"] is VerdictKind.MATCH

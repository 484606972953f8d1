"""What the page of a run says, and where on its timelines."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from support.told_runs import LIE, TIMES, Run

from harness.judgement.judge import judge
from harness.judgement.records import Claim, Evidence, Fault, Record, Subject
from harness.report.page.contents import CELLS, SHOWN, Contents, contents
from harness.report.page.timeline import WIDTH, Timeline, timeline

CARD = Subject("card", "one/card0", "one", "0000:b2:00.0")


def contents_of(run: Run) -> Contents:
    records = run.end()
    return contents(judge(records), records, "reports/7")


def lying_run(*devices: str, **expects: object) -> Run:
    run = Run()
    for device in devices:
        run.flash(f"plan.py::test_flash[{device}]", device, **expects)
    return run


def test_who_claimed_what_and_what_is_true() -> None:
    said = contents_of(lying_run("one/card0"))
    assert (said.headline, said.tone, said.told) == ("Not as stated", "bad", ("1 not-as-stated",))
    (group,) = said.wrong
    report = next(r for r in group.first.reports if r.reporter == "fpgasupdate")
    assert report.kind == "FALSE_SUCCESS"
    assert report.subject == "one/card0 (0000:b2:00.0)"
    assert "A/csk0 was flashed (exit 0)" in report.claimed
    assert "flash count stayed 5" in report.truth
    assert "/sys/card/flash_count" in report.how_read
    assert (report.stated, report.as_stated) == ("MATCH", False)


def test_evidence_is_the_command_its_output_and_its_exit_code() -> None:
    said = contents_of(lying_run("one/card0"))
    report = next(r for r in said.wrong[0].first.reports if r.reporter == "fpgasupdate")
    claim = next(piece for piece in report.evidence if piece.title == "claim of fpgasupdate")
    assert claim.text == "$ fpgasupdate image.bin 0000:b2:00.0\nSecure update OK\n\n(exit code 0)"


def test_evidence_that_is_too_long_says_how_much_is_left_out() -> None:
    run = Run()
    run.flash("plan.py::test", "one/card0", text="x" * 10_000)
    claim = next(
        piece
        for report in contents_of(run).wrong[0].first.reports
        for piece in report.evidence
        if piece.title == "claim of fpgasupdate"
    )
    command = len("$ fpgasupdate image.bin 0000:b2:00.0\n")
    left_out = command + 10_000 + len("\n(exit code 0)") - 6000
    assert claim.text.endswith(f"\n... {left_out} characters more")


def test_a_divergence_that_is_stated_is_apart() -> None:
    said = contents_of(lying_run("one/card0", **LIE))
    assert (said.headline, said.tone) == ("All as stated", "good")
    assert said.wrong == ()
    assert [report.as_stated for report in said.stated[0].first.reports] == [True]


def test_the_same_on_several_devices_is_told_once() -> None:
    said = contents_of(lying_run("one/card0", "two/card0", "two/card1"))
    (group,) = said.wrong
    assert group.first.device == "one/card0 (0000:b2:00.0)"
    assert [other.device.split()[0] for other in group.others] == ["two/card0", "two/card1"]
    assert said.count_wrong == 3


def test_the_matrix_has_a_column_for_each_device_and_a_row_for_each_scenario() -> None:
    run = lying_run("one/card0")
    run.flash("plan.py::test_flash[two/card0]", "two/card0", lies=False)
    run.flash("plan.py::test_other[two/card0-A/csk0]", "two/card0", lies=False)
    run.blocked("plan.py::test_push", "no registry")
    matrix = contents_of(run).matrix
    assert matrix.devices == ("one/card0", "two/card0", "")
    table = {name: tuple(cell and cell.state for cell in cells) for name, cells in matrix.rows}
    assert table == {
        "plan.py::test_flash": ("not-as-stated", "as-stated", None),
        "plan.py::test_other[A/csk0]": (None, "as-stated", None),
        "plan.py::test_push": (None, None, "BLOCKED"),
    }


def test_a_matrix_of_more_than_anybody_reads_has_its_worst_rows() -> None:
    run = Run()
    devices = CELLS // 50
    for number in range(devices):
        run.flash(f"plan.py::test_{number}", f"host{number}/card0", lies=number == devices - 1)
    matrix = contents_of(run).matrix
    assert len(matrix.devices) * len(matrix.rows) <= CELLS
    assert (len(matrix.rows), matrix.left_out) == (50, devices - 50)
    assert matrix.rows[-1][0] == f"plan.py::test_{devices - 1}"


def test_a_row_leads_to_its_evidence_and_says_why_there_is_no_result() -> None:
    run = lying_run("one/card0")
    run.blocked("plan.py::test_push", "no registry\n  hint: start one")
    wrong, blocked = contents_of(run).rows
    assert wrong.anchor == contents_of(lying_run("one/card0")).wrong[0].first.anchor
    assert (wrong.worst, wrong.seconds) == ("FALSE_SUCCESS", 9.0)
    assert (blocked.state, blocked.reason, blocked.anchor) == ("BLOCKED", "no registry", "")


def test_a_scenario_that_went_both_ways_before_is_marked() -> None:
    run = lying_run("one/card0", "two/card0")
    records = run.end()
    said = contents(judge(records), records, "reports/7", {"plan.py::test_flash[two/card0]"})
    assert [row.flaky for row in said.rows] == [False, True]


def test_it_can_be_replayed_from_a_shell() -> None:
    run = Run()
    run.flash("plans/it's.py::test_a[one/card0]", "one/card0")
    assert contents_of(run).wrong[0].first.replay == """hil run 'plans/it'"'"'s.py::test_a[one/card0]'"""


def test_of_a_great_many_the_worst_are_shown_and_the_rest_counted() -> None:
    run = Run()
    for number in range(SHOWN + 5):
        run.flash(f"plan.py::test_{number}", "one/card0", **LIE)
    run.flash("plan.py::test_not_stated", "one/card0")
    said = contents_of(run)
    assert said.wrong[0].first.scenario == "plan.py::test_not_stated"
    assert (len(said.wrong) + len(said.stated), said.left_out) == (SHOWN, 6)
    assert len(said.rows) == SHOWN + 6


def test_a_run_of_nothing_has_a_page() -> None:
    said = contents_of(Run())
    assert (said.headline, said.rows, said.matrix.rows) == ("Nothing was judged", (), ())


# -- timelines ---------------------------------------------------------------------------------------------


def line_of(run: Run) -> Timeline:
    line = contents_of(run).wrong[0].first.timeline
    assert line is not None
    return line


def test_marks_stand_where_their_time_is() -> None:
    line = line_of(lying_run("one/card0"))
    first, last = TIMES["intent"], 8.0
    assert line.seconds == last - first
    ends = [mark for mark in line.marks if mark.at == line.seconds]
    claim = next(mark for mark in line.marks if mark.sort == "claim")
    left = 20.0
    assert ends[0].x == WIDTH - left
    assert claim.x == left + (TIMES["claim"] - first) / (last - first) * (WIDTH - 2 * left)


def test_claims_are_above_truth_below_and_faults_on_top() -> None:
    marks = line_of(lying_run("one/card0")).marks
    highest_claim = min(mark.y for mark in marks if mark.sort == "claim")
    assert all(mark.y < 0 for mark in marks if mark.sort == "claim")
    assert all(mark.y > 0 for mark in marks if mark.sort == "truth")
    assert all(mark.y < highest_claim for mark in marks if mark.sort == "fault")
    assert {mark.sort for mark in marks} == {"claim", "truth", "fault"}


def test_what_a_divergence_rests_on_is_told_from_the_rest() -> None:
    marks = line_of(lying_run("one/card0")).marks
    assert [mark.who for mark in marks if mark.diverged and mark.sort == "claim"] == ["fpgasupdate"]
    assert not any(mark.diverged for mark in marks if mark.sort == "fault")


def test_an_observation_says_what_changed_since_the_one_before() -> None:
    run = Run()
    run.flash("plan.py::test", "one/card0", lies=False, outcome="FAILED")
    _, after, _, reset = [mark.what for mark in line_of(run).marks if mark.sort == "truth"]
    assert after == "one/card0: flash_count 5 -> 6"
    assert reset == "one/card0: bitstream_id 0x23000410010310 -> 0x23000411010311"


def test_an_operation_that_never_returned_reaches_to_the_end() -> None:
    run = Run()
    run.flash("plan.py::test", "one/card0")
    records = [r for r in run.end() if r.kind not in ("completion", "run-started", "run-ended")]
    line = timeline(records, [])
    assert line is not None
    assert all(bar.x + bar.width == WIDTH - 20.0 for bar in line.bars)
    assert all(bar.what.endswith(": never returned") for bar in line.bars)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=40))
def test_no_two_marks_lie_on_each_other(times: list[float]) -> None:
    records: list[Record] = [
        Claim(seq=n, time=t, reporter="r", subject=CARD, statement={}, evidence=Evidence(""))
        if n % 3
        else Fault(seq=n, time=t, point="p", action="a", subject=CARD, state="fired")
        for n, t in enumerate(sorted(times), 1)
    ]
    line = timeline(records, [])
    assert line is not None
    places = sorted((mark.y, mark.x) for mark in line.marks)
    for (y, x), (other_y, other_x) in pairwise(places):
        assert y != other_y or other_x - x >= 20.0
    assert all(0 <= mark.x <= WIDTH for mark in line.marks)

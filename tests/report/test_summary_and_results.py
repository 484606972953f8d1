"""What a lab engineer reads after a run, and what a program reads."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InfrastructureError
from harness.judgement.judge import Judgement, ScenarioJudgement
from harness.judgement.model import Expectation, Outcome, OutcomeOf, RunState, Verdict, VerdictKind
from harness.judgement.records import RunStarted, Subject
from harness.report.results import results_json, write_results
from harness.report.summary import SHOWN, render

CARD = Subject("card", "subcloud3/card0", "subcloud3", "0000:b4:00.0", "64:4c:36:00:00:03")
RUN = RunStarted(run="20261130-1", lab="emulated")
LIE = Verdict(
    VerdictKind.FALSE_SUCCESS,
    "flash",
    "fpgasupdate",
    CARD,
    "A/csk0 was flashed (exit 0)",
    "the card still runs 0x23000410010310",
    "bitstream_id after the reset, "
    "from /sys/bus/pci/devices/0000:b4:00.0/fpga_region/region0/dfl-fme.0/bitstream_id",
    2,
    (4, 7),
)
RIGHT = LIE._replace(kind=VerdictKind.MATCH, reporter="rsu", claimed="the reset is complete")
STATED = Expectation(Outcome.FAILED, {"fpgasupdate": VerdictKind.FALSE_SUCCESS})


def scenario(name: str, *verdicts: Verdict, **fields: Any) -> ScenarioJudgement:
    made = ScenarioJudgement(
        name=name,
        subject=CARD,
        expected=Expectation(),
        outcome=Outcome.AS_INTENDED,
        verdicts={v.reporter: v.kind for v in verdicts},
        as_stated=True,
        reasons=(),
        judged=verdicts,
    )
    return replace(made, **fields)


def run_of(*scenarios: ScenarioJudgement, finished: bool = True) -> Judgement:
    return Judgement(
        outcomes=tuple(o for s in scenarios for o in s.outcomes),
        verdicts=tuple(v for s in scenarios for v in s.judged),
        scenarios=scenarios,
        runs=(RUN,),
        finished=finished,
    )


FINE = scenario("test_fine", RIGHT)
DIVERGED = scenario(
    "test_diverged",
    LIE,
    RIGHT,
    as_stated=False,
    outcome=Outcome.FAILED,
    reasons=("the outcome is FAILED, stated is AS_INTENDED: not there", f"{LIE}; stated: MATCH"),
    outcomes=(OutcomeOf(Outcome.FAILED, 2, CARD, "not there", (2,)),),
)
REPRODUCED = scenario("test_reproduced", LIE, RIGHT, expected=STATED, outcome=Outcome.FAILED)


def test_what_diverged_is_told_in_full(tmp_path: Path) -> None:
    text = render(run_of(FINE, DIVERGED), tmp_path)
    assert text.startswith("NOT AS STATED: 1 not as stated, 1 as stated\n")
    block = text.split("NOT AS STATED (1)\n")[1].split("\n\n")[0]
    for told in (
        "subcloud3/card0 (0000:b4:00.0)  test_diverged",
        "FALSE_SUCCESS    fpgasupdate on subcloud3/card0",
        "claimed: A/csk0 was flashed (exit 0)",
        "true:    the card still runs 0x23000410010310",
        "read:    bitstream_id after the reset, from .../dfl-fme.0/bitstream_id",
        "stated:  MATCH",
        "FAILED           the operation on subcloud3/card0",
        "claimed: rsu: the reset is complete",
        "true:    not there",
        "stated:  AS_INTENDED",
    ):
        assert told in block
    assert "test_fine" not in text


def test_a_push_is_named_by_its_image_and_the_one_that_failed_first(tmp_path: Path) -> None:
    there, lost = (Subject("registry-image", f"registry.local/a/b:{tag}") for tag in ("1", "2"))
    outcomes = (OutcomeOf(Outcome.AS_INTENDED, 2, there, ""), OutcomeOf(Outcome.FAILED, 5, lost, "ABSENT"))
    pushed = replace(DIVERGED, name="test_pushed", subject=None, judged=(), outcomes=outcomes)
    text = render(run_of(pushed), tmp_path)
    assert "  registry.local/a/b:2 and 1 more  test_pushed\n" in text
    text = render(run_of(replace(pushed, outcomes=outcomes[1:])), tmp_path)
    assert "  registry.local/a/b:2  test_pushed\n" in text
    assert "no device" not in text


def test_a_green_run_is_a_few_lines(tmp_path: Path) -> None:
    write_results(tmp_path, run_of(FINE, FINE))
    text = render(run_of(FINE, FINE), tmp_path)
    assert text.startswith("ALL AS STATED: 2 as stated\n")
    assert len(text.splitlines()) == 7


def test_what_a_reproduction_states_is_apart_from_what_nobody_expected(tmp_path: Path) -> None:
    text = render(run_of(REPRODUCED, DIVERGED), tmp_path)
    unexpected, stated = text.split("DIVERGED AS STATED (1)")
    assert "test_diverged" in unexpected
    assert "test_reproduced" not in unexpected
    assert "test_reproduced" in stated
    assert "test_diverged" not in stated
    assert "true: the card still runs" in stated
    alone = render(run_of(REPRODUCED), tmp_path)
    assert alone.startswith("ALL AS STATED: 1 as stated (1 of them with a divergence)\n")


def test_a_stated_divergence_that_did_not_show_is_said(tmp_path: Path) -> None:
    reason = "fpgasupdate said nothing that could be judged; stated: FALSE_SUCCESS"
    missing = scenario("test_missing", RIGHT, expected=STATED, as_stated=False, reasons=(reason,))
    assert reason in " ".join(render(run_of(missing), tmp_path).split())


def test_scenarios_without_a_result_are_listed_with_their_reason_once(tmp_path: Path) -> None:
    state = {"outcome": None, "as_stated": False}
    why = "bench1/card1 is not permitted root-key"
    excluded = [
        scenario(f"test_{n}", run_state=RunState.NOT_APPLICABLE, state_reason=why, outcome=None)
        for n in range(5)
    ]
    blocked = scenario(
        "test_power", run_state=RunState.BLOCKED, state_reason="needs 'power'\n  hint: give it", **state
    )
    broken = scenario("test_link", run_state=RunState.INFRA, state_reason="no route to host", **state)
    refused = scenario("test_no", run_state=RunState.REFUSED, state_reason="not permitted", **state)
    text = render(run_of(FINE, *excluded, blocked, broken, refused), tmp_path)
    assert text.count(why) == 1
    assert f"NOT_APPLICABLE (5) {why}" in text
    assert "... and 3 more" in text
    assert "BLOCKED (1) needs 'power'\n    hint:    give it\n    test_power" in text
    assert "INFRA (1) no route to host\n    test_link" in text
    assert "REFUSED (1) not permitted\n    test_no" in text
    assert text.index("INFRA (1)") < text.index("BLOCKED (1)") < text.index("NOT_APPLICABLE (5)")
    assert text.startswith("NOT COMPLETE: 1 as stated, 1 BLOCKED, 1 INFRA, 5 NOT_APPLICABLE, 1 REFUSED")


def test_only_excluded_scenarios_leave_a_run_green(tmp_path: Path) -> None:
    excluded = scenario("test_x", run_state=RunState.NOT_APPLICABLE, state_reason="why", outcome=None)
    assert render(run_of(FINE, excluded), tmp_path).startswith("ALL AS STATED: 1 as stated, 1 NOT_APPLICABLE")


def test_what_was_found_before_the_lab_failed_is_shown(tmp_path: Path) -> None:
    cut = replace(DIVERGED, run_state=RunState.INFRA, state_reason="no route to host")
    text = render(run_of(FINE, cut), tmp_path)
    assert text.startswith("NOT AS STATED: 1 not as stated")
    assert "test_diverged  [INFRA]" in text
    assert "FALSE_SUCCESS" in text
    assert "INFRA (1) no route to host" in text


def test_an_interrupted_run_does_not_look_finished(tmp_path: Path) -> None:
    open_end = scenario("test_open", as_stated=False, interrupted=True, state_reason="the history ends here")
    text = render(run_of(FINE, open_end, finished=False), tmp_path)
    assert text.startswith("NOT COMPLETE: 1 as stated, 1 interrupted")
    assert "interrupted (1) the history ends here" in text
    assert render(run_of(FINE, finished=False), tmp_path).startswith("AS STATED SO FAR, BUT THE RUN DID NOT")
    assert render(run_of(), tmp_path).startswith("NOTHING WAS JUDGED")


def test_where_everything_is_and_how_to_judge_again(tmp_path: Path) -> None:
    assert "results.json" not in render(run_of(FINE), tmp_path)  # as long as there are none
    write_results(tmp_path, run_of(FINE))
    text = render(run_of(FINE), tmp_path)
    assert f"history     {tmp_path}" in text
    assert f"results     {tmp_path / 'results.json'}" in text
    assert f"again       hil judge {tmp_path}" in text
    assert "reports     1 MATCH" in text


def test_a_history_file_of_its_own_is_named_as_one(tmp_path: Path) -> None:
    file = tmp_path / "of a friend.jsonl"
    assert render(run_of(FINE), file).endswith(f"history     {file}\nagain       hil judge '{file}'")


def test_what_was_captured_cannot_steer_the_terminal_or_forge_a_line(tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;t\x07\r\x9b1m\u202e\ud800x\nALL AS STATED: 9 as stated"
    card = Subject("card", evil, evil, evil, evil)
    lie = LIE._replace(subject=card, reporter=evil, claimed=evil, truth=evil, how_read=evil)
    told = scenario(
        evil,
        lie,
        as_stated=False,
        subject=card,
        outcome=Outcome.FAILED,
        reasons=(evil, f"{lie}; stated: MATCH"),
        outcomes=(OutcomeOf(Outcome.FAILED, 2, card, evil, (2,)),),
    )
    ended = scenario(evil, subject=card, as_stated=False, run_state=RunState.INFRA, state_reason=evil)
    stated = replace(told, as_stated=True, reasons=(), expected=Expectation(Outcome.FAILED, {evil: lie.kind}))
    run = replace(run_of(told, ended, stated), outside=(lie,))
    for text in (render(run, tmp_path / evil), render(run, tmp_path / evil, colour=True)):
        plain = re.sub(r"\x1b\[[0-9;]+m", "", text) if "\x1b[1;31m" in text else text
        assert all(line.isprintable() for line in plain.split("\n"))
        assert not any(line.startswith("ALL AS STATED") for line in plain.split("\n"))
        assert r"\x1b[2J\x1b]0;t\x07\r\x9b1m\u202e\ud800x" in plain
    json.dumps(results_json(run))


def test_the_same_on_several_devices_is_told_once(tmp_path: Path) -> None:
    def on(number: int, of: ScenarioJudgement, name: str) -> ScenarioJudgement:
        card = replace(CARD, name=f"subcloud{number}/card0", host=f"subcloud{number}")
        return replace(of, name=f"{name}[subcloud{number}/card0]", subject=card)

    numbers = range(1, 5)
    down = scenario("", run_state=RunState.INFRA, outcome=None, as_stated=False)
    run = run_of(
        *(on(n, DIVERGED, "test_wrong") for n in numbers),
        *(on(n, REPRODUCED, "test_known") for n in numbers),
        *(on(n, replace(down, state_reason=f"subcloud{n} is down"), "test_down") for n in numbers),
    )
    text = render(run, tmp_path)
    assert "NOT AS STATED (4)" in text
    assert text.count("test_wrong[") == 1
    assert text.count("test_known[") == 1
    assert text.count("the same on subcloud2/card0, subcloud3/card0, subcloud4/card0") == 2
    assert "INFRA (4) HOST is down" in text


def test_cases_of_one_scenario_that_diverge_alike_as_stated_are_told_once(tmp_path: Path) -> None:
    cases = [
        replace(REPRODUCED, name=f"test_known[{case}]") for case in ("preparing", "transferring", "other")
    ]
    text = render(run_of(*cases, replace(REPRODUCED, name="test_more[x]")), tmp_path)
    assert "DIVERGED AS STATED (4)" in text
    assert text.count("test_known[") == 1
    assert text.count("test_more[") == 1
    assert text.count("and so in 2 more cases of this scenario") == 1


def test_a_long_summary_ends_with_its_headline(tmp_path: Path) -> None:
    assert render(run_of(FINE), tmp_path).count("ALL AS STATED") == 1
    many = [
        replace(DIVERGED, name=f"test_wrong_{n}", subject=replace(CARD, address=f"0000:{n:02x}:00.0"))
        for n in range(6)
    ]
    text = render(run_of(*many), tmp_path)
    assert text.splitlines()[0] == text.splitlines()[-1]


def test_the_worst_of_many_is_always_shown(tmp_path: Path) -> None:
    mild = LIE._replace(kind=VerdictKind.STALE, reporter="inventory")
    stale = [
        scenario(f"test_stale_{n}", mild, as_stated=False, reasons=(f"{mild}; stated: MATCH",))
        for n in range(SHOWN + 5)
    ]
    text = render(run_of(*stale, DIVERGED), tmp_path)
    assert "test_diverged" in text
    assert text.count("test_stale_") == SHOWN - 1
    assert "... and 6 more, in results.json" in text


def test_colour_changes_no_word(tmp_path: Path) -> None:
    run = run_of(FINE, DIVERGED, REPRODUCED)
    plain, coloured = render(run, tmp_path), render(run, tmp_path, colour=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_divergences_between_scenarios_are_shown(tmp_path: Path) -> None:
    run = replace(run_of(FINE), outside=(LIE, RIGHT))
    text = render(run, tmp_path)
    assert text.startswith("NOT AS STATED: 1 divergence outside of scenarios, 1 as stated")
    assert "DIVERGED BETWEEN SCENARIOS (1)" in text


def test_results_for_programs(tmp_path: Path) -> None:
    excluded = scenario("test_x", run_state=RunState.NOT_APPLICABLE, state_reason="why", outcome=None)
    path = write_results(tmp_path, run_of(FINE, DIVERGED, REPRODUCED, excluded))
    assert path == tmp_path / "results.json"
    assert list(tmp_path.iterdir()) == [path]
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["schema"] == "hil-results/2"
    assert data["runs"][0]["lab"] == "emulated"
    assert data["as_stated"] is False
    assert data["exit_codes"] == [1]
    assert data["counts"]["scenarios"] == {"NOT_APPLICABLE": 1, "as-stated": 2, "not-as-stated": 1}
    assert data["counts"]["verdicts"] == {"FALSE_SUCCESS": 2, "MATCH": 3}
    fine, diverged, reproduced, left_out = data["scenarios"]
    assert (fine["state"], fine["divergences"]) == ("as-stated", [])
    assert diverged["outcome"] == "FAILED"
    assert diverged["verdicts"] == {"fpgasupdate": "FALSE_SUCCESS", "rsu": "MATCH"}
    assert diverged["stated"] == {"outcome": "AS_INTENDED", "verdicts": {}}
    (told,) = diverged["divergences"]
    assert told["as_stated"] is False
    assert told["truth"] == LIE.truth
    assert told["how_read"] == LIE.how_read
    assert told["records"] == [4, 7]
    assert reproduced["divergences"][0]["as_stated"] is True
    assert (left_out["state"], left_out["reason"]) == ("NOT_APPLICABLE", "why")
    assert [said["verdict"] for said in data["verdicts"]].count("FALSE_SUCCESS") == 2
    worst = next(said for said in data["verdicts"] if said["verdict"] == "FALSE_SUCCESS")
    assert (worst["subject"], worst["truth"]) == (LIE.subject.name, LIE.truth)
    assert worst["claims"] == [LIE.claimed]


def test_results_that_cannot_be_written_leave_the_old_ones(tmp_path: Path, monkeypatch) -> None:
    write_results(tmp_path, run_of(FINE))
    before = (tmp_path / "results.json").read_bytes()

    def full(self: Path, *_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(InfrastructureError, match="No space left") as caught:
            write_results(tmp_path, run_of(DIVERGED))
    assert "hil judge" in caught.value.hint
    assert (tmp_path / "results.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_every_way_to_end_has_one_word() -> None:
    assert FINE.state == "as-stated"
    assert DIVERGED.state == "not-as-stated"
    assert replace(FINE, as_stated=False, interrupted=True).state == "interrupted"
    assert replace(FINE, run_state=RunState.BUG).state == "BUG"


def test_results_are_plain_data() -> None:
    data = results_json(run_of(DIVERGED))
    assert json.loads(json.dumps(data)) == data

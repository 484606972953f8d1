"""Campaigns as they run: what is chosen, in which order, how often, and what ends them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.plans import Ended

from harness.record.history import read_history

PLAN = """
RAN = pytest.StashKey()

@pytest.mark.hil_requirement("R-1")
def test_reset(card):
    card.reset()

@pytest.mark.hil_expects(outcome="FAILED")
def test_not_as_stated(card):
    card.reset()

def test_flash(flash):
    flash("A/csk0", lands(DOC), activate=False)

def test_third(card, request):
    before = request.config.stash.setdefault(RAN, [])
    before.append(card.name)
    assert before.count(card.name) < 3
    card.reset()

@pytest.mark.parametrize("row", [1, 2])
def test_rows(flash, row):
    flash("A/csk0", lands(DOC), activate=False)

def test_again(flash):
    flash("A/csk1", lands(DOC), activate=False)
"""


@pytest.fixture
def campaign(plan):
    """Runs a campaign over the plan."""

    def run(text: str, *words: str, plugins: tuple[str, ...] = ()) -> Ended:
        Path(plan.folder / "mine.campaign.yaml").write_text(f"about: x\n{text}", encoding="utf-8")
        plan.write(PLAN)
        return plan.run(PLAN, "mine.campaign.yaml", *words, plugins=plugins)

    return run


def listed(run: Ended) -> list[str]:
    assert run.code == 0, run.text
    return [line.partition("::")[2] for line in run.stdout.splitlines() if "::" in line]


CHOSEN = """\
scenarios:
  - {path: test_plan.py, keyword: flash or again}
  - {path: test_plan.py, requirements: R-1}
devices: one
repeat: 3
"""


def test_scenarios_are_chosen_repeated_and_ordered(campaign) -> None:
    random = listed(campaign(CHOSEN + "order: random\nseed: 3\n", "--collect-only", "-q"))
    fixed = [
        f"test_{name}[one/card0-round{number}]"
        for number in (1, 2, 3)
        for name in ("flash", "again", "reset")
    ]
    assert sorted(random) == sorted(fixed)
    assert random != fixed
    assert [re.sub(".*round", "", name) for name in random] == sorted(
        re.sub(".*round", "", n) for n in random
    )
    assert listed(campaign(CHOSEN + "order: random\n", "--collect-only", "-q", "--hil-seed=3")) == random


def test_what_chooses_nothing_is_told(campaign) -> None:
    run = campaign("scenarios:\n  - test_plan.py\n  - {path: test_plan.py, ids: test_rset}\n")
    assert run.code == 4
    assert "mine.campaign.yaml: scenarios.1: nothing in test_plan.py is chosen by it." in run.text


def test_a_device_that_the_lab_lacks_blocks_its_scenarios_and_no_others(campaign) -> None:
    run = campaign("scenarios: {path: test_plan.py, ids: test_reset}\ndevices: [one/card0, nine/card0]\n")
    assert run.states == {"test_reset[one/card0]": "as-stated", "test_reset[nine/card0]": "BLOCKED"}
    assert "The lab small has no card nine/card0." in run.text


def told(run: Ended) -> dict[str, Any]:
    return json.loads((run.run_dir / "campaign.json").read_text(encoding="utf-8"))


def test_it_stops_after_so_many(campaign) -> None:
    run = campaign(
        "scenarios: {path: test_plan.py, ids: [test_reset, test_not_as_stated]}\n"
        "devices: one\nrepeat: 3\nstop: {not_as_stated: 2}\n"
    )
    assert list(run.states.values()) == ["as-stated", "not-as-stated"] * 2
    assert told(run) | {"seconds": 0, "file": ""} == {
        "campaign": "mine",
        "file": "",
        "order": "fixed",
        "rounds": 3,
        "seconds": 0,
        "planned": 6,
        "ran": 4,
        "left": {"it was to stop after 2 that are not as stated": 2},
        "ended": "it was to stop after 2 that are not as stated",
        "partial": True,
    }
    assert "PARTIAL: it was to stop after 2 that are not as stated: 2 left out" in run.text
    assert run.results["runs"][0]["options"]["campaign"] == "mine"


def test_a_budget_that_is_used_up_leaves_a_part_of_the_result(campaign) -> None:
    run = campaign("scenarios: {path: test_plan.py, ids: test_reset}\nrepeat: 50\nbudget: {time: 0.1 s}\n")
    assert run.code == 0, run.text
    facts = told(run)
    left = facts["left"]["the budget of 0.1 s is used up"]
    assert (facts["planned"], facts["partial"]) == (100, True)
    assert 1 <= facts["ran"] == 100 - left < 100
    assert f"PARTIAL: the budget of 0.1 s is used up: {left} left out" in run.text


def test_updates_of_a_real_card_are_counted_beforehand(campaign, real) -> None:
    """Each scenario has one cell before any has a second one."""
    real()
    run = campaign(
        "scenarios: {path: test_plan.py, ids: [test_rows, test_again, test_reset]}\n"
        "devices: one\nrepeat: 2\nbudget: {flashes: 5}\n",
        "--collect-only",
        "-q",
    )
    assert listed(run) == [
        "test_reset[one/card0-round1]",
        "test_rows[one/card0-1-round1]",
        "test_rows[one/card0-2-round1]",
        "test_again[one/card0-round1]",
        "test_reset[one/card0-round2]",
        "test_rows[one/card0-1-round2]",
        "test_again[one/card0-round2]",
    ]


def test_a_soak_goes_on_in_new_rounds_until_something_ends_it(campaign) -> None:
    """Not as stated in its third round: it would go on for two hours else."""
    run = campaign(
        "scenarios: {path: test_plan.py, ids: test_third}\ndevices: one\n"
        "stop: {not_as_stated: 1}\nduration: 1 s\n",
        "--hil-duration=2 h",
    )
    assert run.states == {
        "test_third[one/card0-round1]": "as-stated",
        "test_third[one/card0-round2]": "as-stated",
        "test_third[one/card0-round3]": "not-as-stated",
    }
    facts = told(run)
    assert (facts["rounds"], facts["planned"], facts["ran"]) == (3, 3, 3)
    assert facts["ended"] == "it was to stop after 1 that are not as stated"


def test_a_duration_that_is_over_is_no_partial_result(campaign) -> None:
    run = campaign(
        "scenarios: {path: test_plan.py, ids: test_reset}\nduration: 2 h\n", "--hil-duration=0.01 s"
    )
    assert run.code == 0, run.text
    facts = told(run)
    assert facts["ran"] >= 1
    assert facts["partial"] is False
    assert facts["ended"] == "the duration of 0.01 s is over"
    assert "PARTIAL" not in run.text


def test_a_soak_is_shared_by_workers_and_a_device_is_one_workers(campaign) -> None:
    text = "scenarios: {path: test_plan.py, ids: test_third}\nduration: 2 h\nstop: {not_as_stated: 1}\n"
    run = campaign(text, "-n", "2", plugins=("xdist",))
    ended = list(run.states.values())
    assert ended.count("as-stated") >= 2
    assert 1 <= ended.count("not-as-stated") <= 2
    assert len(ended) == told(run)["ran"]
    by_history = [
        {record.subject.name for record in read_history(path) if record.kind == "scenario-started"}
        for path in run.run_dir.glob("history-*.jsonl")
    ]
    # A worker that comes late may find both taken by the other; none has one that another has.
    assert sorted(name for names in by_history for name in names) == ["one/card0", "two/card0"]


def test_what_else_shares_out_is_refused(campaign) -> None:
    run = campaign("scenarios: test_plan.py\nrepeat: 2\n", "-n", "2", "--dist=worksteal", plugins=("xdist",))
    assert run.code == 4
    assert "shares its scenarios out among workers itself" in run.text

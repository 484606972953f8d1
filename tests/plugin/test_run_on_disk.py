"""What a run leaves on disk, when, and what happens where the disk takes no more."""

from pathlib import Path

import pytest

from harness.judgement.judge import judge
from harness.judgement.records import ScenarioEnded
from harness.record.history import read_history

CONFTEST = """
from harness.record.runs import histories
from harness.plugin.session import SESSION

def pytest_hil_scenario_judged(item, judgement):
    run_dir = item.config.stash[SESSION].run_dir
    (history,) = histories(run_dir)
    last = history.read_text().splitlines()[-1]
    assert '"kind":"scenario-ended"' in last and item.nodeid in last
    assert not (run_dir / "results.json").exists()

def pytest_hil_run_judged(run_dir, judgement):
    assert '"run-ended"' in (run_dir / "history.jsonl").read_text().splitlines()[-1]
"""
#: As many bytes as a file may have from here on: what a full disk does, for root too.
LIMIT = """
import resource

def pytest_hil_lab_started(lab):
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
"""
FLASHES = """
@pytest.mark.hil_given(root="A")
@pytest.mark.parametrize("number", range(20))
def test_flash(flash, number):
    flash("unsigned", unchanged("0x11", source=DOC))
"""


def test_the_history_is_on_disk_before_anything_is_judged(plan) -> None:
    plan.write(CONFTEST, "conftest.py")
    run = plan.run(FLASHES.replace("20", "2"), "--hil-device=one")
    assert run.code == 0, run.text
    latest = plan.folder / "reports" / "latest"
    assert latest.readlink() == Path(run.run_dir.name)


def test_latest_is_left_alone_where_it_is_somebody_elses(plan) -> None:
    mine = plan.folder / "reports" / "latest"
    mine.mkdir(parents=True)
    (mine / "notes").write_text("mine")
    plan.run(FLASHES.replace("20", "1"), "--hil-device=one")
    assert (mine / "notes").read_text() == "mine"
    assert sorted(path.name for path in mine.parent.iterdir())[-1] == "latest"


def test_a_full_disk_ends_the_run_and_keeps_what_was_recorded(plan) -> None:
    plan.write(LIMIT, "conftest.py")
    run = plan.run(FLASHES, "--hil-device=one", "--junitxml=junit.xml")
    assert run.code != 0
    assert "INTERNALERROR" not in run.text
    assert "Traceback" not in run.text
    recorded = list(read_history(run.run_dir / "history.jsonl", on_torn=lambda line: pytest.fail("torn")))
    whole = [record for record in recorded if isinstance(record, ScenarioEnded)]
    assert 1 <= len(whole) < 20
    again = judge(recorded).scenarios
    assert [scenario.as_stated for scenario in again[: len(whole)]] == [True] * len(whole)
    # The run stops there, says why once, and judges what it has, also what is only in memory.
    assert len(run.junit) == len(whole) + 1
    (case,) = [case for case in run.junit.values() if "failure" in case or "error" in case]
    assert case["run_state"] == "INFRA"
    assert "cannot be written: File too large" in run.stdout
    assert run.stdout.count("ERROR: The history") == 1
    assert "1 INFRA" in run.stdout


def test_reports_that_cannot_be_written_are_told_once(plan) -> None:
    (plan.folder / "taken").write_text("a file")
    run = plan.run(FLASHES, "--hil-device=one", "--hil-reports=taken")
    assert run.code != 0
    assert "Traceback" not in run.text
    assert "INTERNALERROR" not in run.text
    assert run.stdout.count("ERROR: The folder taken/") == 1
    assert "hint: Name a folder that can be written with --reports" in run.stdout
    assert (plan.folder / "taken").read_text() == "a file"

"""`hil run` that is stopped: at any moment it ends with a judged partial report and leaves nothing behind."""

import json
import os
import re
import signal

import pytest
from support.processes import PATIENCE, alive, wait_until

from harness.judgement.records import Fault, Intent, RunEnded, ScenarioEnded

#: Says where it is, and stays there until somebody interrupts it; as long as any test may take otherwise.
STAY = """
import time
from pathlib import Path

HERE = Path(__file__).parent

def stay(moment):
    (HERE / f"at-{moment}").touch()
    end = time.monotonic() + 60
    while time.monotonic() < end and not (HERE / f"go-{moment}").exists():
        time.sleep(0.01)
"""
CONFTEST = (
    STAY
    + """
MOMENT = (HERE / "moment").read_text()

def at(moment):
    if moment == MOMENT:
        stay(moment)

def pytest_collection_finish(session):
    at("collecting")

def pytest_hil_lab_started(lab):
    at("lab")

def pytest_hil_card_prepare(card, given):
    at("setup")

def pytest_hil_progress(device, doing):
    if "programming" in doing:
        at("flash")
    if doing == "reset":
        at("reset")

def pytest_hil_scenario_judged(item, judgement):
    at("judged")

def pytest_runtest_teardown(item):
    at("teardown")

def pytest_runtest_logfinish(nodeid):
    at("between")

def pytest_hil_run_judged(run_dir, judgement):
    at("end")
"""
)
PLAN = """
@pytest.mark.hil_given(root="A")
@pytest.mark.parametrize("image", ["unsigned", "A/csk0"])
def test_flash(flash, faults, image):
    flash(image, lands(DOC) if image == "A/csk0" else unchanged("0x11", source=DOC))
"""


@pytest.fixture
def stop_at(project):
    """Start a run, send it a signal when it is at a moment, and return how it ended."""

    def stop(moment: str, number: int, *words: str, group: bool = False, plan: str = PLAN, times: int = 1):
        project.write(CONFTEST, "conftest.py")
        (project.folder / "moment").write_text(moment)
        project.write(plan)
        process = project.start("run", "test_plan.py", "--device", "one", *words)
        mark = project.folder / f"at-{moment}"
        wait_until(lambda: mark.exists() or process.poll() is not None, moment)
        assert process.poll() is None, project.end(process).text
        for _ in range(times):
            (os.killpg if group else os.kill)(process.pid, number)
        return project.end(process)

    return stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["sigint", "sigterm"])
@pytest.mark.parametrize(
    ("moment", "states"),
    [
        ("collecting", None),
        ("lab", ["interrupted"]),
        ("setup", ["interrupted"]),
        ("flash", ["interrupted"]),
        ("reset", ["interrupted"]),
        ("judged", ["as-stated"]),
        ("teardown", ["as-stated"]),
        ("between", ["as-stated"]),
    ],
)
def test_a_run_that_is_stopped_ends_with_a_judged_partial_report(
    project, stop_at, moment, states, number
) -> None:
    run = stop_at(moment, number, "-o", "json")
    assert run.code == 130, run.text
    assert "Traceback" not in run.text
    results = json.loads(run.stdout)
    if states is None:
        assert results["scenarios"] == []
        assert not (project.folder / "reports").exists()
    else:
        assert [found["state"] for found in results["scenarios"]] == states
        assert results["finished"] is False
        assert results == run.results | {"exit_codes": [130]}, "scenarios do not know of it, the command does"
        ends = [record for record in run.records if isinstance(record, RunEnded)]
        assert [end.how for end in ends] == ["interrupted"]
        assert sum(1 for record in run.records if isinstance(record, ScenarioEnded)) == 1
    assert "interrupted: undoing what is not undone, judging what is recorded" in run.stderr
    project.assert_nothing_left()


def test_what_has_come_out_before_is_kept_in_the_partial_report(project, stop_at) -> None:
    plan = """
    @pytest.mark.hil_given(root="A")
    def test_breach(flash):
        flash("A/csk0", unchanged("0x11", source=DOC))

    @pytest.mark.hil_given(root="A")
    def test_stopped(card):
        from conftest import stay
        stay("here")
    """
    run = stop_at("here", signal.SIGINT, plan=plan)
    assert run.code == 130
    assert "NOT AS STATED" in run.stdout
    assert "1 interrupted" in run.stdout
    assert run.states == {"test_breach[one/card0]": "not-as-stated", "test_stopped[one/card0]": "interrupted"}
    again = project.hil("judge", str(run.run_dir), "-o", "json")
    assert again.code == 130
    assert json.loads(again.stdout) == run.results


def test_faults_are_undone_when_a_run_is_stopped(project, stop_at) -> None:
    plan = """
    @pytest.mark.hil_given(root="A")
    def test_stopped(card, faults):
        from conftest import stay
        faults.arm("start", "busy")
        faults.arm("programming", "cancel")
        stay("here")
    """
    run = stop_at("here", signal.SIGTERM, plan=plan)
    assert run.code == 130
    faults = [(r.action, r.state) for r in run.records if isinstance(r, Fault)]
    assert faults == [
        *(("busy", "armed"), ("busy", "fired"), ("cancel", "armed")),
        *(("cancel", "not-reached"), ("busy", "undone")),
    ]
    project.assert_nothing_left()


def test_the_tool_on_the_host_is_ended_with_the_run(project, stop_at) -> None:
    run = stop_at("flash", signal.SIGINT)
    asked = [record.operation for record in run.records if isinstance(record, Intent)]
    assert asked == ["flash", "signal"]


def test_the_summary_is_the_last_that_is_said_of_a_run_that_is_stopped(stop_at) -> None:
    run = stop_at("flash", signal.SIGINT)
    assert run.code == 130
    assert "1 interrupted" in run.stdout
    assert run.stdout.splitlines()[-1].startswith("again       hil judge reports/")
    assert "KeyboardInterrupt" not in run.text and "--full-trace" not in run.text


def test_impatience_does_not_keep_the_run_from_being_judged(project, stop_at) -> None:
    plan = """
    @pytest.fixture
    def slow(card):
        yield
        from conftest import stay
        stay("undoing")

    @pytest.mark.hil_given(root="A")
    def test_stopped(slow, card):
        from conftest import stay
        stay("here")
    """
    project.write(CONFTEST, "conftest.py")
    (project.folder / "moment").write_text("")
    project.write(plan)
    process = project.start("run", "test_plan.py", "--device", "one")
    for moment in ("here", "undoing"):
        wait_until((project.folder / f"at-{moment}").exists, moment)
        process.send_signal(signal.SIGINT)
    (project.folder / "go-undoing").touch()
    run = project.end(process)
    assert run.code == 130
    assert run.states == {"test_stopped[one/card0]": "interrupted"}
    assert "hil: ends when this is done: undo what the scenarios did, and judge the run" in run.stderr
    assert "interrupted: undoing what is not undone" in run.stdout
    assert "KeyboardInterrupt" not in run.text and "--full-trace" not in run.text
    assert run.stdout.splitlines()[-1].startswith(
        "interrupted; what was recorded is judged.  See: hil judge reports/"
    ), "the second signal came in place of the summary"
    project.assert_nothing_left()


@pytest.mark.parametrize("group", [True, False], ids=["ctrl-c", "only the controlling process"])
def test_workers_end_with_the_run_and_what_they_recorded_is_judged(project, group: bool) -> None:
    project.write(STAY, "staying.py")
    project.write(
        """
        import os
        from staying import stay

        @pytest.mark.parametrize("number", range(4))
        def test_stopped(card, faults, number):
            card.reset()
            faults.arm("start", "busy")
            stay(os.environ["PYTEST_XDIST_WORKER"])
        """
    )
    process = project.start("run", "test_plan.py", "-n", "2", "-o", "json")
    for worker in ("gw0", "gw1"):
        wait_until((project.folder / f"at-{worker}").exists, worker)
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    run = project.end(process)
    assert run.code == 130, run.text
    results = json.loads(run.stdout)
    assert [found["state"] for found in results["scenarios"]] == ["interrupted"] * 2
    assert len(list(run.run_dir.glob("history-*.jsonl"))) == 2
    assert results == run.results | {"exit_codes": [130]}
    # Each worker has undone its fault, however the run was stopped.
    assert [r.state for r in run.records if isinstance(r, Fault)] == ["armed", "fired", "undone"] * 2
    assert [r.how for r in run.records if isinstance(r, RunEnded)] == ["interrupted"] * 2
    project.assert_nothing_left()


@pytest.mark.parametrize(("workers", "begun"), [("0", 1), ("2", 2)])
def test_a_run_that_is_killed_leaves_nothing_and_the_next_one_judges_it(
    project, stop_at, workers: str, begun: int
) -> None:
    killed = stop_at("flash", signal.SIGKILL, "-n", workers)
    assert killed.code == -signal.SIGKILL
    wait_until(lambda: not project.processes(), "the end of all that it started")
    assert not list(project.runtime.glob("hil-lab-*"))
    assert not (killed.run_dir / "results.json").exists()
    left = killed.run_dir
    (project.folder / "moment").write_text("")
    run = project.hil("run", "test_plan.py", "--device", "one")
    assert run.code == 0, run.text
    told = f"The run reports/{left.name} was cut off; judged now: (\\d) interrupted.  See: hil judge reports/"
    found = re.search(told, run.stdout)
    assert found
    assert 1 <= int(found[1]) <= begun
    assert json.loads((left / "results.json").read_text())["finished"] is False
    project.assert_nothing_left()
    assert "cut off" not in project.hil("run", "test_plan.py", "--device", "one").stdout


def test_a_run_beside_it_is_not_taken_for_one_that_was_cut_off(project, stop_at) -> None:
    project.write(CONFTEST, "conftest.py")
    (project.folder / "moment").write_text("flash")
    project.write(PLAN)
    first = project.start("run", "test_plan.py", "--device", "one")
    wait_until((project.folder / "at-flash").exists, "the first run")
    (project.folder / "moment").write_text("")
    second = project.hil("run", "test_plan.py", "--device", "one")
    assert second.code == 0
    assert "cut off" not in second.stdout
    assert alive(first.pid)
    (project.folder / "go-flash").touch()
    first.wait(timeout=PATIENCE)
    assert first.returncode == 0

"""With xdist: one run folder, a history for each worker, all of them judged together."""

import pytest
from support.plans import lines_with
from support.processes import alive, wait_until

from harness.judgement.records import RunEnded, RunStarted

PLAN = """
@pytest.mark.hil_given(root="A")
@pytest.mark.parametrize("image", ["unsigned", "B/csk0", "A/csk1"])
def test_images(flash, image):
    flash(image, lands(DOC) if image == "A/csk1" else unchanged("0x11", "0x14", source=DOC))

@pytest.mark.hil_given(root="A")
def test_breach(flash):
    flash("A/csk0", unchanged("0x11", source=DOC))

@pytest.mark.hil_requires("power")
def test_power(card):
    card.reset()
"""
TWO = ("-n", "2", "--dist=load")


def test_all_histories_are_one_run(plan) -> None:
    run = plan.run(PLAN, *TWO, "--junitxml=junit.xml", plugins=("xdist",))
    assert sorted(path.name for path in run.run_dir.iterdir()) == [
        "history-gw0.jsonl",
        "history-gw1.jsonl",
        "report.html",
        "results.json",
    ]
    assert len(run.states) == 10
    assert {name for name, state in run.states.items() if state == "not-as-stated"} == {
        "test_breach[one/card0]",
        "test_breach[two/card0]",
    }
    assert run.states["test_power[two/card0]"] == "BLOCKED"
    assert run.results["finished"]
    started = [record for record in run.records if isinstance(record, RunStarted)]
    assert [record.run for record in started] == [run.run_dir.name] * 2
    assert [r.how for r in run.records if isinstance(r, RunEnded)] == ["finished"] * 2
    # The controlling process has what the workers found.
    assert run.stdout.count("held to the truth") == 1
    assert run.junit["test_breach[one/card0]"]["outcome"] == "BREACH"
    assert lines_with(run.stdout, "1 blocked", "2 failed", "7 passed")
    assert (run.folder / "reports" / "latest").resolve() == run.run_dir


def test_wrong_option_is_told_by_workers_too(plan) -> None:
    run = plan.run(PLAN, *TWO, "--hil-device=tow", plugins=("xdist",))
    assert run.code != 0
    assert "There is no card or host 'tow' in lab small." in run.stdout
    assert "hint: Did you mean 'two'?" in run.stdout
    assert "Traceback" not in run.text
    assert "INTERNALERROR" not in run.text


@pytest.mark.timeout(120)
def test_worker_that_dies_is_told_and_leaves_no_process(plan) -> None:
    run = plan.run(
        """
        import os, signal
        from pathlib import Path

        def test_dies(card, lab):
            Path(__file__).with_name(f"lab-{os.getpid()}").write_text(str(lab.process_id))
            os.kill(os.getpid(), signal.SIGKILL)

        @pytest.mark.hil_given(root="A")
        def test_goes_on(flash):
            flash("unsigned", unchanged("0x11", source=DOC))
        """,
        *TWO,
        "--hil-device=one",
        plugins=("xdist",),
    )
    assert run.code != 0
    assert run.states == {"test_dies[one/card0]": "interrupted", "test_goes_on[one/card0]": "as-stated"}
    assert "crashed while running 'test_plan.py::test_dies[one/card0]'" in run.stdout
    (lab,) = plan.folder.glob("lab-*")
    wait_until(lambda: not alive(int(lab.read_text())), "the lab to end with its worker")

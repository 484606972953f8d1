"""`wear: {per_run: N}` on cards that count as real: one budget for all that takes part in a run."""

import pytest

BUDGET = ("irreversible: []", "irreversible: [], wear: {per_run: 2}")


@pytest.mark.timeout(150)
def test_workers_of_a_run_share_its_budget(plan, real) -> None:
    """The worker that flashed twice dies; the one that takes its card over finds the budget used up."""
    real()
    inventory = plan.folder / "inventory.yaml"
    text = inventory.read_text()
    assert BUDGET[0] in text
    inventory.write_text(text.replace(*BUDGET))
    source = """
    import os, signal

    def test_first(flash):
        flash("unsigned", lands(DOC))

    def test_second(flash):
        flash("A/csk0", lands(DOC))

    def test_dies(card):
        os.kill(os.getpid(), signal.SIGKILL)

    def test_last(flash):
        flash("A/csk0-v2", lands(DOC))
    """
    run = plan.run(source, "-n", "1", "--hil-device=one", plugins=("xdist",))
    assert len(list(run.run_dir.glob("history-*.jsonl"))) == 2, "a second worker took over"
    assert run.states == {
        "test_first[one/card0]": "as-stated",
        "test_second[one/card0]": "as-stated",
        "test_dies[one/card0]": "interrupted",
        "test_last[one/card0]": "NOT_APPLICABLE",
    }
    assert "its budget of 2 updates in a run is used up" in run.scenarios["test_last[one/card0]"]["reason"]
    again = plan.run(source, "-k", "last", "--hil-device=one", "--hil-reports=again")
    assert again.code == 0, again.text  # another run has a budget of its own
    assert "1 passed" in again.stdout

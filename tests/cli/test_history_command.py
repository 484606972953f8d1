"""`hil history`: runs enter the index while they go on, and are listed, imported and pruned."""

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.processes import wait_until

PLAN = """
@pytest.mark.hil_given(root="A")
def test_unsigned(flash):
    flash("unsigned", unchanged("0x11", source=DOC))
"""
SLOW = (
    PLAN
    + """
def test_that_waits():
    import signal
    signal.pause()
"""
)


def entered(index: Path, table: str = "scenarios") -> int:
    """Return how many rows another process has entered so far."""
    try:
        with closing(sqlite3.connect(f"file:{index}?mode=ro", uri=True)) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except sqlite3.OperationalError:  # not made yet
        return 0


@pytest.fixture(autouse=True)
def indexed(monkeypatch) -> None:
    monkeypatch.delenv("HIL_STORE")


def test_the_same_scenario_and_device_over_past_runs(project) -> None:
    project.write(PLAN)
    for _ in range(2):
        assert project.hil("run", "test_plan.py", "--device", "two").code == 0
    shown = project.hil("history")
    assert shown.code == 0
    head, row, *_ = shown.stdout.splitlines()
    assert head.split() == ["COURSE", "LATEST", "WHEN", "DEVICE", "SCENARIO"]
    assert row.split()[:2] == ["++", "as-stated"]
    assert row.split()[-2:] == ["two/card0", "test_plan.py::test_unsigned[two/card0]"]
    (course,) = json.loads(project.hil("history", "show", "unsigned", "-o", "json").stdout)
    assert [result["worst"] for result in course["results"]] == ["MATCH", "MATCH"]
    assert course["flaky"] is False
    assert "No result" in project.hil("history", "show", "signed_by_nobody").stderr
    project.assert_nothing_left()


def test_workers_enter_what_they_run(project) -> None:
    project.write(PLAN)
    assert project.hil("run", "test_plan.py", "-n", "2").code == 0
    (run,) = json.loads(project.hil("history", "runs", "-o", "json").stdout)
    cards = len(json.loads(project.hil("history", "show", "-o", "json").stdout))
    assert (run["state"], run["states"]) == ("finished", {"as-stated": cards})
    assert cards > 1


def test_a_run_that_is_killed_has_what_it_judged_and_is_interrupted(project) -> None:
    project.write(SLOW)
    process = project.start("run", "test_plan.py", "--device", "two")
    wait_until(lambda: entered(project.folder / "reports/index.sqlite") == 1, "the first scenario's entry")
    (run,) = json.loads(project.hil("history", "runs", "-o", "json").stdout)
    assert run["state"] == "running"
    process.send_signal(signal.SIGKILL)
    project.end(process)
    (run,) = json.loads(project.hil("history", "runs", "-o", "json").stdout)
    assert (run["state"], run["states"]) == ("interrupted", {"as-stated": 1})


def test_an_index_is_made_again_from_histories_and_pruned(project) -> None:
    project.write(PLAN)
    assert project.hil("run", "test_plan.py", "--device", "two").code == 0
    index = project.folder / "reports/index.sqlite"
    index.unlink()
    missing = project.hil("history")
    assert not index.exists()
    assert (missing.code, "hil history import" in missing.stderr) == (2, True)
    taken = project.hil("history", "import")
    assert (taken.code, taken.stdout.endswith(": scenarios 1\n")) == (0, True)
    dry = project.hil("history", "prune", "--days", "0", "--dry-run")
    assert dry.stdout.startswith("would remove ")
    assert len(list((project.folder / "reports").glob("*/history.jsonl"))) > 0
    assert project.hil("history", "prune", "--days", "0").stdout.startswith("removed ")
    assert [path for path in (project.folder / "reports").glob("2*") if path.is_dir()] == []
    assert json.loads(project.hil("history", "runs", "-o", "json").stdout) == []
    assert not (project.folder / "reports/latest").is_symlink()


def test_an_index_that_cannot_be_had_costs_no_result(project) -> None:
    project.write(PLAN)
    run = project.hil("run", "test_plan.py", "--device", "two", "--store", "postgresql://x@127.0.0.1:1/x")
    assert run.code == 0
    assert "NOT INDEXED: " in run.stdout
    assert "later: hil history import " in run.stdout
    assert project.hil("history", "import", "reports").code == 0


def test_a_run_that_goes_on_is_left_out_of_an_import_and_is_known_from_its_start(project) -> None:
    project.write(SLOW.replace('@pytest.mark.hil_given(root="A")', "@pytest.mark.skip"))
    process = project.start("run", "test_plan.py", "--device", "two")
    index = project.folder / "reports/index.sqlite"
    wait_until(lambda: entered(index, "runs") == 1, "the entry of the run")
    taken = project.hil("history", "import")
    assert (taken.code, "left out: it still goes on" in taken.stderr) == (0, True)
    process.send_signal(signal.SIGKILL)
    project.end(process)
    (run,) = json.loads(project.hil("history", "runs", "-o", "json").stdout)
    assert run["state"] == "interrupted"

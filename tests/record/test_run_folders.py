"""The folders of runs: which one is new, which is held, which was cut off, and what `latest` leads to."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import InfrastructureError
from harness.judgement.records import RunStarted
from harness.record.history import History
from harness.record.runs import cut_off, histories, make_run_dir, new_run_dir, point_latest_at, read_run


def recorded(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or ("history.jsonl",):
        with History(folder / name) as history:
            history.add(RunStarted(run=folder.name, lab=name))
    return folder


def test_a_new_run_has_a_folder_of_its_own_by_time_and_process(tmp_path: Path) -> None:
    first = new_run_dir(tmp_path)
    assert not first.exists()
    assert re.fullmatch(rf"\d{{8}}-\d{{6}}-{os.getpid()}", first.name)
    first.mkdir()
    other = new_run_dir(tmp_path)
    assert other != first, "two runs of one process, be they in one second"


def test_reports_that_cannot_be_looked_at_are_told_when_they_are_made(tmp_path: Path) -> None:
    """A name that is too long is as unreadable as another's folder, and for root, too."""
    run = new_run_dir(tmp_path / ("x" * 300))
    with pytest.raises(InfrastructureError, match="cannot be made: File name too long"):
        make_run_dir(run)


def test_histories_are_read_one_after_the_other(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", "history-gw1.jsonl", "history-gw0.jsonl")
    (run / "notes.jsonl").write_text("no history")
    assert [path.name for path in histories(run)] == ["history-gw0.jsonl", "history-gw1.jsonl"]
    assert [r.lab for r in read_run(run) if isinstance(r, RunStarted)] == [
        "history-gw0.jsonl",
        "history-gw1.jsonl",
    ]


def test_only_a_run_that_nobody_records_and_nobody_judged_was_cut_off(tmp_path: Path) -> None:
    assert cut_off(tmp_path / "none") == []
    left = recorded(tmp_path / "left")
    judged = recorded(tmp_path / "judged")
    (judged / "results.json").write_text("{}")
    held = recorded(tmp_path / "held")
    descriptor = make_run_dir(held)
    (tmp_path / "empty").mkdir()
    (tmp_path / "README.md").write_text("what a run leaves")
    (tmp_path / "latest").symlink_to("left")
    assert cut_off(tmp_path) == [left]
    os.close(descriptor)
    assert cut_off(tmp_path) == [held, left]


def test_the_hold_ends_with_the_process_that_has_it(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run")
    script = (
        "import sys; from pathlib import Path; from harness.record.runs import make_run_dir\n"
        f"make_run_dir(Path({str(run)!r})); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert cut_off(tmp_path) == []
        process.kill()
    assert cut_off(tmp_path) == [run]


def test_several_processes_hold_one_run(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run")
    first, second = make_run_dir(run), make_run_dir(run)
    os.close(first)
    assert cut_off(tmp_path) == []
    os.close(second)
    assert cut_off(tmp_path) == [run]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(
        InfrastructureError, match="taken/run for the run cannot be made: Not a directory"
    ) as caught:
        make_run_dir(tmp_path / "taken" / "run")
    assert "--reports" in caught.value.hint


def test_latest_follows_the_newest_run_and_replaces_nothing_else(tmp_path: Path) -> None:
    first, second = recorded(tmp_path / "first"), recorded(tmp_path / "second")
    for run in (first, second):
        point_latest_at(run)
        assert (tmp_path / "latest").readlink() == Path(run.name)
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").symlink_to("gone")
    point_latest_at(first)
    assert (tmp_path / "latest").resolve() == first
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").write_text("mine")
    point_latest_at(second)
    assert (tmp_path / "latest").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "latest", "second"]

"""What runs are at, read from histories that grow under the reader."""

import json
import os
from pathlib import Path

from support.told_runs import Run

from harness.dashboard.live import LiveRuns
from harness.judgement.records import Record, to_json
from harness.record.runs import make_run_dir

ODD = """garbage
[]
{"kind": "scenario-started", "subject": "x"}
{"kind": "intent"}
{"kind": "run-started", "time": "late"}
"""


def lines_of(records: list[Record]) -> list[str]:
    return [json.dumps(to_json(record)) + "\n" for record in records]


def a_run() -> list[str]:
    run = Run()
    run.flash("plan.py::test_a", "one/card0")
    run.flash("plan.py::test_b", "two/card0")
    return lines_of(run.end())


def test_a_run_is_followed_line_by_line(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    held = make_run_dir(folder)
    live = LiveRuns(tmp_path)
    told = []
    with (folder / "history.jsonl").open("w") as file:
        for line in a_run():
            file.write(line)
            file.flush()
            (run,) = live.look()
            said = run.to_json()
            doing = said["doing"][0] if said["doing"] else {"scenario": "", "device": "", "operation": ""}
            step = (said["done"], doing["scenario"], doing["device"], doing["operation"])
            if not told or told[-1] != step:
                told.append(step)
    assert told == [
        (0, "", "", ""),
        (0, "plan.py::test_a", "one/card0", ""),
        (0, "plan.py::test_a", "one/card0", "flash"),
        (0, "plan.py::test_a", "one/card0", ""),
        (0, "plan.py::test_a", "one/card0", "reset"),
        (0, "plan.py::test_a", "one/card0", ""),
        (1, "", "", ""),
        (1, "plan.py::test_b", "two/card0", ""),
        (1, "plan.py::test_b", "two/card0", "flash"),
        (1, "plan.py::test_b", "two/card0", ""),
        (1, "plan.py::test_b", "two/card0", "reset"),
        (1, "plan.py::test_b", "two/card0", ""),
        (2, "", "", ""),
    ]
    os.close(held)


def test_half_a_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    held = make_run_dir(tmp_path / "run")
    live = LiveRuns(tmp_path)
    first, second = a_run()[:2]
    path = tmp_path / "run/history.jsonl"
    path.write_text(first + second[:20])
    assert live.look()[0].to_json()["doing"] == []
    with path.open("a") as file:
        file.write(second[20:])
    assert live.look()[0].to_json()["doing"][0]["scenario"] == "plan.py::test_a"
    os.close(held)


def test_only_what_somebody_records_is_running(tmp_path: Path) -> None:
    held = make_run_dir(tmp_path / "run")
    (tmp_path / "run/history.jsonl").write_text("".join(a_run()))
    (tmp_path / "latest").symlink_to("run")
    (tmp_path / "other").mkdir()
    live = LiveRuns(tmp_path)
    assert [run.folder.name for run in live.look()] == ["run"]
    os.close(held)
    assert live.look() == []


def test_each_worker_has_a_line_of_its_own(tmp_path: Path) -> None:
    held = make_run_dir(tmp_path / "run")
    lines = a_run()
    for worker in ("gw0", "gw1"):
        (tmp_path / f"run/history-{worker}.jsonl").write_text("".join(lines[:2]))
    (run,) = LiveRuns(tmp_path).look()
    assert len(run.to_json()["doing"]) == 2
    os.close(held)


def test_a_damaged_line_keeps_nobody_from_the_next(tmp_path: Path) -> None:
    held = make_run_dir(tmp_path / "run")
    lines = a_run()
    (tmp_path / "run/history.jsonl").write_text(lines[0] + ODD + lines[1])
    (run,) = LiveRuns(tmp_path).look()
    assert run.to_json()["doing"][0]["scenario"] == "plan.py::test_a"
    os.close(held)


def test_no_folder_is_no_run(tmp_path: Path) -> None:
    assert LiveRuns(tmp_path / "nowhere").look() == []

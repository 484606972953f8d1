"""The table of `make bench`: medians, ratios within a round, goals; nothing depends on how fast it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROJECT)


def run(*words: str, reports: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words, "--quick", "--reports", str(reports)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=100)


def test_a_limit_holds_for_the_median() -> None:
    from benchmarks.rows import Row, Samples

    times = Samples((9.0, 30.0, 10.0))
    assert (times.median, times.lowest, times.highest) == (10, 9, 30)
    assert Row("goal", "what", "ms", times, 10).met
    assert not Row("goal", "what", "ms", times, 9.9).met
    assert Row("goal", "what", "ms", times, 10).limit_text == "<= 10 ms"


def test_a_ratio_is_taken_round_by_round() -> None:
    from benchmarks.rows import Row, Samples

    disturbed = Row(
        "goal", "what", "ms", Samples((10.0, 100.0, 11.0)), 1.1, "ratio", "peer", Samples((10.0, 100.0, 10.0))
    )
    assert disturbed.ratio is not None
    assert disturbed.ratio.values == (1.0, 1.0, 1.1)
    assert disturbed.met
    assert disturbed.limit_text == "<= 1.1 x"
    single = Row("goal", "what", "ms", Samples((10.0, 30.0)), 1.1, "ratio", "peer", Samples((10.0,)))
    assert single.judged.median == 2.0
    assert not single.met


def test_acts_take_turns() -> None:
    from benchmarks.rows import in_turn

    done: list[str] = []
    first, second = in_turn((lambda: done.append("a"), lambda: done.append("b")), 2, warm_up=1)
    assert "".join(done) == "ababab"
    assert len(first.values) == len(second.values) == 2


def test_a_missed_goal_is_said_and_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.rows import Row, Samples
    from benchmarks.table import as_text, machine

    rows = [
        Row("slow", "what is slow", "ms", Samples((30.0, 31.0, 29.0)), 10, note="why"),
        Row("busy", "what was disturbed", "ms", Samples((30.0, 31.0, 9.0)), 10),
        Row("fast", "what is fast", "MiB", Samples((1.25,)), 10, peer="that", peer_result=Samples((2.5,))),
    ]
    slow, busy, fast = (
        " ".join(line.split()) for line in as_text(rows, machine(), machine()).splitlines()[2:5]
    )
    assert slow == "slow 30 ms 29..31 (3) <= 10 ms NOT MET"
    assert busy.endswith("NOT MET, lowest is")
    assert fast == "fast 1.25 MiB one run that: 2.5 MiB 0.50 <= 10 MiB met"


def test_an_area_is_measured_and_kept_as_json(tmp_path: Path) -> None:
    done = run("judging", "-o", "json", reports=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    [kept] = tmp_path.glob("benchmarks-*.json")
    assert json.loads(kept.read_text()) == document
    [row] = document["rows"]
    assert row["goal"] == "judge 10,000"
    assert row["limit"] == "<= 200 ms"
    assert set(row["result"]) == {"median", "lowest", "highest", "values"}
    assert document["machine"]["cores"] == len(os.sched_getaffinity(0))
    assert document["not_measured"] == []


def test_an_unknown_area_is_a_usage_error(tmp_path: Path) -> None:
    done = run("jugding", reports=tmp_path)
    assert done.returncode == 2
    assert "known: verify, flash" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("area", ["flash", "truth"])
def test_what_is_measured_over_ssh_works(tmp_path: Path, area: str) -> None:
    done = run(area, reports=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "NOT MEASURED" not in done.stderr

"""The wall clock set forwards and backwards amid a run: order, deadlines and verdicts stay as they are."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import paramiko
import pytest

from harness.hosts import connection
from harness.judgement.judge import judge
from harness.judgement.records import Claim, Completion, Evidence, Intent, RunEnded, RunStarted, Subject
from harness.record import History, read_history
from harness.record.clock import SteadyClock

assert connection.open_connection  # the module is what gives paramiko its clock

PROJECT = Path(__file__).resolve().parents[2]
HIL = Path(sys.executable).with_name("hil")

#: Put before everything else that a Python process imports: its wall clock jumps a few times a second, an
#: hour ahead and a day back; the monotonic clock is left alone, as by somebody who sets the time.
JUMPING = """
import atexit, os, time
_real, _began, _seen = time.time, time.monotonic(), set()
_jumps = (0.0, 3600.0, -86400.0, 7.0, -3600.0)
def _time():
    jump = _jumps[int((time.monotonic() - _began) / 0.3) % len(_jumps)]
    _seen.add(jump)
    return _real() + jump
time.time = _time
time.time_ns = lambda: int(_time() * 1e9)
@atexit.register
def _tell():
    with open(os.path.join(os.path.dirname(__file__), "jumps"), "a") as file:
        file.write(f"{len(_seen)}\\n")
"""


def test_numbers_are_the_order_whatever_the_clock_says(tmp_path: Path) -> None:
    card = Subject("card", "subcloud1/card0")
    times = itertools.cycle([1e9, 1e9 + 3600, 1e9 - 86400, 0.0])
    records = [
        RunStarted(run="r", lab="l"),
        Intent(operation="reset", subject=card),
        Claim(reporter="rsu", subject=card, statement={"result": "done"}, evidence=Evidence(""), intent=2),
        Completion(intent=2, how="returned"),
        RunEnded(),
    ]
    judged = []
    for name, clock in (("jumps", lambda: next(times)), ("steady", lambda: 1e9)):
        with History(tmp_path / f"{name}.jsonl", clock=clock) as history:
            for record in records:
                history.add(record)
        found = list(read_history(tmp_path / f"{name}.jsonl"))
        assert [record.seq for record in found] == [1, 2, 3, 4, 5]
        judged.append(judge(found))
    jumping, steady = judged
    assert [str(verdict) for verdict in jumping.verdicts] == [str(verdict) for verdict in steady.verdicts]
    assert [outcome.outcome for outcome in jumping.outcomes] == [
        outcome.outcome for outcome in steady.outcomes
    ]


def test_time_of_records_does_not_follow_a_clock_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report is late by what lies between two records: a jump would make it STALE, or never so."""
    began = time.time()
    with History(tmp_path / "history.jsonl", clock=SteadyClock()) as history:
        history.add(RunStarted(run="r", lab="l"))
        for jump in (3600.0, -86400.0):
            monkeypatch.setattr(time, "time", lambda jump=jump: began + jump)
            history.add(RunEnded())
    times = [record.time for record in read_history(tmp_path / "history.jsonl")]
    assert times == sorted(times)
    assert abs(times[0] - began) < 60 and times[-1] - times[0] < 60


def test_deadlines_of_ssh_do_not_go_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A login that takes longer than a tenth of a second while the clock is set ahead is not given up."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    peer, _ = listener.accept()
    hours = itertools.count()
    monkeypatch.setattr(time, "time", lambda: 1e9 + 3600.0 * next(hours))
    transport = paramiko.Transport(client)
    began = time.monotonic()
    try:
        transport.start_client(timeout=0.5)  # the peer says nothing
        assert time.monotonic() - began >= 0.4
    finally:
        transport.close()
        peer.close()
        listener.close()


@pytest.mark.timeout(240)
def test_run_on_a_machine_whose_clock_jumps_is_green(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(JUMPING)
    reports = tmp_path / "reports"
    done = subprocess.run(
        [
            *(str(HIL), "run", "testplans/regression/flash/test_reset.py"),
            *("testplans/regression/flash/test_interrupted.py", "--device", "subcloud1"),
            *("--reports", str(reports)),
        ],
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=220,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-2000:]}"
    (run,) = [path for path in reports.iterdir() if not path.is_symlink()]
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    times = [line["time"] for line in lines]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert "5" in (tmp_path / "jumps").read_text().split(), "the clock did not jump"
    assert times == sorted(times)
    assert times[-1] - times[0] < 220, "what lasted how long goes by no clock that is set"
    assert json.loads((run / "results.json").read_text())["as_stated"] is True

"""The harness killed in the middle of a run, its lab killed, a tool killed: nothing is left, and it is told.

`make storm` does the first 200 times. The instants are chosen by HIL_STORM_SEED, which a failure names.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from support.storm import Storm, instants, wait_for

SEED = int(os.environ.get("HIL_STORM_SEED", "1"))
KILLS = 2

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def storm(tmp_path: Path) -> Storm:
    return Storm(tmp_path, f"test-{os.getpid()}-{tmp_path.name}")


@pytest.mark.parametrize(("number", "after"), list(enumerate(instants(SEED, KILLS, 6.0))))
def test_killed_run_leaves_nothing_and_the_next_is_clean(storm: Storm, number: int, after: float) -> None:
    try:
        storm.strike(after)
        storm.judged_again()
        storm.assert_next_run_is_clean()
    except AssertionError as broken:
        raise AssertionError(
            f"HIL_STORM_SEED={SEED}, kill {number} after {after:.3f} s: {broken}"
        ) from broken


def test_run_whose_lab_is_killed_ends_as_a_failure_of_the_lab(storm: Storm) -> None:
    process = storm.start()
    assert wait_for(lambda: _recorded(storm, "completion") > 2, 60), storm.output()
    (lab,) = [pid for pid, words in storm.processes().items() if "harness.emulator.serve" in words]
    os.kill(lab, signal.SIGKILL)
    assert process.wait(120) == 3, storm.output()[-3000:]
    results = json.loads((storm.runs()[-1] / "results.json").read_text())
    states = {scenario["state"] for scenario in results["scenarios"]}
    assert "INFRA" in states
    # BLOCKED: a card whose lab died under it is quarantined.
    assert states <= {"INFRA", "BLOCKED", "as-stated", "NOT_APPLICABLE"}
    storm.assert_nothing_left(set())
    assert storm.judged_again() == 3


def _recorded(storm: Storm, kind: str) -> int:
    """Return how many records of a kind are in the history of the run that goes on."""
    files = [file for run in storm.runs() for file in run.glob("history*.jsonl")]
    return sum(file.read_text().count(f'"kind":"{kind}"') for file in files)

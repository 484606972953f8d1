"""The card part of `make regression` after set-up, as a user starts it."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.rows import Row, Samples, seconds_of

HIL = str(Path(sys.executable).with_name("hil"))
PROJECT = Path(__file__).parents[1]
#: Part of the regression plans -> only what flashes and resets cards.
CARD_PART = "testplans/regression/flash"


def measure(rounds: int) -> list[Row]:
    """Return the row; the peer is the processor time that the run took on both cores together."""
    wall: list[float] = []
    processor: list[float] = []
    scenarios = 0
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as reports:
            command = [HIL, "run", CARD_PART, "--reports", reports, "-o", "json"]
            results = Path(reports, "out.json")

            def run(command: list[str] = command, results: Path = results) -> None:
                with results.open("wb") as out:
                    subprocess.run(command, cwd=PROJECT, check=True, stdout=out, stderr=subprocess.DEVNULL)

            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            wall.append(seconds_of(run))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            processor.append(used)
            scenarios = len(json.loads(results.read_text(encoding="utf-8"))["scenarios"])
    return [
        Row(
            "regression, cards",
            f"`hil run {CARD_PART}`: {scenarios} scenarios, one after the other",
            "s",
            Samples(tuple(wall)),
            60,
            peer="its processor time",
            peer_result=Samples(tuple(processor)),
        )
    ]

"""What a disturbed push costs beside the same push and a bare restart; whether a sweep works or waits."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.rows import Row, Samples
from harness.scenarios.push_points import default_points
from harness.scenarios.push_sweep import PushSweep
from harness.scenarios.push_trials import Plan
from harness.scenarios.sweep import Sweep
from harness.scenarios.sweep_results import LaneResult, SweepResult

#: Of each kind one that needs no Docker engine: one that gives up, one that goes on, a program, and the
#: one that reads back what it has pushed.
CLIENTS = ("oci-once", "oci-renew", "skopeo-retry", "verified-push")
_LAYER = 1 << 20
_PLAN = Plan(("restart", "rotate-keys"), default_points(_LAYER), layer_size=_LAYER)


def measure(rounds: int) -> list[Row]:
    """Return a row for each client, and one for the pace of the whole sweep; clients one after the other."""
    swept, processor = [], []
    for _ in range(rounds):
        before = os.times()
        swept.append(_sweep())
        # What the registries and programs took is among it: all have ended.
        processor.append(sum(os.times()[:4]) - sum(before[:4]))
    lanes = [lane for each in swept for lane in each.lanes]
    costs = [_cost(client, [lane for lane in lanes if lane.lane == client]) for client in CLIENTS]
    return [*costs, _pace(swept, processor)]


def _sweep() -> SweepResult:
    with TemporaryDirectory() as folder:
        result = Sweep(PushSweep(CLIENTS, _PLAN, lambda: None), Path(folder), workers=1).run()
    for lane in result.lanes:
        assert not lane.blocked and not lane.failed, lane.blocked or lane.failed
    return result


def _cost(client: str, lanes: list[LaneResult]) -> Row:
    """Return what the disturbed pushes of a client took, what it slept between its own tries apart."""
    disturbed = [(t.pushed - t.waited, lane) for lane in lanes for t in lane.trials if t.reached]
    return Row(
        f"fault trial, {client}",
        "a push of 4 MiB that is disturbed at some point of it; the client's own waits are counted apart",
        "ms",
        Samples(tuple(seconds * 1000 for seconds, _ in disturbed)),
        1.5,
        of="ratio",
        peer="the push and a restart",
        peer_result=Samples(tuple((lane.push + lane.restart) * 1000 for _, lane in disturbed)),
    )


def _pace(swept: list[SweepResult], processor: list[float]) -> Row:
    counts = [sum(trial.reached for trial in each.trials) for each in swept]
    wall = Samples(tuple(1000 * each.seconds / count for each, count in zip(swept, counts, strict=True)))
    busy = Samples(tuple(1000 * took / count for took, count in zip(processor, counts, strict=True)))
    return Row(
        "sweep, pace",
        "a trial of a whole sweep, with preparing, truth and judging; at twice its processor time it would "
        "be half asleep",
        "ms",
        wall,
        2,
        of="ratio",
        peer="its processor time",
        peer_result=busy,
        note=f"{60_000 / wall.median:.0f} trials a minute, one client at a time",
    )

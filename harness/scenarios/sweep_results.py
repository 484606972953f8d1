"""What a sweep gives: its trials, held to the truth, what was blocked, and the exit code that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import EXIT_INTERRUPTED, worst_exit_code
from harness.judgement.model import VerdictKind

#: Outcome and verdict of a trial whose push did not come to the point: nothing was tested by it.
NOT_REACHED = "NOT_REACHED"
#: Clients that are known to say done whatever happened: that they do is what a sweep shows.
WEAK = frozenset({"docker-naive", "sysinv-download"})


@dataclass(frozen=True, slots=True)
class Trial:
    """One push of one client, disturbed at one point.

    ``point``: as asked for, such as ``before:blob-put#last``; ``at``: with its request counted.
    ``reported``: the client's result; ``truth``: the state of the image by API and store. ``outcome``,
    ``verdict``: the judge's words, or :data:`NOT_REACHED`. ``others``: the verdict on each other reporter.
    ``seconds``: of the whole trial; ``pushed``: of the push alone; ``waited``: what the client slept.
    ``at_first``: where the action has the image pushed again, what was reported of the push that it struck;
    all the rest is then about the next one.
    """

    client: str
    point: str
    action: str
    reported: str = ""
    truth: str = ""
    outcome: str = NOT_REACHED
    verdict: str = NOT_REACHED
    seconds: float = 0.0
    at: str = ""
    pushed: float = 0.0
    waited: float = 0.0
    others: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    at_first: str = ""

    @property
    def reached(self) -> bool:
        """Whether the fault struck, so that the trial says something."""
        return self.outcome != NOT_REACHED

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "client": self.client,
            "point": self.point,
            "action": self.action,
            "reported": self.reported,
            "truth": self.truth,
            "outcome": self.outcome,
            "verdict": self.verdict,
            "seconds": round(self.seconds, 3),
            "waited": round(self.waited, 3),
            "at": self.at,
            "others": dict(self.others),
            "reason": self.reason,
            "at_first": self.at_first,
        }


@dataclass(frozen=True, slots=True)
class LaneResult:
    """All trials of one client. ``blocked`` and ``hint``: what kept it from being used; ``failed``: what
    the lab failed in. ``push`` and ``restart``: seconds of the push without a fault, and of a bare restart.
    """

    client: str
    trials: tuple[Trial, ...] = ()
    blocked: str = ""
    failed: str = ""
    hint: str = ""
    push: float = 0.0
    restart: float = 0.0

    @property
    def costs(self) -> list[float]:
        """What each disturbed push took, its own waits apart, over the same push and one bare restart."""
        bare = self.push + self.restart
        return [(each.pushed - each.waited) / bare for each in self.trials if each.reached and bare > 0]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A whole sweep. ``asked``: points that were named, and did not come by default."""

    lanes: tuple[LaneResult, ...]
    seconds: float
    interrupted: bool = False
    asked: tuple[str, ...] = ()

    @property
    def trials(self) -> list[Trial]:
        """All trials of all clients."""
        return [trial for lane in self.lanes for trial in lane.trials]

    def exit_code(self, *, allow_blocked: bool = False) -> int:
        """Return how `hil sweep` ends.

        A sweep is an experiment: that a client known as weak reports falsely is its result. Any other that
        reports done of what is not there is a finding, as is a named point that no push came to.
        """
        if self.interrupted:
            return EXIT_INTERRUPTED
        lied = [t for t in self.trials if t.verdict == VerdictKind.FALSE_SUCCESS and t.client not in WEAK]
        came = {trial.point for trial in self.trials if trial.reached}
        tried = {trial.point for trial in self.trials}
        untested = [point for point in self.asked if point in tried and point not in came]
        codes = {1} if lied or untested else set()
        blocked = any(lane.blocked for lane in self.lanes) and not allow_blocked
        nothing = not any(trial.reached for trial in self.trials)
        if blocked or any(lane.failed for lane in self.lanes) or nothing:
            codes.add(3)
        return worst_exit_code(codes)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "schema": "hil-sweep/1",
            "trials": [trial.to_json() for trial in self.trials],
            "clients": {
                lane.client: {
                    "blocked": lane.blocked,
                    "failed": lane.failed,
                    "hint": lane.hint,
                    "push_seconds": round(lane.push, 3),
                    "restart_seconds": round(lane.restart, 3),
                }
                for lane in self.lanes
            },
            "seconds": round(self.seconds, 1),
            "interrupted": self.interrupted,
        }

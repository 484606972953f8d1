"""What a sweep gives: its trials, held to the truth, what was blocked, and the exit code that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import EXIT_INTERRUPTED, worst_exit_code
from harness.judgement.model import Outcome, RunState, VerdictKind

#: Outcome and verdict of a trial whose operation did not come to the point: nothing was tested by it.
NOT_REACHED = "NOT_REACHED"
#: Exit code of a sweep for a trial that a run state kept from its end.
_EXIT_OF_STATE = {RunState.INFRA: 3, RunState.BLOCKED: 3, RunState.REFUSED: 4, RunState.BUG: 5}


@dataclass(frozen=True, slots=True)
class Kind:
    """What is swept, in words.

    ``name``: the operation. ``lane``: what one lane is, also the key in JSON. ``of``: key in JSON of what the
    operation is done with; empty where a trial says nothing of that. ``weak``: lanes, or reporters, that are
    known to say done whatever happened. ``lies``: verdict -> what a lane did then, ``{n}``: how often.
    ``good``: the truths after which nothing is broken; empty: any. ``landed``: how many of the trials were
    as intended, with ``{n}``. ``waits``: what the lanes still do when they are interrupted. ``whole``: a
    trial is judged by all that anybody said in it. ``stated``: action -> reporter -> what it says then by
    documents although nothing has a defect; any other verdict than these, MATCH and UNVERIFIABLE is a
    finding. None: that is not known.
    """

    name: str
    lane: str
    of: str
    weak: frozenset[str]
    lies: Mapping[VerdictKind, str]
    good: frozenset[str]
    landed: str
    waits: str
    whole: bool = False
    stated: Mapping[str, Mapping[str, frozenset[VerdictKind]]] | None = None


PUSH = Kind(
    name="push",
    lane="client",
    of="",
    weak=frozenset({"docker-naive", "sysinv-download"}),
    lies={
        VerdictKind.FALSE_SUCCESS: "reported done {n} while the image was lost",
        VerdictKind.FALSE_FAILURE: "reported failed {n} while the image was there",
        VerdictKind.LOST: "said nothing {n} by its deadline",
        VerdictKind.MISREPORT: "named a wrong digest {n}",
        VerdictKind.CONTRADICTION: "contradicted itself {n}",
        VerdictKind.STALE: "reported done {n} what was not there any more later",
        VerdictKind.UNVERIFIABLE: "could not be held to the truth {n}",
    },
    good=frozenset(),
    landed="the image landed in {n}",
    waits="the pushes under way end first, at their deadlines (2 min) at the latest, and what disturbs them "
    "is undone",
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One operation of one lane, disturbed at one point.

    ``lane``: a push client, or a card. ``point``: as asked for, such as ``before:blob-put#last``; ``at``:
    with its request counted. ``reported``: the reporter's result; ``truth``: the state of the subject as it
    was read back. ``outcome``, ``verdict``: the judge's words, a run state, or :data:`NOT_REACHED`.
    ``others``: the verdict on each other reporter. ``seconds``: of the whole trial; ``pushed``: of the
    operation alone; ``waited``: what a client slept. ``at_first``: where the action has the operation done
    again, what was reported of the one that it struck; all the rest is then about the next one. ``of``: what
    the operation was done with, such as an image. ``by``: who ``reported``, where that is not the lane.
    """

    lane: str
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
    of: str = ""
    by: str = ""

    @property
    def reached(self) -> bool:
        """Whether the fault struck and the trial came to its end, so that it says something."""
        return self.outcome in Outcome.__members__

    def unstated(self, kind: Kind) -> dict[str, str]:
        """Return reporter -> verdict of what was said that is neither so nor stated by documents."""
        if kind.stated is None or not self.reached:
            return {}
        stated = kind.stated.get(self.action, {})
        said = {self.by or self.lane: self.verdict, **self.others}
        mild = (VerdictKind.MATCH.value, VerdictKind.UNVERIFIABLE.value)
        return {
            who: word
            for who, word in said.items()
            if word not in mild and word not in {each.value for each in stated.get(who, ())}
        }

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from the other trials of its lane, repetitions apart."""
        return self.of, self.point, self.action

    def to_json(self, kind: Kind) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            kind.lane: self.lane,
            **({kind.of: self.of} if kind.of else {}),
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
    """All trials of one lane.

    ``blocked`` and ``hint``: what kept it from being used; ``failed``: what the lab failed in. ``push`` and
    ``restart``: seconds of the operation without a fault, and of a bare restart. ``points``: those that the
    operation passes, by what it is done with. ``left`` trials were left out, and ``left_why``.
    ``excluded``: what may not be done to this lane's subject, by its permits.
    """

    lane: str
    trials: tuple[Trial, ...] = ()
    blocked: str = ""
    failed: str = ""
    hint: str = ""
    push: float = 0.0
    restart: float = 0.0
    points: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left: int = 0
    left_why: str = ""
    excluded: str = ""

    @property
    def costs(self) -> list[float]:
        """What each disturbed operation took, its own waits apart, over the same one and one bare restart."""
        bare = self.push + self.restart
        if not self.restart:
            return []
        return [(each.pushed - each.waited) / bare for each in self.trials if each.reached and bare > 0]

    def to_json(self) -> dict[str, Any]:
        """Return what is to be said of the lane itself."""
        passed = {"points": {of: list(points) for of, points in self.points.items()}} if self.points else {}
        left = {"left": self.left, "left_why": self.left_why} if self.left else {}
        return {
            "blocked": self.blocked,
            "failed": self.failed,
            "hint": self.hint,
            "push_seconds": round(self.push, 3),
            "restart_seconds": round(self.restart, 3),
            **passed,
            **left,
            **({"excluded": self.excluded} if self.excluded else {}),
        }


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A whole sweep. ``asked``: points that were named, and did not come by default.

    ``earlier``: how many of its trials were made before it was cut off.
    """

    kind: Kind
    lanes: tuple[LaneResult, ...]
    seconds: float
    interrupted: bool = False
    asked: tuple[str, ...] = ()
    earlier: int = 0

    @property
    def trials(self) -> list[Trial]:
        """All trials of all lanes."""
        return [trial for lane in self.lanes for trial in lane.trials]

    @property
    def broken(self) -> list[Trial]:
        """The trials that left their subject as it may never be."""
        good = self.kind.good
        return [trial for trial in self.trials if good and trial.reached and trial.truth not in good]

    @property
    def unstated(self) -> list[Trial]:
        """The trials in which something was said that is neither so nor stated by documents."""
        return [trial for trial in self.trials if trial.unstated(self.kind)]

    def exit_code(self, *, allow_blocked: bool = False) -> int:
        """Return how `hil sweep` ends.

        A sweep is an experiment: that a lane known as weak reports falsely is its result. Any other that
        reports done of what is not there is a finding, as is a subject that was left broken, and a named
        point that nothing came to.
        """
        if self.interrupted:
            return EXIT_INTERRUPTED
        false = (t for t in self.trials if t.verdict == VerdictKind.FALSE_SUCCESS)
        lied = [trial for trial in false if (trial.by or trial.lane) not in self.kind.weak]
        came = {trial.point for trial in self.trials if trial.reached}
        tried = {trial.point for trial in self.trials}
        untested = [point for point in self.asked if point in tried and point not in came]
        codes = {1} if lied or untested or self.broken or self.unstated else set()
        codes |= {_EXIT_OF_STATE[RunState(t.outcome)] for t in self.trials if t.outcome in _EXIT_OF_STATE}
        blocked = any(lane.blocked for lane in self.lanes) and not allow_blocked
        nothing = not any(trial.reached for trial in self.trials)
        if blocked or any(lane.failed for lane in self.lanes) or nothing:
            codes.add(3)
        return worst_exit_code(codes)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "schema": "hil-sweep/1",
            "operation": self.kind.name,
            "trials": [trial.to_json(self.kind) for trial in self.trials],
            f"{self.kind.lane}s": {lane.lane: lane.to_json() for lane in self.lanes},
            "seconds": round(self.seconds, 1),
            "interrupted": self.interrupted,
        }

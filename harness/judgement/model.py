"""Outcome, verdict and run state: the three axes on which a step is judged, and their precedence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from harness.judgement.records import Subject


class Outcome(str, Enum):
    """Judges the operation. Listed worst first; the order is the published precedence."""

    BREACH = "BREACH"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    AS_INTENDED = "AS_INTENDED"


class VerdictKind(str, Enum):
    """Judges a report. Listed worst first; the order is the published precedence."""

    FALSE_SUCCESS = "FALSE_SUCCESS"
    LOST = "LOST"
    FALSE_FAILURE = "FALSE_FAILURE"
    NOT_ATTEMPTED = "NOT_ATTEMPTED"
    UNKNOWN_AS_VALUE = "UNKNOWN_AS_VALUE"
    CONTRADICTION = "CONTRADICTION"
    MISREPORT = "MISREPORT"
    STALE = "STALE"
    UNVERIFIABLE = "UNVERIFIABLE"
    MATCH = "MATCH"


class RunState(str, Enum):
    """Apart from outcome and verdict: why a scenario gave none. None of them is a plain skip."""

    INFRA = "INFRA"
    BLOCKED = "BLOCKED"
    REFUSED = "REFUSED"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    BUG = "BUG"


#: Position in the published precedence; 0 is the worst.
OUTCOME_RANK: dict[Outcome, int] = {outcome: rank for rank, outcome in enumerate(Outcome)}
VERDICT_RANK: dict[VerdictKind, int] = {kind: rank for rank, kind in enumerate(VerdictKind)}


def worst_outcome(outcomes: list[Outcome]) -> Outcome:
    """Return the outcome that stands for all of ``outcomes``; UNKNOWN for none at all."""
    return min(outcomes, key=OUTCOME_RANK.__getitem__) if outcomes else Outcome.UNKNOWN


def worst_verdict(kinds: list[VerdictKind]) -> VerdictKind:
    """Return the verdict that stands for all of ``kinds``; UNVERIFIABLE for none at all."""
    return min(kinds, key=VERDICT_RANK.__getitem__) if kinds else VerdictKind.UNVERIFIABLE


class Verdict(NamedTuple):
    """One report held to the truth.

    ``claimed``, ``truth`` and ``how_read`` are prose for people; ``records`` are the sequence numbers
    of the claim, the observations and the intent that the verdict rests on. ``claims``: the statements,
    one by one, where the verdict rests on more than one.
    """

    kind: VerdictKind
    checker: str
    reporter: str
    subject: Subject
    claimed: str
    truth: str
    how_read: str
    intent: int | None = None
    records: tuple[int, ...] = ()
    claims: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.kind.value}: {self.reporter} claimed: {self.claimed}; "
            f"true: {self.truth}; read: {self.how_read}"
        )


class OutcomeOf(NamedTuple):
    """How one intent turned out, and why the checker says so."""

    outcome: Outcome
    intent: int
    subject: Subject
    reason: str
    records: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a scenario states: the outcome of its operations and the verdict per reporter.

    A reporter that is not listed is expected to be MATCH. ``outcome`` is the worst of all intents.
    """

    outcome: Outcome = Outcome.AS_INTENDED
    verdicts: Mapping[str, VerdictKind] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that :meth:`from_json` reads."""
        return {
            "outcome": self.outcome.value,
            "verdicts": {name: kind.value for name, kind in self.verdicts.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Expectation:
        """Return the expectation; :raises ValueError: an unknown outcome or verdict."""
        return cls(
            Outcome(data.get("outcome", Outcome.AS_INTENDED.value)),
            {str(k): VerdictKind(v) for k, v in data.get("verdicts", {}).items()},
        )

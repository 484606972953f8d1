"""Which scenarios notice which known defect, and which raise a false alarm: the result of a qualification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.errors import EXIT_INTERRUPTED, worst_exit_code

#: Kind of a defect -> the fixture that a scenario asks for where it concerns that kind.
CONCERNS: Mapping[str, str] = {
    "system": "system",
    "cloud": "cloud",
    "card": "card",
    "tool": "card",
    "registry": "registry",
    "client": "registry",
}
#: Ways for a scenario to give no result; none of them detects anything.
NO_RESULT = ("INFRA", "BLOCKED", "REFUSED", "BUG", "interrupted")

Status = Literal["detected", "missed", "blocked", "not-tried"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One scenario of one trial. ``state``: as in the results of a run. ``unstated``: the outcome and the
    verdicts that it found and does not state; ``reasons``: why it is not as stated, or gave no result."""

    scenario: str
    state: str
    unstated: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def shows(self, predicted: str) -> bool:
        """Whether it came to its end and found what a defect is predicted to show."""
        return self.state not in NO_RESULT and predicted in self.unstated

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; :meth:`from_json` takes it back."""
        return {
            "scenario": self.scenario,
            "state": self.state,
            "unstated": list(self.unstated),
            "reasons": list(self.reasons),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Seen:
        """Return what :meth:`to_json` wrote."""
        return cls(data["scenario"], data["state"], tuple(data["unstated"]), tuple(data["reasons"]))


@dataclass(frozen=True, slots=True)
class Trial:
    """The scenarios run once, with at most one defect. ``trouble``: why they could not be run."""

    name: str
    seen: tuple[Seen, ...] = ()
    trouble: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data; :meth:`from_json` takes it back."""
        return {
            "trial": self.name,
            "seen": [each.to_json() for each in self.seen],
            "trouble": self.trouble,
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trial:
        """Return what :meth:`to_json` wrote."""
        seen = tuple(map(Seen.from_json, data["seen"]))
        return cls(data["trial"], seen, data["trouble"], data["seconds"])


@dataclass(frozen=True, slots=True)
class Row:
    """One defect of the matrix. ``trial``: None where it was not tried, since the run was interrupted.

    ``beside``: the trial of the defects without which it cannot show, and without it; None: it needs none.
    """

    name: str
    kind: str
    reference: str
    predicts: str
    trial: Trial | None
    beside: Trial | None = None

    @property
    def detected_by(self) -> list[str]:
        """The scenarios that found what the defect is predicted to show, and do not find it without it."""
        others = self.beside.seen if self.beside is not None else ()
        anyway = {each.scenario for each in others if self.predicts in each.unstated}
        return [s.scenario for s in self._seen if s.shows(self.predicts) and s.scenario not in anyway]

    @property
    def status(self) -> Status:
        """``blocked``: nothing detected it, and not all of what concerns it gave a result."""
        if self.trial is None:
            return "not-tried"
        if self.detected_by:
            return "detected"
        without = not self._seen or any(each.state in NO_RESULT for each in self._seen)
        return "blocked" if without or self.trial.trouble else "missed"

    @property
    def _seen(self) -> Sequence[Seen]:
        return self.trial.seen if self.trial is not None else ()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        found = {each.scenario: list(each.unstated) for each in self._seen if each.unstated}
        return {
            "id": self.name,
            "kind": self.kind,
            "reference": self.reference,
            "predicts": self.predicts,
            "status": self.status,
            "detected_by": self.detected_by,
            "verdicts": found,
            "scenarios": len(self._seen),
            "trouble": self.trial.trouble if self.trial is not None else "not tried",
        }


@dataclass(frozen=True, slots=True)
class KillMatrix:
    """A whole qualification. ``corrected``: the trials without any defect."""

    rows: tuple[Row, ...]
    corrected: tuple[Trial, ...]
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def false_alarms(self) -> list[Seen]:
        """The scenarios that diverge although nothing is wrong."""
        return [s for trial in self.corrected for s in trial.seen if s.state == "not-as-stated"]

    @property
    def without_result(self) -> list[Seen]:
        """The scenarios that gave no result although nothing is wrong."""
        return [s for trial in self.corrected for s in trial.seen if s.state in NO_RESULT]

    @property
    def troubles(self) -> list[str]:
        """Why trials without a defect could not be run."""
        return [trial.trouble for trial in self.corrected if trial.trouble]

    def rows_of(self, status: Status) -> list[Row]:
        """The defects that came out so."""
        return [row for row in self.rows if row.status == status]

    @property
    def exit_code(self) -> int:
        """1: a defect is missed, or something diverges without any; 3: something could not be tried."""
        if self.interrupted:
            return EXIT_INTERRUPTED
        codes = {1} if self.rows_of("missed") or self.false_alarms else set()
        untried = self.rows_of("blocked") or self.rows_of("not-tried")
        if untried or self.without_result or self.troubles:
            codes.add(3)
        return worst_exit_code(codes)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        alarms = [
            {"scenario": each.scenario, "unstated": list(each.unstated), "reasons": list(each.reasons)}
            for each in self.false_alarms
        ]
        return {
            "schema": "hil-qualify/1",
            "kill_matrix": {
                "defects": [row.to_json() for row in self.rows],
                "false_alarms": alarms,
            },
            "without_result": [each.to_json() for each in self.without_result],
            "troubles": self.troubles,
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 1),
        }

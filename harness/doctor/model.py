"""What a look at a lab found: its parts, each with checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness.health.checks import Check, Grade, ok, worst

Kind = Literal["machine", "host", "card", "registry", "controller"]
SCHEMA: Final = "hil-doctor/1"
#: The check that tells a card's kept health, where that is not good.
HEALTH: Final = "health"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a lab. ``health`` and ``lease``: of a card, where they are kept; else empty."""

    kind: Kind
    name: str
    checks: tuple[Check, ...]
    health: str = ""
    lease: str = ""

    @property
    def grade(self) -> Grade:
        """The worst of its checks."""
        return worst(self.checks)

    @property
    def title(self) -> str:
        """What it is, in words."""
        return "this machine" if self.kind == "machine" else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All parts of a lab at one moment."""

    lab: str
    parts: tuple[Part, ...]

    @property
    def grade(self) -> Grade:
        """The worst of its parts."""
        return worst(check for part in self.parts for check in part.checks)

    def count(self, grade: Grade) -> int:
        """Return how many checks have ``grade``."""
        return sum(check.grade is grade for part in self.parts for check in part.checks)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data (docs/json.md)."""
        return {
            "schema": SCHEMA,
            "lab": self.lab,
            "grade": self.grade.value,
            "parts": [
                {
                    "kind": part.kind,
                    "name": part.name,
                    "grade": part.grade.value,
                    "health": part.health,
                    "lease": part.lease,
                    "checks": [_check_json(check) for check in part.checks],
                }
                for part in self.parts
            ],
        }


def _check_json(check: Check) -> dict[str, str]:
    return {
        "name": check.name,
        "grade": check.grade.value,
        "finding": check.finding,
        "hint": check.hint,
    }


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed of a part since the look before: ``what`` is a check, or its health.

    ``before`` is empty where it was not there.
    """

    part: Part
    what: str
    before: str
    after: str
    finding: str
    hint: str

    def to_json(self) -> dict[str, str]:
        """Return it as plain data (docs/json.md)."""
        return {
            "kind": self.part.kind,
            "name": self.part.name,
            "what": self.what,
            "before": self.before,
            "after": self.after,
            "finding": self.finding,
            "hint": self.hint,
        }


def differences(before: Diagnosis | None, now: Diagnosis) -> Iterable[Difference]:
    """Yield what changed; without a look before, whatever is not ok, and not good."""
    earlier = {(part.kind, part.name): part for part in (before.parts if before else ())}
    for part in now.parts:
        known = earlier.get((part.kind, part.name))
        grades = {check.name: check.grade.value for check in (known.checks if known else ())}
        of_health = next((check for check in part.checks if check.name == HEALTH), ok(HEALTH, ""))
        for check in part.checks:
            if check is of_health:
                continue  # told by its state
            was = grades.get(check.name, "ok" if before is None else "")
            if was != check.grade.value:
                yield Difference(part, check.name, was, check.grade.value, check.finding, check.hint)
        health = known.health if known else "good"
        if part.health and part.health != health:
            yield Difference(part, HEALTH, health, part.health, of_health.finding, of_health.hint)

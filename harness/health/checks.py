"""What a check found: its name, how bad that is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from harness.errors import HarnessError


class Grade(str, Enum):
    """How bad a finding is. ``bad``: what needs this does not work; ``warn``: it works, and is in doubt."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Check:
    """One check. ``finding``: what was found, in words; ``hint``: a command or a key of the inventory.

    Whatever is bad has a hint.
    """

    name: str
    grade: Grade
    finding: str
    hint: str = ""


_ORDER: Final = (Grade.BAD, Grade.WARN, Grade.OK)
_ASK: Final = "See the host's console and logs; then look again: hil doctor"


def worst(checks: Iterable[Check]) -> Grade:
    """Return the worst grade among ``checks``; ok where there are none."""
    found = {check.grade for check in checks}
    return next((grade for grade in _ORDER if grade in found), Grade.OK)


def ok(name: str, finding: str, hint: str = "") -> Check:
    """Return a check that found nothing wrong. ``hint``: what could be better."""
    return Check(name, Grade.OK, finding, hint)


def warn(name: str, finding: str, hint: str) -> Check:
    """Return a check that leaves a doubt."""
    return Check(name, Grade.WARN, finding, hint)


def bad(name: str, finding: str, hint: str) -> Check:
    """Return a check that found what does not work."""
    return Check(name, Grade.BAD, finding, hint)


def failed(name: str, error: HarnessError | OSError) -> Check:
    """Return the check that could not be made, for ``error``."""
    if isinstance(error, HarnessError):
        return bad(name, error.message, error.hint or _ASK)
    return bad(name, error.strerror or str(error), _ASK)

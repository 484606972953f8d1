"""What a look at a lab found, and what changed since the one before."""

from __future__ import annotations

import pytest

from harness.cli.doctor_text import page
from harness.doctor.model import Diagnosis, Part, differences
from harness.health.checks import Check, Grade, bad, ok, warn, worst

WELL = Part("card", "one/card0", (ok("idle", "no update runs"), ok("wear", "1 update")), health="good")
ILL = Part("card", "one/card0", (ok("idle", "no update runs"), bad("card", "gone", "look")), health="suspect")


def diagnosis(*parts: Part) -> Diagnosis:
    return Diagnosis("small", parts)


def steps(before: Diagnosis | None, now: Diagnosis) -> list[tuple[str, str, str]]:
    return [(d.what, d.before, d.after) for d in differences(before, now)]


def test_the_first_look_tells_what_is_not_well() -> None:
    assert steps(None, diagnosis(WELL)) == []
    assert steps(None, diagnosis(ILL)) == [("card", "ok", "bad"), ("health", "good", "suspect")]


def test_later_looks_tell_what_changed_and_nothing_else() -> None:
    assert steps(diagnosis(ILL), diagnosis(ILL)) == []
    assert steps(diagnosis(WELL), diagnosis(ILL)) == [("card", "", "bad"), ("health", "good", "suspect")]
    assert steps(diagnosis(ILL), diagnosis(WELL)) == [("wear", "", "ok"), ("health", "suspect", "good")]


@pytest.mark.parametrize(
    ("checks", "grade"),
    [
        ((), Grade.OK),
        ((ok("a", ""),), Grade.OK),
        ((ok("a", ""), warn("b", "", "h")), Grade.WARN),
        ((bad("a", "", "h"), warn("b", "", "h"), ok("c", "")), Grade.BAD),
    ],
)
def test_the_worst_decides(checks: tuple[Check, ...], grade: Grade) -> None:
    assert worst(checks) is grade
    assert diagnosis(WELL, Part("host", "one", checks)).grade is grade


def test_the_health_of_a_card_is_not_taken_for_the_grade_of_its_checks() -> None:
    """A bad check of a card that is kept as good: both words stand in one line."""
    gone = Part("card", "one/card0", (bad("card", "no card", "look"),), health="good")
    first, *_ = page(diagnosis(gone))
    assert first.split() == ["bad", "card", "one/card0", "health:", "good"]

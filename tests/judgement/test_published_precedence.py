"""The order of precedence is the published one, and no worse word is hidden by a milder one."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judgement.model import Outcome, RunState, VerdictKind, worst_outcome, worst_verdict

DOCUMENT = Path(__file__).parents[2] / "docs" / "verdicts.md"


def words_of_table(heading: str) -> list[str]:
    """Return the first column of the first table below a heading of docs/verdicts.md."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([A-Z_]+)` \|", section, re.MULTILINE)


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("Outcomes, worst first", Outcome),
        ("Verdicts, worst first", VerdictKind),
        ("Run states", RunState),
    ],
)
def test_the_published_table_is_the_code(heading, words) -> None:
    assert words_of_table(heading) == [word.value for word in words]


@pytest.mark.parametrize("worst", ["FALSE_SUCCESS", "LOST", "FALSE_FAILURE"])
def test_wrong_reports_of_an_operation_are_worse_than_wrong_values(worst) -> None:
    for milder in ("UNKNOWN_AS_VALUE", "CONTRADICTION", "MISREPORT", "STALE", "UNVERIFIABLE", "MATCH"):
        assert worst_verdict([VerdictKind(milder), VerdictKind(worst)]).value == worst


@given(st.lists(st.sampled_from(VerdictKind), min_size=1))
def test_a_worse_verdict_is_never_hidden(kinds) -> None:
    published = words_of_table("Verdicts, worst first")
    worst = worst_verdict(kinds)
    assert worst in kinds
    assert not any(published.index(kind.value) < published.index(worst.value) for kind in kinds)


@given(st.lists(st.sampled_from(Outcome), min_size=1))
def test_a_worse_outcome_is_never_hidden(outcomes) -> None:
    published = words_of_table("Outcomes, worst first")
    worst = worst_outcome(outcomes)
    assert worst in outcomes
    assert not any(published.index(o.value) < published.index(worst.value) for o in outcomes)


def test_nothing_at_all_is_neither_good_nor_bad() -> None:
    assert worst_outcome([]) is Outcome.UNKNOWN
    assert worst_verdict([]) is VerdictKind.UNVERIFIABLE

"""Requirements: from each to the scenarios that prove it, with their last results, and back."""

from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.scenarios.requirements import UNKNOWN, Last, cell_of, load_requirements, trace

TEXTS = {"R-1": "A card starts.", "R-2": "A card ends.", "R-3": "Nobody proves it."}
CLAIMED = {
    "a.py::test_a[one/card0]": ("R-1", "R-2"),
    "a.py::test_a[two/card0]": ("R-1", "R-2"),
    "b.scenario.yaml::b": ("R-2",),
    "c.py::test_c": (),
}
LAST = {
    "a.py::test_a[one/card0]": Last("as-stated", "run 1", 1.0),
    "a.py::test_a[two/card0]": Last("not-as-stated", "run 2", 2.0),
}


def test_each_requirement_has_its_scenarios_with_the_worst_of_their_last_results() -> None:
    first, second, third = trace(TEXTS, CLAIMED, LAST)
    (proof,) = first.proofs
    assert (proof.scenario, proof.state, proof.run) == ("a.py::test_a", "not-as-stated", "run 2")
    assert proof.states == {"as-stated": 1, "not-as-stated": 1}
    assert [each.scenario for each in second.proofs] == ["a.py::test_a", "b.scenario.yaml::b"]
    assert second.proofs[1].states == {UNKNOWN: 1}
    assert third.proofs == ()


def test_a_requirement_that_there_is_not_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"b.py::test_b: there is no requirement 'R1'") as caught:
        trace(TEXTS, {"b.py::test_b[x]": ("R1",)}, {})
    assert "Did you mean 'R-1'?" in caught.value.hint


@pytest.mark.parametrize(
    ("scenario", "cell"),
    [
        ("a.py::test_a[one/card0-round12]", "a.py::test_a[one/card0]"),
        ("a.py::test_a[round3]", "a.py::test_a"),
        ("a.py::test_a[around]", "a.py::test_a[around]"),
    ],
)
def test_rounds_of_a_campaign_are_the_same_scenario(scenario: str, cell: str) -> None:
    assert cell_of(scenario) == cell


@pytest.mark.parametrize("text", ["- R-1\n", "R-1: [x]\n", "R-1: 7\n", "{\n", "\x00"])
def test_a_file_that_holds_no_requirements(tmp_path: Path, text: str) -> None:
    path = tmp_path / "requirements.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"requirements\.yaml"):
        load_requirements(path)

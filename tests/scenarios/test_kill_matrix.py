"""What counts as the detection of a known defect, and how a qualification ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.cli.qualify_text import render
from harness.lab.known_defects import KINDS
from harness.scenarios.kill_matrix import CONCERNS, KillMatrix, Row, Seen, Trial

QUIET = Seen("plan.py::test_quiet", "as-stated")
LOUD = Seen("plan.py::test_loud", "not-as-stated", ("BREACH", "FALSE_SUCCESS"), ("because",))


def row(*seen: Seen, predicts: str = "BREACH", trouble: str = "") -> Row:
    return Row("a-defect", "card", "a document", predicts, Trial("a-defect", seen, trouble))


def matrix(*rows: Row, corrected: tuple[Seen, ...] = (QUIET,), **options: Any) -> KillMatrix:
    return KillMatrix(rows, (Trial("corrected/card", corrected),), **options)


def test_a_scenario_detects_by_what_is_predicted_and_by_nothing_else() -> None:
    assert row(QUIET, LOUD).detected_by == [LOUD.scenario]
    assert row(QUIET, LOUD, predicts="LOST").status == "missed"


def test_what_is_found_beside_it_anyway_detects_nothing() -> None:
    trial = Trial("a-defect", (QUIET, LOUD))
    with_others = Row("a-defect", "cloud", "a document", "BREACH", trial, Trial("beside/a-defect", (LOUD,)))
    assert with_others.status == "missed"
    quiet = Row("a-defect", "cloud", "a document", "BREACH", trial, Trial("beside/a-defect", (QUIET,)))
    assert quiet.detected_by == [LOUD.scenario]


@pytest.mark.parametrize("state", ["INFRA", "BLOCKED", "REFUSED", "BUG", "interrupted"])
def test_a_scenario_that_gave_no_result_detects_nothing(state: str) -> None:
    stopped = Seen("plan.py::test_stopped", state, ("BREACH",))
    assert row(QUIET, stopped).detected_by == []
    assert row(QUIET, stopped).status == "blocked"
    assert row(QUIET, stopped, LOUD).status == "detected"


UNTRIED = Row("x", "card", "", "", None)


@pytest.mark.parametrize("kept_from", [row(), row(QUIET, trouble="no room")])
def test_what_could_not_be_tried_is_not_missed(kept_from: Row) -> None:
    assert kept_from.status == "blocked"


def test_what_an_interruption_left_out_is_neither_missed_nor_blocked() -> None:
    partial = matrix(row(LOUD), UNTRIED, interrupted=True)
    assert [each.status for each in partial.rows] == ["detected", "not-tried"]
    told = render(partial, colour=False)
    assert "2 defects: 1 detected, 0 missed, 0 blocked, 1 not tried yet." in told
    assert told.endswith("Interrupted: the same command goes on with what is missing.")
    assert "x  " not in told, "only what was tried is listed"


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (matrix(row(LOUD)), 0),
        (matrix(row(LOUD), row(QUIET)), 1),
        (matrix(row(LOUD), corrected=(QUIET, LOUD)), 1),
        (matrix(row(LOUD), row()), 3),
        (matrix(row(LOUD), UNTRIED), 3),
        (matrix(row(QUIET), row()), 1),
        (matrix(row(LOUD), corrected=(Seen("plan.py::test_x", "BLOCKED"),)), 3),
        (KillMatrix((row(LOUD),), (Trial("corrected/card", (QUIET,), "it hung"),)), 3),
        (matrix(row(LOUD), interrupted=True), 130),
    ],
)
def test_how_it_ends(found: KillMatrix, code: int) -> None:
    assert found.exit_code == code


def test_as_json() -> None:
    said = json.loads(json.dumps(matrix(row(QUIET, LOUD), row(QUIET), corrected=(LOUD,)).to_json()))
    detected, missed = said["kill_matrix"]["defects"]
    assert (detected["id"], detected["reference"]) == ("a-defect", "a document")
    assert detected["detected_by"] == [LOUD.scenario]
    assert detected["verdicts"] == {LOUD.scenario: ["BREACH", "FALSE_SUCCESS"]}
    assert (missed["detected_by"], missed["status"]) == ([], "missed")
    (alarm,) = said["kill_matrix"]["false_alarms"]
    assert (alarm["scenario"], alarm["reasons"]) == (LOUD.scenario, ["because"])


def test_a_trial_survives_json() -> None:
    trial = Trial("a-defect", (QUIET, LOUD), "late", 1.5)
    assert Trial.from_json(json.loads(json.dumps(trial.to_json()))) == trial


def test_each_kind_of_defect_concerns_a_fixture() -> None:
    assert set(CONCERNS) == set(KINDS)

"""The results of a run as JUnit XML, CSV and Markdown, read back by other programs' readers."""

from __future__ import annotations

import csv
import io
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from support.told_runs import LIE, Run

from harness.judgement.judge import Judgement, judge
from harness.judgement.records import ScenarioEnded, ScenarioStarted
from harness.report.junit import junit_xml
from harness.report.tables import results_csv, results_markdown


def run_of_all_sorts() -> Judgement:
    run = Run()
    run.flash("plan.py::test_good[one/card0]", "one/card0", lies=False)
    run.flash("plan.py::test_wrong[one/card0]", "one/card0")
    run.flash("plan.py::test_stated[one/card0]", "one/card0", **LIE)
    run.blocked("plan.py::test_blocked", "no registry\n  hint: start one")
    run._add(0.0, ScenarioStarted(scenario="plan.py::test_infra", subject=None))
    run._add(0.1, ScenarioEnded(scenario="plan.py::test_infra", state="INFRA", reason="the cable is cut"))
    return judge(run.end())


def cases(judgement: Judgement) -> dict[str, ET.Element]:
    root = ET.fromstring(junit_xml(judgement))
    return {case.attrib["name"].partition("[")[0]: case for case in root.iter("testcase")}


def properties(case: ET.Element) -> dict[str, str]:
    return {found.attrib["name"]: found.attrib["value"] for found in case.iter("property")}


def test_junit_counts_what_failed_what_is_an_error_and_what_did_not_run() -> None:
    suite = ET.fromstring(junit_xml(run_of_all_sorts())).find("testsuite")
    assert suite is not None
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }


def test_junit_has_device_outcome_and_verdicts_as_properties() -> None:
    found = cases(run_of_all_sorts())
    assert properties(found["test_wrong"]) == {
        "device": "one/card0",
        "state": "not-as-stated",
        "outcome": "FAILED",
        "verdict.fpgasupdate": "FALSE_SUCCESS",
        "verdict.rsu": "MATCH",
    }
    assert {case.attrib["classname"] for case in found.values()} == {"plan.py"}


def test_junit_has_the_requirements_that_a_scenario_proves() -> None:
    proved = {"plan.py::test_good[one/card0]": ("FLASH-ROOT", "FLASH-CHECKS")}
    root = ET.fromstring(junit_xml(run_of_all_sorts(), proved))
    found = {
        case.attrib["name"]: [
            p.attrib["value"] for p in case.iter("property") if p.attrib["name"] == "requirement"
        ]
        for case in root.iter("testcase")
    }
    assert found.pop("test_good[one/card0]") == ["FLASH-ROOT", "FLASH-CHECKS"]
    assert set(map(tuple, found.values())) == {()}


def test_junit_says_why() -> None:
    found = cases(run_of_all_sorts())
    assert {name: [child.tag for child in case][1:] for name, case in found.items()} == {
        "test_good": [],
        "test_wrong": ["failure"],
        "test_stated": [],
        "test_blocked": ["skipped"],
        "test_infra": ["error"],
    }
    assert found["test_blocked"][1].attrib["message"] == "BLOCKED: no registry"
    assert "flash count stayed 5" in (found["test_wrong"][1].text or "")


def test_csv_has_a_line_for_each_scenario() -> None:
    lines = list(csv.DictReader(io.StringIO(results_csv(run_of_all_sorts()))))
    assert [(line["state"], line["outcome"], line["worst_verdict"]) for line in lines] == [
        ("as-stated", "AS_INTENDED", "MATCH"),
        ("not-as-stated", "FAILED", "FALSE_SUCCESS"),
        ("as-stated", "FAILED", "FALSE_SUCCESS"),
        ("BLOCKED", "", ""),
        ("INFRA", "", ""),
    ]
    assert lines[3]["reason"] == "no registry"


def test_markdown_shows_what_diverged_and_what_gave_no_result() -> None:
    text = results_markdown(run_of_all_sorts())
    assert "- 1 not-as-stated\n" in text
    rows = [line for line in text.splitlines() if line.startswith("| plan.py")]
    assert [row.split("test\\_")[1].split("\\")[0].split(" ")[0] for row in rows] == [
        "wrong",
        "stated",
        "blocked",
        "infra",
    ]


@given(st.text(max_size=30))
def test_any_words_are_data_in_every_format(word: str) -> None:
    run = Run(lab=word)
    run.blocked(f"plan.py::{word}", word)
    judgement = judge(run.end())
    assert len(list(ET.fromstring(junit_xml(judgement)).iter("testcase"))) == 1
    (line,) = csv.DictReader(io.StringIO(results_csv(judgement)))
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in line.values())
    table = [row for row in results_markdown(judgement).splitlines() if row.startswith("| plan.py")]
    assert len(table) == 1
    assert table[0].replace("\\|", "").count("|") == 7

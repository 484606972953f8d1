"""The qualification statement: GO by stated rules, deviations that somebody answers for, held evidence."""

from __future__ import annotations

import datetime
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.told_runs import LIE, Run

from harness.errors import BlockedError, ConfigurationError
from harness.judgement.judge import Judgement, judge
from harness.judgement.records import Intent, Promise, RunEnded, Subject
from harness.report.statement.facts import facts_of
from harness.report.statement.manifest import departures
from harness.report.statement.rules import RULES, Requirement, Waiver, decide
from harness.report.statement.waivers import read_waivers
from harness.report.statement.writing import Statement, write_statement

TODAY = datetime.date(2026, 12, 1)
DEFECT = {
    "id": "card-takes-unsigned",
    "reference": "F28",
    "predicts": "BREACH",
    "detected_by": ["plan.py::a"],
}
WHOLE: dict[str, Any] = {"defects": [DEFECT], "false_alarms": []}
PROVED = [
    Requirement("FLASH-ROOT", "A card takes what its root has signed.", {"plan.py::test_good": "as-stated"})
]


def good_run() -> Run:
    run = Run()
    run.flash("plan.py::test_good[one/card0]", "one/card0", lies=False)
    run.flash("plan.py::test_stated[one/card0]", "one/card0", **LIE)
    return run


def found(
    judgement: Judgement | None = None,
    requirements: list[Requirement] | None = None,
    matrix: dict[str, Any] | None = WHOLE,
    *waivers: Waiver,
) -> list[tuple[str, str, bool]]:
    """Return rule, subject, and whether somebody answers for it, of each deviation."""
    judged = judgement or judge(good_run().end())
    decision = decide(judged, PROVED if requirements is None else requirements, matrix, waivers, TODAY)
    assert decision.go == all(one.waiver for one in decision.deviations)
    return [(one.rule, one.subject, one.waiver is not None) for one in decision.deviations]


def wrong_run() -> Judgement:
    run = good_run()
    run.flash("plan.py::test_wrong[one/card0]", "one/card0")
    return judge(run.end())


def test_go_where_every_rule_holds() -> None:
    assert found() == []


def test_what_is_not_as_stated() -> None:
    assert found(wrong_run()) == [("as-stated", "plan.py::test_wrong[one/card0]", False)]


def test_what_gave_no_result() -> None:
    run = good_run()
    run.blocked("plan.py::test_push", "no registry")
    assert found(judge(run.end())) == [("gave-a-result", "plan.py::test_push", False)]
    assert ("gave-a-result", "the runs", False) in found(judge(Run().end()))


def test_a_run_that_was_cut_off() -> None:
    records = [record for record in good_run().end() if not isinstance(record, RunEnded)]
    assert found(judge(records)) == [("gave-a-result", "the runs", False)]


def test_a_requirement_that_nothing_proves_or_something_disproves() -> None:
    bad = [
        replace(PROVED[0], id="NONE", proofs={}),
        replace(PROVED[0], id="BLOCKED", proofs={"a": "BLOCKED"}),
        replace(PROVED[0], id="BOTH", proofs={"a": "as-stated", "b": "not-as-stated"}),
    ]
    assert found(None, bad) == [("requirements-proved", each.id, False) for each in bad]


def test_a_defect_that_is_missed_a_false_alarm_and_no_qualification_at_all() -> None:
    missed = {"defects": [DEFECT | {"detected_by": []}], "false_alarms": []}
    alarmed = {"defects": [], "false_alarms": [{"scenario": "plan.py::a", "unstated": ["BREACH"]}]}
    assert found(None, None, missed) == [("defects-detected", "card-takes-unsigned", False)]
    assert found(None, None, alarmed) == [("no-false-alarms", "plan.py::a", False)]
    assert found(None, None, None) == [("defects-detected", "the kill matrix", False)]


def test_a_waiver_answers_for_what_it_names_until_its_day() -> None:
    subject = "plan.py::test_wrong[one/card0]"
    waiver = Waiver("as-stated", subject, "Ada", "fixed in 2.1", TODAY)
    assert found(wrong_run(), None, WHOLE, waiver) == [("as-stated", subject, True)]
    every = replace(waiver, subject="plan.py::test_wrong*")
    assert found(wrong_run(), None, WHOLE, every) == [("as-stated", subject, True)]
    for other in (replace(waiver, rule="gave-a-result"), replace(waiver, subject="plan.py::test_other*")):
        assert found(wrong_run(), None, WHOLE, other) == [("as-stated", subject, False)]
    late = replace(waiver, expires=TODAY - datetime.timedelta(days=1))
    assert found(wrong_run(), None, WHOLE, late) == [
        ("as-stated", subject, False),
        ("waivers-in-force", subject, False),
    ]
    assert decide(judge(good_run().end()), PROVED, WHOLE, [late], TODAY).go is False


def test_a_waiver_that_nothing_needed_is_told() -> None:
    waiver = Waiver("as-stated", "plan.py::gone", "Ada", "long fixed", TODAY)
    decision = decide(judge(good_run().end()), PROVED, WHOLE, [waiver], TODAY)
    assert (decision.go, decision.unused) == (True, (waiver,))


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_a_subject_means_itself_and_a_star_anything(subject: str, other: str) -> None:
    def covers(pattern: str, name: str) -> bool:
        return Waiver("as-stated", pattern, "Ada", "why", TODAY).covers("as-stated", name)

    plain = subject.replace("*", "").replace("?", "")
    assert covers(plain, plain)
    assert covers(plain, other) == (plain == other)
    assert covers(plain + "*", plain + other)


# -- the file of waivers ------------------------------------------------------------------------------------

GOOD = """\
version: 1
waivers:
  - rule: as-stated
    subject: plan.py::test_wrong*
    owner: Ada
    reason: fixed in 2.1
    expires: 2026-12-31
"""


def test_waivers_are_read(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(GOOD)
    assert read_waivers(tmp_path / "w.yaml") == [
        Waiver("as-stated", "plan.py::test_wrong*", "Ada", "fixed in 2.1", datetime.date(2026, 12, 31))
    ]


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        (
            "rule: as-stated",
            "rule: as-statd",
            r"w\.yaml:3: waivers\.0\.rule: .*there is no such rule to waive",
        ),
        ("rule: as-stated", "rule: waivers-in-force", "there is no such rule to waive"),
        ("    owner: Ada\n", "", r"w\.yaml:3: waivers\.0"),
        ("owner: Ada", "owner: ''", r"w\.yaml:5: waivers\.0\.owner"),
        ("expires: 2026-12-31", "expires: soon", r"w\.yaml:7: waivers\.0\.expires"),
        ("version: 1", "version: 2", r"w\.yaml:1: version"),
        (GOOD, "- version\n", "holds no mapping"),
    ],
)
def test_what_is_wrong_in_them_is_told_with_its_line(
    tmp_path: Path, was: str, becomes: str, told: str
) -> None:
    (tmp_path / "w.yaml").write_text(GOOD.replace(was, becomes))
    with pytest.raises(ConfigurationError, match=told):
        read_waivers(tmp_path / "w.yaml")


# -- what was qualified -------------------------------------------------------------------------------------


def test_devices_images_and_pushed_digests() -> None:
    run = good_run()
    image = {"name": "A/csk0", "sha256": "ab" * 32, "effect": "user-image", "root_entry_hash": "cd" * 32}
    card = Subject("card", "one/card0", "one")
    run._add(
        1.0, Intent(operation="flash", subject=card, parameters={"image": image}, promise=Promise("lands"))
    )
    pushed = Subject("registry-image", "registry.local/a/b:1")
    run._add(1.0, Intent(operation="push", subject=pushed, parameters={"content": {"digest": "sha256:ef"}}))
    facts = facts_of(run.end())
    assert facts.runs == [{"run": "20231114-221320-7", "lab": "emulated", "harness": "0.1.0"}]
    assert facts.devices == {"one/card0": {"identity": "64:4c:36:00:00:01", "address": "0000:b2:00.0"}}
    assert facts.images == {
        "A/csk0": {"sha256": "ab" * 32, "effect": "user-image", "root_entry_hash": "cd" * 32}
    }
    assert facts.pushed == {"registry.local/a/b:1": "sha256:ef"}


# -- writing, and holding the evidence ----------------------------------------------------------------------


def statement_of(judgement: Judgement) -> Statement:
    decision = decide(judgement, PROVED, WHOLE, [], TODAY)
    facts = facts_of(good_run().end())
    return Statement("Card <b>7</b>", TODAY, decision, facts, judgement, PROVED, WHOLE)


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "history.jsonl").write_text("{}\n")
    (folder / "results.json").write_text("{}\n")
    return folder


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)


def written(tmp_path: Path, evidence: Path, judgement: Judgement) -> Path:
    with pytest.raises(BlockedError, match="it has no PDF"):
        write_statement(statement_of(judgement), tmp_path / "st", [evidence])
    return tmp_path / "st"


@pytest.mark.usefixtures("no_browser")
def test_without_a_browser_all_but_the_pdf_is_there(tmp_path: Path, evidence: Path) -> None:
    folder = written(tmp_path, evidence, judge(good_run().end()))
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "evidence/run/history.jsonl",
        "evidence/run/results.json",
        "manifest.json",
        "statement.html",
    ]
    assert departures(folder) == []
    text = (folder / "statement.html").read_text()
    assert "Card &lt;b&gt;7&lt;/b&gt;" in text
    assert all(rule in text for rule in RULES)
    assert ">GO<" in text


@pytest.mark.usefixtures("no_browser")
def test_every_change_of_the_evidence_is_seen(tmp_path: Path, evidence: Path) -> None:
    folder = written(tmp_path, evidence, wrong_run())
    assert ">NO-GO<" in (folder / "statement.html").read_text()
    (folder / "evidence/run/history.jsonl").write_text("{ }\n")
    (folder / "evidence/run/results.json").unlink()
    (folder / "evidence/more").write_text("x")
    assert [told.partition(":")[0] for told in departures(folder)] == [
        "evidence/run/history.jsonl",
        "evidence/run/results.json",
        "evidence/more",
    ]


@pytest.mark.usefixtures("no_browser")
def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, evidence: Path) -> None:
    folder = written(tmp_path, evidence, wrong_run())
    with pytest.raises(ConfigurationError, match="holds something already"):
        write_statement(statement_of(wrong_run()), folder, [evidence])


@pytest.mark.parametrize("path", ["/etc/passwd", "../run/history.jsonl"])
def test_a_manifest_does_not_lead_out_of_its_folder(tmp_path: Path, evidence: Path, path: str) -> None:
    manifest = {"schema": "hil-evidence/1", "files": [{"path": path, "sha256": "00", "size": 1}]}
    (evidence / "manifest.json").write_text(json.dumps(manifest))
    assert departures(evidence)[0] == f"{path}: it is not in the folder of the statement"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "x", "files": []}', "\x00", "[" * 100_000])
def test_what_is_no_manifest_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ConfigurationError, match="is no manifest of evidence"):
        departures(tmp_path)

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
from harness.judgement.records import Intent, Promise, Subject
from harness.report.statement.facts import facts_of
from harness.report.statement.manifest import departures
from harness.report.statement.rules import RULES, Basis, Requirement, Waiver, decide
from harness.report.statement.waivers import read_waivers
from harness.report.statement.writing import Statement, write_statement

TODAY = datetime.date(2026, 12, 1)
DEFECT = {
    "id": "card-takes-unsigned",
    "reference": "F28",
    "predicts": "BREACH",
    "detected_by": ["plan.py::a"],
}
WHOLE: dict[str, Any] = {"kill_matrix": {"defects": [DEFECT], "false_alarms": []}}
PROVED = [
    Requirement("FLASH-ROOT", "A card takes what its root has signed.", {"plan.py::test_good": "as-stated"})
]


def good_run() -> Run:
    run = Run()
    run.flash("plan.py::test_good[one/card0]", "one/card0", lies=False)
    run.flash("plan.py::test_stated[one/card0]", "one/card0", **LIE)
    return run


def found(*waivers: Waiver, **changed: Any) -> list[tuple[str, str, bool]]:
    """Return rule, subject, and whether somebody answers for it, of each deviation."""
    basis = Basis(judge(good_run().end()), PROVED, WHOLE, [str(DEFECT["id"])])
    decision = decide(replace(basis, **changed), waivers, TODAY)
    assert decision.go == all(one.waiver for one in decision.deviations)
    return [(one.rule, one.subject, one.waiver is not None) for one in decision.deviations]


def matrix(**changed: Any) -> dict[str, Any]:
    return {"kill_matrix": WHOLE["kill_matrix"] | changed}


def wrong_run() -> Judgement:
    run = good_run()
    run.flash("plan.py::test_wrong[one/card0]", "one/card0")
    return judge(run.end())


def test_go_where_every_rule_holds() -> None:
    assert found() == []


def test_what_is_not_as_stated() -> None:
    assert found(judgement=wrong_run()) == [("as-stated", "plan.py::test_wrong[one/card0]", False)]


def test_what_gave_no_result() -> None:
    run = good_run()
    run.blocked("plan.py::test_push", "no registry")
    assert found(judgement=judge(run.end())) == [("gave-a-result", "plan.py::test_push", False)]
    assert ("gave-a-result", "the runs", False) in found(judgement=judge(Run().end()))


def test_a_run_that_was_cut_off_and_scenarios_whose_history_is_gone() -> None:
    assert found(unfinished=["run7"]) == [("gave-a-result", "the runs", False)]
    assert found(lost=["plan.py::test_gone"]) == [("gave-a-result", "plan.py::test_gone", False)]


def test_a_requirement_that_nothing_proves_or_something_disproves() -> None:
    bad = [
        replace(PROVED[0], id="NONE", proofs={}),
        replace(PROVED[0], id="BLOCKED", proofs={"a": "BLOCKED"}),
        replace(PROVED[0], id="BOTH", proofs={"a": "as-stated", "b": "not-as-stated"}),
    ]
    assert found(requirements=bad) == [("requirements-proved", each.id, False) for each in bad]
    assert found(requirements=[]) == [("requirements-proved", "the requirements", False)]


def test_a_defect_that_is_missed_or_was_not_tried_a_false_alarm_and_no_qualification_at_all() -> None:
    alarm = {"scenario": "plan.py::a", "unstated": ["BREACH"]}
    missed = ("defects-detected", "card-takes-unsigned", False)
    assert found(qualification=matrix(defects=[DEFECT | {"detected_by": []}])) == [missed]
    assert found(qualification=matrix(defects=[])) == [missed]
    assert found(qualification=matrix(false_alarms=[alarm])) == [("no-false-alarms", "plan.py::a", False)]
    assert found(qualification=None) == [("defects-detected", "the kill matrix", False)]


def test_a_qualification_that_is_not_whole() -> None:
    assert found(qualification=WHOLE | {"interrupted": True}) == [
        ("defects-detected", "the kill matrix", False)
    ]
    assert found(qualification=WHOLE | {"troubles": ["no lab"]}) == [
        ("no-false-alarms", "the kill matrix", False)
    ]
    without = {"without_result": [{"scenario": "plan.py::a", "state": "BLOCKED"}]}
    assert found(qualification=WHOLE | without) == [("no-false-alarms", "plan.py::a", False)]


def test_a_waiver_answers_for_what_it_names_until_its_day() -> None:
    subject = "plan.py::test_wrong[one/card0]"
    waiver = Waiver("as-stated", subject, "Ada", "fixed in 2.1", TODAY)
    wrong = wrong_run()
    assert found(waiver, judgement=wrong) == [("as-stated", subject, True)]
    assert found(replace(waiver, subject="plan.py::test_wrong*"), judgement=wrong) == [
        ("as-stated", subject, True)
    ]
    for other in (replace(waiver, rule="gave-a-result"), replace(waiver, subject="plan.py::test_other*")):
        assert found(other, judgement=wrong) == [("as-stated", subject, False)]
    late = replace(waiver, expires=TODAY - datetime.timedelta(days=1))
    assert found(late, judgement=wrong) == [
        ("as-stated", subject, False),
        ("waivers-in-force", subject, False),
    ]
    assert found(late) == [("waivers-in-force", subject, False)]


@pytest.mark.parametrize(
    ("rule", "whole", "changed"),
    [
        ("gave-a-result", "the runs", {"unfinished": ["run7"]}),
        ("requirements-proved", "the requirements", {"requirements": []}),
        ("defects-detected", "the kill matrix", {"qualification": None}),
    ],
)
def test_what_concerns_all_of_the_evidence_is_waived_by_its_own_words(
    rule: str, whole: str, changed: dict[str, Any]
) -> None:
    waiver = Waiver(rule, "*", "Ada", "why", TODAY)
    assert found(waiver, **changed) == [(rule, whole, False)]
    assert found(replace(waiver, subject=whole), **changed) == [(rule, whole, True)]


def test_a_waiver_that_nothing_needed_is_told() -> None:
    waiver = Waiver("as-stated", "plan.py::gone", "Ada", "long fixed", TODAY)
    basis = Basis(judge(good_run().end()), PROVED, WHOLE)
    decision = decide(basis, [waiver], TODAY)
    assert (decision.go, decision.unused) == (True, (waiver,))


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_a_subject_means_itself_and_a_star_anything(subject: str, other: str) -> None:
    def covers(pattern: str, name: str) -> bool:
        return Waiver("as-stated", pattern, "Ada", "why", TODAY).covers("as-stated", name)

    plain = subject.replace("*", "")
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
        ("expires: 2026-12-31", "expires: 4102444800", r"w\.yaml:7: waivers\.0\.expires"),
        ("owner: Ada", "owner: '  '", r"w\.yaml:5: waivers\.0\.owner"),
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
    assert facts.pushed == {"registry.local/a/b:1": {"digest": "sha256:ef"}}


def test_a_thing_that_was_not_always_the_same_is_told_whole() -> None:
    run = good_run()
    card = Subject("card", "one/card0", "one")
    for digest in ("ab" * 32, "cd" * 32, "ab" * 32):
        asked = Intent(operation="flash", subject=card, parameters={"image": {"name": "A", "sha256": digest}})
        run._add(1.0, asked)
    assert facts_of(run.end()).images["A"]["sha256"] == f"{'ab' * 32}; later {'cd' * 32}"


# -- writing, and holding the evidence ----------------------------------------------------------------------


def statement_of(judgement: Judgement) -> Statement:
    basis = Basis(judgement, PROVED, WHOLE)
    facts = facts_of(good_run().end())
    return Statement("Card <b>7</b>", TODAY, decide(basis, [], TODAY), facts, judgement, PROVED, WHOLE)


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
        write_statement(statement_of(judgement), tmp_path / "st", {"run-1/run": evidence})
    return tmp_path / "st"


@pytest.mark.usefixtures("no_browser")
def test_without_a_browser_all_but_the_pdf_is_there(tmp_path: Path, evidence: Path) -> None:
    folder = written(tmp_path, evidence, judge(good_run().end()))
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "evidence/run-1/run/history.jsonl",
        "evidence/run-1/run/results.json",
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
    (folder / "evidence/run-1/run/history.jsonl").write_text("{ }\n")
    (folder / "evidence/run-1/run/results.json").unlink()
    (folder / "evidence/more").write_text("x")
    assert [told.partition(":")[0] for told in departures(folder)] == [
        "evidence/run-1/run/history.jsonl",
        "evidence/run-1/run/results.json",
        "evidence/more",
    ]


@pytest.mark.usefixtures("no_browser")
def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, evidence: Path) -> None:
    folder = written(tmp_path, evidence, wrong_run())
    with pytest.raises(ConfigurationError, match="holds something already"):
        write_statement(statement_of(wrong_run()), folder, {"run": evidence})


@pytest.mark.usefixtures("no_browser")
@pytest.mark.parametrize("place", ["run", "run/st", "."])
def test_a_statement_and_its_evidence_are_not_in_each_other(
    tmp_path: Path, evidence: Path, place: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigurationError, match=r"are in each other|holds something already"):
        write_statement(statement_of(wrong_run()), tmp_path / place, {"run": evidence})
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.usefixtures("no_browser")
def test_a_place_that_is_a_file_is_told(tmp_path: Path, evidence: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="holds something already"):
        write_statement(statement_of(wrong_run()), tmp_path / "file", {"run": evidence})


@pytest.mark.usefixtures("no_browser")
def test_links_are_no_evidence(tmp_path: Path, evidence: Path) -> None:
    folder = written(tmp_path, evidence, wrong_run())
    (folder / "evidence").rename(tmp_path / "elsewhere")
    (folder / "evidence").symlink_to(tmp_path / "elsewhere")
    told = departures(folder)
    assert "evidence: it is a link, and no evidence" in told
    assert "evidence/run-1/run/history.jsonl: it is missing" in told


@pytest.mark.parametrize("path", ["/etc/passwd", "../run/history.jsonl", "x" * 300])
def test_a_manifest_does_not_lead_out_of_its_folder(tmp_path: Path, evidence: Path, path: str) -> None:
    files = [{"path": name, "sha256": "00"} for name in (path, "statement.html", "evidence/x")]
    (evidence / "manifest.json").write_text(json.dumps({"schema": "hil-evidence/1", "files": files}))
    assert departures(evidence)[0].startswith(f"{path}: it ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": "hil-evidence/1", "files": []}',
        '{"schema": "x", "files": []}',
        "\x00",
        "[" * 100_000,
    ],
)
def test_what_is_no_manifest_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ConfigurationError, match="is no manifest of evidence"):
        departures(tmp_path)

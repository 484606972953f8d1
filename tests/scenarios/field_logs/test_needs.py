"""What truth claims need is what checkers say: their question, their reporter, a verdict that they give."""

import inspect
from importlib import import_module
from typing import Any

import pytest
from support import field_reports as reports

from harness.judgement.alarms import AlarmSeen
from harness.judgement.judge import judge
from harness.judgement.records import (
    Claim,
    Completion,
    Evidence,
    Intent,
    Observation,
    Promise,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
)
from harness.scenarios.field_logs.contradictions import contradictions
from harness.scenarios.field_logs.events import Told
from harness.scenarios.field_logs.needs import needs_of

IMAGE = Subject("registry-image", "registry.local:9001/a/b:v1")
CARD = Subject("card", "one/card0")


def claim(reporter: str, subject: Subject, **statement: object) -> Claim:
    return Claim(reporter=reporter, subject=subject, statement=statement, evidence=Evidence(""))


def record(path: str) -> Subject:
    return Subject("record", path)


DONE = {"result": "done"}
FAILED = {"result": "failed"}
INDEX = {"bitstream_type": "functional", "applied": True, "uuid": "u"}
#: Reporter, subject or path of a record, statement; checker, who its verdict is on, what a false one is.
CLAIMS = [
    ("fpgasupdate", CARD, DONE, "flash", "fpgasupdate", "FALSE_SUCCESS"),
    ("fpgasupdate", CARD, {"result": "interrupted"}, "flash", "fpgasupdate", "FALSE_FAILURE"),
    ("rsu", CARD, DONE, "reset", "rsu", "FALSE_SUCCESS"),
    ("kernel-log", CARD, {"auth_code": "0x11"}, "contradiction", "kernel-log", "CONTRADICTION"),
    ("fpgainfo", CARD, {"flash_count": 3}, "fields", "fpgainfo", "MISREPORT"),
    ("log:sysinv", IMAGE, DONE, "push", "log:sysinv", "FALSE_SUCCESS"),
    ("log:registry", IMAGE, FAILED, "push", "log:registry", "FALSE_FAILURE"),
    ("system", "s/state/u", {"status": "completed"}, "image_state", "sysinv-image-state", "FALSE_SUCCESS"),
    ("system", "s/state/u", {"status": "pending"}, "image_state", "sysinv-image-state", "MISREPORT"),
    ("system", "s/image/u", INDEX, "applied", "sysinv-applied", "CONTRADICTION"),
    ("system", "s/image/u", INDEX, "stored_images", "sysinv-image", "MISREPORT"),
    ("system", "system-controller/image/u", INDEX, "across", "controller-applied", "CONTRADICTION"),
    ("system", "s/device/h/a", {"bitstream_id": "0x1"}, "device_fields", "sysinv-device", "MISREPORT"),
    ("system", "s/host/h", {"device_image_update": "pending"}, "host_update", "sysinv-host", "STALE"),
    ("system", "s/host/h", {"device_image_update": ""}, "host_update", "sysinv-host", "FALSE_SUCCESS"),
    ("system", "s/label/a=b", {"label_key": "a"}, "floating_labels", "sysinv-label", "STALE"),
    ("dcmanager-cli", "c/subcloud/x", {"sync": "in-sync"}, "sync_status", "dcmanager-sync", "FALSE_SUCCESS"),
    ("dcmanager-cli", "c/step/x", {"state": "complete"}, "orchestration", "dcmanager-step", "FALSE_SUCCESS"),
    ("dcmanager-cli", "c/strategy/f", {"state": "failed"}, "orchestration", "dcmanager-strategy",
     "FALSE_FAILURE"),
    ("system", "s/alarm/900.006/x", {"alarm_id": "900.006"}, "update_alarm", "alarm-900.006", "STALE"),
    ("system", "s/alarm/280.002/x", {"alarm_id": "280.002"}, "sync_alarm", "alarm-280.002", "STALE"),
    ("system", "s/vim-strategy/f", {"updates": ({"result": "success"},)}, "vim_strategy", "vim-strategy",
     "FALSE_SUCCESS"),
]  # fmt: skip


@pytest.mark.parametrize(("says", "about", "statement", "checker", "reporter", "verdict"), CLAIMS)
def test_a_claim_needs_its_checker(
    says: str, about: Any, statement: dict[str, Any], checker: str, reporter: str, verdict: str
) -> None:
    said = claim(says, record(about) if isinstance(about, str) else about, **statement)
    (need,) = [each for each in needs_of(said) if each.checker == checker]
    module = import_module(f"harness.judgement.checkers.{checker}")
    assert (need.reporter, need.false_as.value) == (reporter, verdict)
    assert need.question == (inspect.getdoc(module) or "").partition("\n")[0]
    source = inspect.getsource(module)
    if "alarm.held_to(" in source:  # the checkers of alarms give one verdict
        source = inspect.getsource(AlarmSeen.held_to)
    assert f"VerdictKind.{verdict}" in source, "the checker never gives that verdict"
    assert need.read_by
    assert need.observation


def test_what_no_checker_judges_needs_nothing() -> None:
    assert needs_of(claim("log:sysinv", record("system/application/x"), result="done")) == []
    assert needs_of(claim("docker-stream", CARD, result="done")) == []


def test_paths_are_those_of_the_fields_that_are_shown() -> None:
    (need,) = needs_of(claim("fpgainfo", CARD, sr_root="", address="0000:b2:00.0"))
    assert need.read_by[0] == "hil card show HOST/CARD"
    assert [path.rpartition("/")[2] for path in need.read_by[1:]] == ["sr_root_entry_hash"]
    (need,) = needs_of(claim("log:sysinv", IMAGE, result="done"))
    assert any(way.startswith("GET https://registry.local:9001/v2/a/b/manifests/v1") for way in need.read_by)


@pytest.mark.parametrize(("result", "state"), [("done", "ABSENT"), ("failed", "COMPLETE")])
def test_the_judge_calls_a_false_claim_as_it_is_foretold(result: str, state: str) -> None:
    """The same claim in a history with the truth that it needs, read as it must be."""
    said = claim("log:sysinv", IMAGE, result=result, error="x" if result == "failed" else "")
    (need,) = needs_of(said)
    content = {"digest": "sha256:" + "a" * 64}
    parts = {
        "client": "sysinv-download",
        "reporter": "log:sysinv",
        "content": content,
        "compared_by": "digest",
    }
    values = {"state": state, "digest": content["digest"] if state == "COMPLETE" else "", "findings": []}
    records = [
        RunStarted(seq=1, run="r", lab="l"),
        ScenarioStarted(seq=2, scenario="s"),
        Intent(seq=3, operation="push", subject=IMAGE, parameters=parts, promise=Promise("lands")),
        Claim(
            seq=4,
            reporter="log:sysinv",
            subject=IMAGE,
            statement=said.statement,
            evidence=said.evidence,
            intent=3,
        ),
        Completion(seq=5, intent=3, how="returned"),
        Observation(seq=6, probe="image", subject=IMAGE, moment="after", values=values, intent=3),
        ScenarioEnded(seq=7, scenario="s"),
    ]
    (scenario,) = judge(records).scenarios
    assert scenario.verdicts["log:sysinv"] is need.false_as


def test_contradictions_are_called_as_their_checkers_call_them(read) -> None:
    """But for those that no scenario can state: two reports that people see to be at odds."""
    for text in (reports.CLOUD, reports.PUSHES, reports.CARD_FALSE):
        for each in contradictions(read(text)):
            module = import_module(f"harness.judgement.checkers.{each.checker}")
            given = f"VerdictKind.{each.verdict.value}" in inspect.getsource(module)
            assert given or not each.stated


def test_every_claim_of_the_reports_but_that_on_an_application_is_judged(read) -> None:
    for text in reports.EVERY.values():
        for told in read(text).of(Told):
            judged = bool(needs_of(told.claim))
            assert judged != told.claim.subject.name.startswith("system/application/")

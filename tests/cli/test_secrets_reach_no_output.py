"""A planted secret, in whatever a run is given or meets, is in nothing that it or a report of it leaves."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

CANARY = "Kanarien/vogel+42"
PLAN = f"""
from harness.judgement.records import Claim, Evidence, Fault, Intent, Observation, Subject
from harness.record.redaction import register_secret

CANARY = {CANARY!r}
register_secret(CANARY)  # as a lab does with what its inventory's credentials lead to
SUBJECT = Subject("record", f"system/{{CANARY}}")


def test_records(hil, hil_scenario):
    history = hil.history
    given = {{"url": f"http://u:{{CANARY}}@h"}}
    seq = history.add(Intent(operation="upload", subject=SUBJECT, parameters=given)).seq
    said = Evidence(f"$ curl -u admin:{{CANARY}}\\nX-Auth-Token: {{CANARY}}", f"curl {{CANARY}}", 1)
    word = {{"result": CANARY}}
    history.add(Claim(reporter="curl", subject=SUBJECT, statement=word, evidence=said, intent=seq))
    history.add(Observation(probe=CANARY, subject=SUBJECT, values={{"x": CANARY}}, sources={{"x": CANARY}}))
    history.add(Fault(point="p", action="a", subject=SUBJECT, state="fired", detail=CANARY))

def test_infra(card):
    from harness.errors import InfrastructureError
    raise InfrastructureError(f"login with {{CANARY}} failed", hint=f"try {{CANARY}}")

def test_author(card):
    print(f"printed {{CANARY}}")
    import logging
    logging.getLogger("x").warning("logged %s", CANARY)
    assert f"got {{CANARY}}" == ""

def test_skip(card):
    pytest.skip(f"skipped {{CANARY}}")

@pytest.mark.xfail(reason=CANARY)
def test_xfail(card):
    assert False

def test_bug(card):
    raise ZeroDivisionError(f"divided {{CANARY}}")
"""


def forms(secret: str) -> list[bytes]:
    """The forms under which a secret turns up."""
    data = secret.encode()
    return [
        data,
        base64.b64encode(data).rstrip(b"="),
        quote(secret, safe="").encode(),
        json.dumps(secret).strip('"').replace("/", "\\/").encode(),
    ]


def holders(folder: Path) -> list[str]:
    """Return the files below a folder that have the secret in any form."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix not in (".py", ".pyc"):
            content = path.read_bytes()
            found += [f"{path.relative_to(folder)}: {form!r}" for form in forms(CANARY) if form in content]
    return found


def test_canaries_come_out_of_nothing(project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIL_STORE")
    project.write(PLAN)
    said = [project.hil("run", "test_plan.py", "--device", "two", "--allure", "allure")]
    assert said[0].code == 5
    said.append(project.hil("run", "test_plan.py", "--device", "two", "-n", "2", "-o", "json"))
    for form in ("junit", "csv", "markdown", "json"):
        said.append(project.hil("report", "write", form))
    said += [project.hil("report", "html", "--to", "page.html"), project.hil("judge", "reports/latest")]
    said += [project.hil("history", "show", "-o", "json"), project.hil("history", "import")]
    said.append(project.hil("report", "statement", "reports/latest", "--to", "statement"))
    for ended in said:
        for form in forms(CANARY):
            assert form.decode() not in ended.stdout + ended.stderr
    assert holders(project.folder) == []
    written = {path.name for path in project.folder.rglob("*")}
    assert {"history.jsonl", "results.json", "report.html", "index.sqlite", "statement.html"} <= written
    assert any(name.endswith("-result.json") for name in written)

"""`hil report`: the page of a run, and its results in other formats."""

import json
from xml.etree import ElementTree as ET

PLAN = """
@pytest.mark.hil_given(root="A")
def test_unsigned(flash):
    flash("unsigned", unchanged("0x11", source=DOC))
"""


def test_a_run_leaves_its_page_and_says_where(project) -> None:
    project.write(PLAN)
    run = project.hil("run", "test_plan.py", "--device", "two")
    assert run.code == 0, run.text
    page = project.folder / "reports/latest/report.html"
    assert f"report      {page.resolve().relative_to(project.folder)}" in run.stdout
    assert "test_plan.py::test_unsigned[two/card0]" in page.read_text("utf-8")

    again = project.hil("report", "html", "--to", "again.html")
    assert (again.code, again.stdout) == (0, "again.html\n")
    assert (project.folder / "again.html").read_text("utf-8") == page.read_text("utf-8")

    page.unlink()
    opened = project.hil("report", "open")
    assert opened.stdout.strip().endswith("/report.html")
    assert page.exists()

    junit = project.hil("report", "write", "junit")
    assert [case.attrib["name"] for case in ET.fromstring(junit.stdout).iter("testcase")] == [
        "test_unsigned[two/card0]"
    ]
    assert project.hil("report", "write", "json").stdout.strip() == json.dumps(run.results, indent=1)
    written = project.hil("report", "write", "csv", "reports/latest", "--to", "run.csv")
    assert (written.stdout, (project.folder / "run.csv").read_text().count("\n")) == ("run.csv\n", 2)
    project.assert_nothing_left()


def test_what_is_no_run_is_told(project) -> None:
    run = project.hil("report", "html", "nowhere")
    assert run.code == 2
    assert "There is no run in nowhere." in run.stderr
    assert "hint: " in run.stderr
    written = project.hil("report", "write", "pdf")
    assert written.code == 2
    assert "Traceback" not in written.text


WAIVERS = """\
version: 1
waivers:
  - {rule: requirements-proved, subject: the requirements, owner: Ada, reason: none here, expires: 2099-01-01}
"""


def test_a_statement_is_go_or_no_go_and_its_evidence_is_held(project) -> None:
    from harness.lab.known_defects import known_defects

    project.write(PLAN)
    assert project.hil("run", "test_plan.py", "--device", "two").code == 0
    defects = [
        {"id": each["name"], "reference": "", "predicts": "", "detected_by": ["x"]}
        for each in known_defects()
    ]
    made = {"schema": "hil-qualify/1", "kill_matrix": {"defects": defects, "false_alarms": []}}
    (project.folder / "kill-matrix.json").write_text(json.dumps(made))
    (project.folder / "waivers.yaml").write_text(WAIVERS)
    words = ("report", "statement", "reports/latest", "--qualification", "kill-matrix.json")
    written = project.hil(*words, "--waivers", "waivers.yaml", "--to", "statement")
    # Without a browser the PDF is missing, which is said, and all else is there.
    assert written.code in (0, 3), written.text
    *_, manifest, decision = written.stdout.splitlines()
    assert decision == "GO"
    sha256 = manifest.rpartition(" ")[2]
    assert project.hil("report", "verify", "statement", "--sha256", sha256).code == 0
    assert project.hil("report", "verify", "statement", "--sha256", "0" * 64).code == 1
    (project.folder / "statement/statement.html").write_text("GO")
    held = project.hil("report", "verify", "statement")
    assert (held.code, held.stdout.startswith("statement.html: its SHA-256 is ")) == (1, True)

    again = project.hil(*words, "--to", "statement")
    assert (again.code, again.stdout) == (2, "")
    without = project.hil("report", "statement", "reports/latest", "--to", "other")
    assert (without.code, without.stdout.splitlines()[-1]) == (
        1,
        "NO-GO: deviations that nobody answers for: 2",
    )
    history = project.folder / "reports/latest/history.jsonl"
    history.write_text("\n".join(history.read_text().splitlines()[:1]) + "\n")
    lost = project.hil(*words, "--waivers", "waivers.yaml", "--to", "third")
    assert lost.code == 1, lost.text
    (project.folder / "kill-matrix.json").write_text("[]")
    broken = project.hil(*words, "--to", "fourth")
    assert (broken.code, "holds no kill matrix" in broken.stderr) == (2, True)

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


def test_a_statement_is_go_or_no_go_and_its_evidence_is_held(project) -> None:
    project.write(PLAN)
    assert project.hil("run", "test_plan.py", "--device", "two").code == 0
    matrix = {"kill_matrix": {"defects": [], "false_alarms": []}}
    (project.folder / "kill-matrix.json").write_text(json.dumps(matrix))
    words = ("report", "statement", "reports/latest", "--qualification", "kill-matrix.json")
    written = project.hil(*words, "--to", "statement")
    # Without a browser the PDF is missing, which is said, and all else is there.
    assert written.code in (0, 3), written.text
    assert written.stdout.splitlines()[-1] == "GO"
    assert project.hil("report", "verify", "statement").code == 0
    (project.folder / "statement/statement.html").write_text("GO")
    held = project.hil("report", "verify", "statement")
    assert (held.code, held.stdout.startswith("statement.html: its SHA-256 is ")) == (1, True)
    without = project.hil("report", "statement", "reports/latest", "--to", "other")
    assert "NO-GO: 1 deviations" in without.stdout
    assert without.code in (1, 3)
    broken = project.hil(
        "report", "statement", "reports/latest", "--to", "third", "--qualification", "plan.yaml"
    )
    assert (broken.code, "holds no kill matrix" in broken.stderr) == (2, True)

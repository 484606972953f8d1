"""What `hil run` shows while it runs: one line on a terminal, little elsewhere."""

import io
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from support.plans import lay_out, lines_with, without_colour, write_plan

from harness.plugin.progress import Progress

PLAN = """
@pytest.mark.hil_given(root="A")
@pytest.mark.parametrize("image", ["unsigned", "B/csk0"])
def test_refused(flash, image):
    flash(image, unchanged("0x11", "0x14", source=DOC))

@pytest.mark.hil_given(root="A")
def test_breach(flash):
    flash("A/csk0", unchanged("0x11", source=DOC))

@pytest.mark.hil_requires("power")
@pytest.mark.parametrize("number", range(2))
def test_power(card, number):
    card.reset()

@pytest.mark.hil_given(root="A")
def test_of_the_author(flash):
    flash("unsigned", unchanged("0x11", source=DOC))
    assert flash is None
"""
HIL = (sys.executable, "-c", "from harness.cli import main; main()", "run", "test_plan.py", "--device")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    lay_out(tmp_path)
    write_plan(tmp_path, PLAN)
    return tmp_path


def on_terminal(command: list[str], folder: Path, columns: int) -> str:
    """Run ``command`` on a terminal of its own; return all that was written to it."""
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, columns))
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "COLUMNS"} | {"TERM": "xterm"},
        stdin=child,
        stdout=child,
        stderr=child,
    )
    os.close(child)
    seen = bytearray()
    try:
        while piece := os.read(parent, 65536):
            seen += piece
    except OSError:
        pass  # how Linux says that nobody writes to the terminal any more
    finally:
        os.close(parent)
        process.wait(timeout=60)
    return seen.decode()


def test_on_a_terminal_one_line_says_what_runs_where_and_how_many_are_left(project: Path) -> None:
    seen = on_terminal([*HIL, "one"], project, 150)
    drawn = [part.partition("\r\n")[0] for part in seen.split("\r\x1b[K") if " left, " in part]
    assert drawn[0].startswith("1/6, 5 left, 0:0")
    assert "test_plan.py::test_refused[one/card0-unsigned]" in drawn[0]
    assert any("flash unsigned: programming" in line for line in drawn)
    assert any(line.startswith("6/6, 0 left, 1 not as stated, 0:") for line in drawn)
    assert all(len(line) < 150 for line in drawn)
    # What stays: the result, without a letter or a dot of pytest's, and nothing of the line.
    left = [without_colour(line.rpartition("\r\x1b[K")[2]) for line in seen.split("\r\n")]
    assert not [line for line in left if " left, " in line]
    assert lines_with("\n".join(left), "NOT AS STATED  test_plan.py::test_breach[one/card0]")
    assert not [line for line in left if line and set(line) <= set(".FEsnBIR!")]


def test_elsewhere_only_what_is_not_as_stated_is_told_meanwhile(project: Path) -> None:
    done = subprocess.run(
        [*HIL, "one", "--device", "two"], cwd=project, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == 1
    assert "\r" not in done.stdout
    assert "\x1b" not in done.stdout
    before = done.stdout.partition("held to the truth")[0].splitlines()
    assert before[0] == "12 scenarios on the lab small"
    told = [line for line in before if line.startswith(("NOT AS STATED", "BLOCKED"))]
    assert told == [
        "NOT AS STATED  test_plan.py::test_breach[one/card0]",
        "NOT AS STATED  test_plan.py::test_breach[two/card0]",
        "BLOCKED  test_plan.py::test_power[two/card0-0]",  # and not the second one, for the same reason
        "NOT AS STATED  test_plan.py::test_of_the_author[one/card0]",
        "NOT AS STATED  test_plan.py::test_of_the_author[two/card0]",
    ]
    # The author's own assertion is shown with its line; what the summary explains is not shown twice.
    assert "assert flash is None" in done.stdout
    assert len(lines_with(done.stdout, "the outcome is BREACH")) <= 2 + 2


class Report:
    """As much of a pytest report as progress looks at."""

    def __init__(self, nodeid: str, message: str) -> None:
        self.nodeid, self.longrepr = nodeid, message
        self.longreprtext = f"[gw0] linux -- Python 3 /usr/bin/python\n{message}"  # as xdist has it
        self.when, self.failed = "call", True
        self.user_properties: list[tuple[str, object]] = []


def test_a_line_is_cut_to_the_terminal_and_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    out = Terminal()
    progress = Progress(out, "small")
    progress._total = 12
    progress.pytest_runtest_logstart(
        "a/test_b.py::test_c[one/card0]", ("a/test_b.py", 1, "test_c[one/card0]")
    )
    assert out.getvalue() == "\r\x1b[K1/12, 11 left, 0:00  test_b.py::test_c["
    progress.pytest_runtest_logreport(
        Report("a/test_b.py::test_c[one/card0]", "not as stated: this\nand that")
    )
    assert "\r\x1b[KNOT AS STATED  a/test_b.py::test_c[one/card0]\n  this\n\r\x1b[K1/12" in out.getvalue()
    progress.close()
    assert out.getvalue().endswith("\r\x1b[K")


def test_a_dumb_terminal_has_no_changing_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = io.StringIO()
    out.isatty = lambda: True  # type: ignore[method-assign]
    progress = Progress(out, "small")
    progress.pytest_runtest_logstart("t.py::test", ("t.py", 1, "test"))
    progress.close()
    assert out.getvalue() == ""

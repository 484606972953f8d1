"""What `hil run` shows while it runs: one line that changes on a terminal, next to nothing elsewhere."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from harness.plugin.judging import AS_STATED, run_state_of

_CLEAR = "\r\x1b[K"


class Progress:
    """A pytest plugin in place of pytest's own dots.

    On a terminal one line says what runs now, on which device, and how many are left. What is not as
    stated, or could not run, is told when it happens, once for each reason, wherever it is written to.

    :param stream: where it goes; a copy of its descriptor is used, since pytest captures the original.
    :param lab: the lab's name.
    """

    def __init__(self, stream: IO[str], lab: str) -> None:
        self.live = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        try:
            self._out: IO[str] = os.fdopen(os.dup(stream.fileno()), "w", encoding="utf-8", errors="replace")
            self._own = True
        except OSError:  # a stream in memory
            self._out, self._own = stream, False
        self._lab = lab
        self._began = time.monotonic()
        self._total = self._done = self._wrong = self._a_round = 0
        #: How often each scenario runs at most; None: nobody knows.
        self._rounds: int | None = 1
        self._running: dict[str, str] = {}
        self._doing = ""
        self._told: set[tuple[str, str]] = set()
        self._drawn = ""
        self._interrupted = False
        #: What is to be said of a run that was judged, where a second Ctrl-C kept its summary from coming.
        self._judged = ""

    def close(self) -> None:
        """Leave a clean line."""
        if self._interrupted and self._judged:
            self.line(self._judged)
        self._clear()
        if self._own:
            self._out.close()

    def line(self, text: str) -> None:
        """Write a line that stays."""
        self._clear()
        self._out.write(f"{text}\n")
        self._out.flush()
        self._draw()

    # -- hooks ----------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Take pytest's account of an interruption away: it is said as it comes, and the summary ends."""
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        its_own = getattr(reporter, "_report_keyboardinterrupt", None)
        if its_own is not None:  # pytest has no hook for it
            reporter._report_keyboardinterrupt = lambda: None if self._interrupted else its_own()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn how many scenarios there are."""
        self._collected(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Learn it from the first worker."""
        self._collected(len(ids))

    def pytest_hil_campaign_begun(self, told: str, rounds: int | None) -> None:
        """Say how a campaign runs."""
        self._rounds = rounds
        self.line(told)
        self._say_how_many()

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Show the scenario that begins."""
        self._running[nodeid] = location[2]
        self._doing = ""
        self._draw()

    def pytest_hil_progress(self, device: str, doing: str) -> None:
        """Show what is done to the device."""
        self._doing = doing
        self._draw()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell what is not as stated, or could not run."""
        word = _word(report)
        if word:
            self._wrong += word == "NOT AS STATED"
            self._tell(word, report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Count the scenario."""
        self._running.pop(nodeid, None)
        self._done += 1
        self._draw()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Generator[None, Any, Any]:
        """Take pytest's letters away, and the second account of what the summary explains."""
        category, *_ = yield
        # An assertion of the scenario's own is not in the summary.
        explained = category == "failed" and _is_not_as_stated(report)
        return "not as stated" if explained else category, "", ""

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Say what happens until the run has ended."""
        self._running.clear()
        # pytest stops itself in this way too, and then what it says is the reason.
        self._interrupted = isinstance(excinfo.value, KeyboardInterrupt) and not isinstance(
            excinfo.value, pytest.Session.Interrupted
        )
        if not isinstance(excinfo.value, pytest.Session.Interrupted):
            self.line("interrupted: undoing what is not undone, judging what is recorded")

    def pytest_hil_run_judged(self, run_dir: Path) -> None:
        """Know where to look, until the summary says it."""
        self._judged = f"interrupted; what was recorded is judged.  See: hil judge {run_dir}"

    def pytest_terminal_summary(self) -> None:
        """Leave it to the summary."""
        self._judged = ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """Leave the terminal to pytest's own words."""
        self._running.clear()
        self._clear()
        try:
            yield
        finally:
            self._clear()

    # -- drawing --------------------------------------------------------------------------------------

    def _collected(self, count: int) -> None:
        if count and not self._a_round:
            self._a_round = count
            self._say_how_many()

    def _say_how_many(self) -> None:
        """Say how many scenarios there are, once that is known."""
        if self._total or not self._a_round:
            return
        self._total = self._a_round * (self._rounds or 1)
        of_each = "" if self._rounds is not None else " a round"
        what = "scenario" if self._total == 1 else "scenarios"
        self.line(f"{self._total} {what}{of_each} on the lab {self._lab}")

    def _tell(self, word: str, report: pytest.TestReport) -> None:
        """Tell what happened once for each reason: a host that is gone concerns many scenarios."""
        reason = _reason(report)
        if word == "NOT AS STATED" or (word, reason) not in self._told:
            self._told.add((word, reason))
            self.line(f"{word}  {report.nodeid}" + (f"\n  {reason}" if reason else ""))

    def _draw(self) -> None:
        if not self.live:
            return
        text = self._text()
        if text != self._drawn:
            self._out.write(_CLEAR + text if text else _CLEAR)
            self._out.flush()
            self._drawn = text

    def _clear(self) -> None:
        if self._drawn:
            self._out.write(_CLEAR)
            self._out.flush()
            self._drawn = ""

    def _text(self) -> str:
        if not self._running:
            return ""
        nodeid, title = next(reversed(self._running.items()))
        seconds = int(time.monotonic() - self._began)
        wrong = f", {self._wrong} not as stated" if self._wrong else ""
        left = max(0, self._total - self._done - len(self._running))
        of = f"/{self._total}, {left} left" if self._rounds is not None else ""
        head = f"{self._done + 1}{of}{wrong}, {seconds // 60}:{seconds % 60:02}"
        file = nodeid.split("::", 1)[0].rsplit("/", 1)[-1]
        text = "  ".join(filter(None, (head, f"{file}::{title}", self._doing)))
        return text[: self._columns() - 1]

    def _columns(self) -> int:
        try:  # of where it goes; standard output is pytest's while a test runs
            return os.get_terminal_size(self._out.fileno()).columns or 80
        except (OSError, ValueError):
            return shutil.get_terminal_size().columns


def _word(report: pytest.TestReport) -> str:
    if not report.failed:
        return ""
    if report.when == "teardown":
        return "NOT TORN DOWN"
    return run_state_of(report) or "NOT AS STATED"


def _is_not_as_stated(report: pytest.TestReport) -> bool:
    return (AS_STATED, "no") in report.user_properties and isinstance(report.longrepr, str)


def _reason(report: pytest.TestReport) -> str:
    """Return the first reason in one line, without the name of the device that the node id has."""
    # As pytest prints it, xdist's worker with its interpreter stands before it.
    text = (report.longrepr if isinstance(report.longrepr, str) else report.longreprtext).strip()
    crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", text)
    line = str(crash).partition("\n")[0]
    state = run_state_of(report)
    for prefix in (f"{state}: ", "not as stated: "):
        line = line.removeprefix(prefix)
    return line if len(line) <= 160 else f"{line[:157]}..."

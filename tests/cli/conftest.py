"""Runs `hil` in a project of its own, with a small emulated lab, in a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.plans import Ended, lay_out, write_plan
from support.processes import wait_until, with_environment

#: It ends with who tests it, whose pipes nobody would read any more; and Ctrl-C is heard also where a shell
#: has started the tests in its background, with SIGINT ignored, which children inherit.
HIL = (
    *("setpriv", "--pdeathsig", "TERM", "--", sys.executable, "-c"),
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from harness.cli import main; main()",
)


class Project:
    """A project with plans; what is started from it, and all that that starts, can be told by a mark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runtime = folder / "tmp"
        self.runtime.mkdir()
        self._mark = f"HIL_TEST_PROJECT={folder}"
        self._started: list[subprocess.Popen[str]] = []
        lay_out(folder)

    def write(self, source: str, name: str = "test_plan.py") -> Path:
        return write_plan(self.folder, source, name)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        name, _, value = self._mark.partition("=")
        process = subprocess.Popen(
            [*HIL, *words],
            cwd=self.folder,
            env={key: text for key, text in os.environ.items() if key != "HIL_INVENTORY"}
            | {name: value, "TMPDIR": str(self.runtime), "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that a signal to the group is Ctrl-C in a terminal
        )
        self._started.append(process)
        return process

    def end(self, process: "subprocess.Popen[str]") -> Ended:
        out, err = process.communicate(timeout=60)
        return Ended(self.folder, process.returncode, out, err)

    def hil(self, *words: str) -> Ended:
        return self.end(self.start(*words))

    def processes(self) -> set[int]:
        return with_environment(self._mark)

    def assert_nothing_left(self) -> None:
        """Nothing runs, and nothing lies in the folder for temporary files. Ports go with processes."""
        wait_until(lambda: not self.processes(), f"the end of {self._mark}")
        assert not list(self.runtime.iterdir())

    def close(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.communicate(timeout=20)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.close()

"""Kills of the harness at random instants of a run, and what must be true after each of them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
HIL = Path(sys.executable).with_name("hil")
MARK = "HIL_STORM"
#: Seconds that what ends with a killed harness may take to be gone on a busy machine.
GRACE = 20.0
_LISTENS = "0A"
#: The exit codes that `hil judge` may end with for a run that was cut off (docs/concepts.md): never a bug (5)
#: and never that the history could not be read (2).
READABLE = frozenset({0, 1, 3, 4, 130})


@dataclass
class Storm:
    """Runs in ``folder``; everything that they start carries ``mark`` in its environment."""

    folder: Path
    mark: str
    target: tuple[str, ...] = ("testplans/regression/flash", "--device", "subcloud1")

    def __post_init__(self) -> None:
        self.temp.mkdir(parents=True, exist_ok=True)

    @property
    def temp(self) -> Path:
        """Where temporary files of the runs go."""
        return self.folder / "t"

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start ``hil run`` with its output in a file."""
        with (self.folder / "output").open("wb") as output:
            return subprocess.Popen(
                [str(HIL), "run", *(words or self.target), "--reports", str(self.reports)],
                cwd=PROJECT,
                env=os.environ | {MARK: self.mark, "TMPDIR": str(self.temp)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        return (self.folder / "output").read_text(errors="replace")

    def processes(self) -> dict[int, str]:
        """Return every living process of a run: pid and command line."""
        wanted = f"{MARK}={self.mark}".encode()
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0") and _lives(folder):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it ended while we looked, or is somebody else's
        return found

    def ports(self) -> set[tuple[str, int]]:
        """Return the sockets on which processes of a run listen: inode and TCP port."""
        inodes = set()
        for pid in self.processes():
            for link in _links(Path(f"/proc/{pid}/fd")):
                if link.startswith("socket:["):
                    inodes.add(link[8:-1])
        return {(inode, port) for inode, port in listening() if inode in inodes}

    def strike(self, after: float) -> bool:
        """Start a run and kill it ``after`` seconds; return whether it was still running then."""
        process = self.start()
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            ports = self.ports()
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.assert_nothing_left(ports)
            return True
        self.assert_nothing_left(set())
        return False

    def assert_nothing_left(self, ports: set[tuple[str, int]]) -> None:
        """No process, port or temporary file of a killed run is left, and nothing half written."""
        gone = wait_for(lambda: not self.processes())
        assert gone, f"still running: {self.processes()}"
        # By inode: another lab may have been given the same port. They go a moment after the process.
        assert wait_for(lambda: not ports & listening()), f"still listening: {ports & listening()}"
        assert not list(self.temp.iterdir()), f"left in TMPDIR: {list(self.temp.iterdir())}"
        for run in self.runs():
            for file in run.iterdir():
                assert not file.name.startswith("."), f"half written: {file}"
                if file.suffix == ".json":
                    json.loads(file.read_text())
        held = locked_inodes()
        assert not held & {path.stat().st_ino for path in self.folder.rglob("*")}, "a lock is held"

    def runs(self) -> list[Path]:
        """Return the folders of the runs, the oldest first."""
        if not self.reports.is_dir():
            return []
        return sorted(path for path in self.reports.iterdir() if path.is_dir() and not path.is_symlink())

    def judged_again(self) -> int:
        """Judge the last run's history from disk; return the exit code, 0 where none was begun."""
        runs = self.runs()
        if not runs or not list(runs[-1].glob("history*.jsonl")):
            return 0
        done = subprocess.run(
            [str(HIL), "judge", str(runs[-1])], cwd=PROJECT, capture_output=True, text=True, timeout=120
        )
        assert done.returncode in READABLE, f"hil judge: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.returncode

    def assert_next_run_is_clean(self) -> None:
        """A run right after a kill is green and leaves whole results."""
        process = self.start("testplans/regression/flash/test_reset.py", "--device", "subcloud2")
        code = process.wait(240)
        assert code == 0, f"the next run ended with {code}:\n{self.output()[-3000:]}"
        assert json.loads((self.runs()[-1] / "results.json").read_text())["finished"] is True
        self.assert_nothing_left(set())


def instants(seed: int, count: int, span: float) -> Iterator[float]:
    """Yield the seconds after which runs are killed: most in the middle, some in the first second."""
    rng = random.Random(seed)
    for _ in range(count):
        yield rng.uniform(0.0, 1.5) if rng.random() < 0.25 else rng.uniform(0.0, span)


def wait_for(condition: Callable[[], bool], seconds: float = GRACE) -> bool:
    """Return whether ``condition`` comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def listening() -> set[tuple[str, int]]:
    """Return every listening TCP socket of this machine: inode and port."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {(row[9], int(row[1].rpartition(":")[2], 16)) for row in rows if row[3] == _LISTENS}


def locked_inodes() -> set[int]:
    """Return the inodes of all files that somebody on this machine holds a lock on."""
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return {int(word.rpartition(":")[2]) for row in rows for word in row if word.count(":") == 2}


def _lives(folder: Path) -> bool:
    return (folder / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"


def _links(folder: Path) -> Iterator[str]:
    try:
        links = list(folder.iterdir())
    except OSError:
        return
    for link in links:
        try:
            yield str(link.readlink())
        except OSError:
            continue

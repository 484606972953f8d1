"""Holds every test process to leaving nothing behind: no process, no listening socket, no thread."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from harness.record.redaction import REDACTOR

# A test that is slow once, on a busy machine, has found nothing; speed is what benchmarks/ measures.
# Hypothesis' own profile for CI has no deadline either, and tries the same examples each time.
settings.register_profile("hil", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "hil")

#: For tests that run pytest itself; fixtures that several folders use, made once for the test process.
pytest_plugins = ("pytester", "support.mounted")

#: Runs that tests start are of no interest to later ones; a test of the index names its own.
os.environ["HIL_STORE"] = "none"

#: labgrid is here to be asked; its own plugin would cost each run that a test starts half a second.
os.environ["PYTEST_ADDOPTS"] = "-p no:labgrid"

#: Seconds that what is ending at the end of a session may take to be gone.
GRACE = 5.0

LISTENING = "0A"  # state of a socket in /proc/net/tcp


def child_processes() -> set[str]:
    """Return pid and command line of every living process that this one has started, or that they have."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # it ended while we looked
        if state not in "ZX":
            parents[int(stat.parent.name)] = int(parent)
    found: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in found | {os.getpid()}} - found:
        found |= more
    return {f"process {pid}: {command_line(pid)}" for pid in found}


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "(ended)"


def listening_sockets() -> set[str]:
    """Return the TCP ports and Unix sockets on which this process listens."""
    inodes = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue  # the descriptor of this very listing
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == LISTENING and fields[9] in inodes:
                found.add(f"port {int(fields[1].rpartition(':')[2], 16)}")
    for row in Path("/proc/self/net/unix").read_text().splitlines()[1:]:
        fields = row.split()
        if fields[3] == "00010000" and fields[6] in inodes:  # __SO_ACCEPTCON: it listens
            found.add(f"socket {' '.join(fields[7:]) or 'without a name'}")
    return found


def worker_threads() -> set[str]:
    return {f"thread {thread.name}" for thread in threading.enumerate() if not thread.daemon}


PROBES: tuple[Callable[[], set[str]], ...] = (child_processes, listening_sockets, worker_threads)


def left_since(before: set[str], grace: float = GRACE) -> set[str]:
    """Return what is there and was not ``before``, once it is clear that it does not go away by itself."""
    end = time.monotonic() + grace
    while left := set().union(*(probe() for probe in PROBES)) - before:
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    return left


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail the session whose tests have left something running; set up first, so torn down last."""
    before = set().union(*(probe() for probe in PROBES))
    yield
    left = left_since(before)
    assert not left, f"the tests of this process have left behind: {', '.join(sorted(left))}"


@pytest.fixture(autouse=True)
def no_secret_of_another_test() -> Iterator[None]:
    """Forget after a test which secrets it has registered: the "x" of one is a name in another."""
    with REDACTOR.forgetting():
        yield

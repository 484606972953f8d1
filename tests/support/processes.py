"""What tests ask about processes that are not their children."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

#: Seconds for what comes about by itself, on a machine that has much else to do.
PATIENCE = 60.0


def alive(pid: int) -> bool:
    """Return whether the process runs; one that is dead and that nobody waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait for ``condition``. :raises AssertionError: it does not come about; says ``what``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(0.01)


def with_environment(mark: str) -> set[int]:
    """Return the living processes that have ``mark`` (``NAME=value``) in their environment."""
    found = set()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environ.read_bytes().split(b"\0"):
                found.add(int(environ.parent.name))
        except OSError:
            continue  # it ended, or is not ours
    return {pid for pid in found if alive(pid)}


def kill_all_with(mark: str) -> None:
    """Kill the processes that have ``mark`` in their environment, until none starts another one."""
    while found := with_environment(mark):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

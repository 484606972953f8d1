"""Starts programs that end when this process ends, however it does; a SIGKILL leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Protocol

from harness.errors import InfrastructureError

#: `setpriv` has the kernel send SIGKILL when the parent ends. If that has ended before it was asked to,
#: the shell sees another parent and does not start the program. Both become the program (exec).
_TIED = ("setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')


class Launched(Protocol):
    """The part of a ``subprocess.Popen`` that is needed of a program that was started, wherever it runs."""

    pid: int
    returncode: int | Any
    stdout: IO[bytes] | None

    def poll(self) -> int | None:
        """Return how it ended; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Return how it ended. :raises TimeoutExpired: it has not, within ``timeout`` seconds."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send it a signal; nothing where it has ended."""
        ...

    def kill(self) -> None:
        """Send it a KILL."""
        ...

    def communicate(self, input: None = None, timeout: float | None = None) -> tuple[bytes, Any]:
        """Return all that it says until its end. :raises TimeoutExpired: it has not ended in time."""
        ...


def spawn(
    argv: Sequence[str | Path],
    *,
    environ: Mapping[str, str],
    folder: Path | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start ``argv`` in a session of its own and return it; its process id is the program's own.

    :raises InfrastructureError: it cannot be started.
    """
    command = [*_TIED, str(os.getpid()), *map(str, argv)]
    answer: Future[subprocess.Popen[bytes]] = Future()

    def start() -> None:
        try:
            answer.set_result(
                subprocess.Popen(
                    command,
                    env=dict(environ),
                    cwd=folder,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    # A Ctrl-C is for us: the program is still needed to undo faults and to judge.
                    start_new_session=True,
                )
            )
        except OSError as error:
            answer.set_exception(error)

    _parent().put(start)
    try:
        return answer.result()
    except OSError as error:
        raise InfrastructureError(
            f"{argv[0]} could not be started: {error.strerror} ({error.filename}).",
            hint="setpriv comes with the package util-linux." if error.filename == "setpriv" else "",
        ) from None


class _Parent(threading.Thread):
    """The one thread that starts programs: the kernel ties them to the thread, not to the process."""

    def __init__(self) -> None:
        super().__init__(name="parent of programs", daemon=True)
        self._work: SimpleQueue[object] = SimpleQueue()
        self.start()

    def put(self, work: object) -> None:
        """Have ``work`` called."""
        self._work.put(work)

    def run(self) -> None:
        """Call what is put, for as long as the process lives."""
        while True:
            work = self._work.get()
            if callable(work):
                work()


_lock = threading.Lock()
_the_parent: _Parent | None = None


def _parent() -> _Parent:
    global _the_parent
    with _lock:
        # A fork has the object and not its thread.
        if _the_parent is None or not _the_parent.is_alive():
            _the_parent = _Parent()
        return _the_parent

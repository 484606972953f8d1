"""What a program that we started says: kept in a file, and its lines can be waited for."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from harness.registry.children import Launched
from harness.registry.logs import LogEntry, parse_line, parse_log

_CHUNK = 1 << 16
#: Where the last line is looked for.
_TAIL = 1 << 13


class ProgramLog:
    """The log of one program over all its restarts, appended to the file ``path``.

    What the program wrote before a call is in what the call gives: each takes what is still underway.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()
        self._changed = threading.Condition()
        self._pipe: int | None = None
        #: Whether the program says no more: it has closed its output, as all do when they end.
        self.ended = True
        self._follower: threading.Thread | None = None

    @property
    def size(self) -> int:
        """Bytes so far."""
        with self._changed:
            self._take()
            return self._size

    def follow(self, process: Launched) -> None:
        """Take what ``process`` writes to its standard output from now on."""
        if process.stdout is None:
            raise ValueError("the process was started without a pipe")
        self.ended = False
        self._pipe = process.stdout.fileno()
        self._follower = threading.Thread(
            target=self._follow, args=(process.stdout,), name=f"log of {process.pid}", daemon=True
        )
        self._follower.start()

    def _follow(self, stream: IO[bytes]) -> None:
        while not self.ended:
            readable(stream.fileno(), None)
            with self._changed:
                self._take()
        with self._changed:
            self._pipe = None
            stream.close()

    def _take(self) -> None:
        """Take what is in the pipe now, without waiting; the lock is held."""
        while self._pipe is not None and not self.ended and readable(self._pipe, 0):
            data = os.read(self._pipe, _CHUNK)
            if data:
                with suppress(OSError):  # a full disk is a fault that the log must not turn into another
                    self._file.write(data)
                self._size = self._file.tell()
            else:
                self.ended = True
            self._changed.notify_all()

    def finish(self) -> None:
        """Return when what an ended process has said is all here."""
        if self._follower is not None:
            self._follower.join(5.0)
            self._follower = None

    def wait_for(self, wanted: Callable[[LogEntry], bool], since: int, deadline: float) -> LogEntry | None:
        """Return the first entry from ``since`` on that is ``wanted``; None at the deadline or the end."""
        end = time.monotonic() + deadline
        at = since
        while True:
            with self._changed:
                self._take()
                size, ended = self._size, self.ended
            for line in self._lines(at, size):
                # The last one is only whole with its newline.
                if ended or line.endswith(b"\n"):
                    at += len(line)
                    entry = parse_line(line.decode(errors="replace"))
                    if wanted(entry):
                        return entry
            if not self._grows(size, ended, end - time.monotonic()):
                return None

    def _grows(self, size: int, ended: bool, seconds: float) -> bool:
        """Wait until there is more than was seen, or the program ends."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._size != size or self.ended != ended, 0.0 if ended else max(0.0, seconds)
            )

    def entries(self, since: int) -> list[LogEntry]:
        """Return what was said from the byte ``since`` on."""
        return list(parse_log(line.decode(errors="replace") for line in self._lines(since, self.size)))

    def last(self, since: int = 0) -> str:
        """Return the last line, shortened; for a message."""
        entries = self.entries(max(since, self.size - _TAIL))
        return entries[-1].raw[:500] if entries else "nothing"

    def _lines(self, since: int, until: int) -> list[bytes]:
        with self._path.open("rb") as opened:
            opened.seek(since)
            return opened.read(max(0, until - since)).splitlines(keepends=True)

    def close(self) -> None:
        """Close the file."""
        self.finish()
        self._file.close()


def readable(descriptor: int, milliseconds: int | None) -> bool:
    """Wait until ``descriptor`` can be read from, its end included; return whether it can."""
    poll = select.poll()  # select() takes no descriptor beyond 1,023
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(milliseconds))

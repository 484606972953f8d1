"""Holds a process at the opening of a file for writing, on a file system of its own (fanotify)."""

from __future__ import annotations

import ctypes
import os
import re
import select
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from harness.errors import BlockedError, DeadlineError, HarnessError, InfrastructureError

# <linux/fanotify.h>
_INIT = 0x04 | 0x01 | 0x100  # FAN_CLASS_CONTENT, FAN_CLOEXEC, FAN_REPORT_TID
_MARK = 0x01 | 0x10  # FAN_MARK_ADD, FAN_MARK_MOUNT
_OPEN_PERM = 0x10000
_AT_FDCWD = -100
_EVENT = struct.Struct("=IBBHQii")  # length, version, reserved, metadata length, mask, file, thread
_RESPONSE = struct.Struct("=iI")
_ALLOW = 1
_BUFFER = 1 << 14
_END_SECONDS = 30.0


class HeldOpening:
    """Holds the first opening for writing of a file whose path matches, and calls ``strike`` meanwhile.

    All other openings on the file system go on at once. When ``strike`` returns, or this object is
    closed, or the harness dies, the kernel lets go of what is held: its end of the line is closed.

    :param root: where the file system is mounted; only one of our own may be marked.
    :param victim: the process whose openings are held. :param path: what the path must match, from
        ``root`` on.
    :param strike: called with the path while the opening is held; it is to call ``let go`` (its second
        argument) once the process has been killed, before others open files there.
    :raises BlockedError: the kernel does not offer it, or we are not root.
    """

    def __init__(
        self,
        root: Path,
        victim: int,
        path: re.Pattern[str],
        strike: Callable[[str, Callable[[], None]], object],
    ) -> None:
        self._root = root.resolve()
        self._victim = victim
        self._pattern = path
        self._strike = strike
        self._lock = threading.Lock()
        self._error: HarnessError | None = None
        self._over = threading.Event()
        #: The path that was held; empty where none was.
        self.struck = ""
        self._wake, self._waker = os.pipe()
        self._line = _opened(self._root)
        self._thread = threading.Thread(target=self._watch, name="held opening", daemon=True)
        self._thread.start()

    def wait(self, deadline: float) -> str:
        """Return the path that was held, once all is done. :raises DeadlineError: it was never opened."""
        if not self._over.wait(deadline) or not (self.struck or self._error):
            raise DeadlineError(
                f"Waited {deadline:g} s for process {self._victim} to open a file for writing: "
                f"{self._pattern.pattern}."
            )
        if self._error is not None:
            raise self._error
        return self.struck

    def close(self) -> None:
        """Hold nothing any more; may be called twice."""
        with self._lock:
            # Once the thread has ended, these numbers may be of files that somebody else has opened.
            if self._waker >= 0:
                os.write(self._waker, b"x")
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_SECONDS)
        self._let_go()

    def _let_go(self) -> None:
        with self._lock:
            if self._line >= 0:
                os.close(self._line)
                self._line = -1

    def _watch(self) -> None:
        try:
            while not self._over.is_set():
                ready, _, _ = select.select([self._line, self._wake], [], [])
                if self._wake in ready:
                    return
                self._answer(os.read(self._line, _BUFFER))
        except HarnessError as error:
            self._error = error
        except OSError as error:
            self._error = InfrastructureError(f"The opening could not be watched: {error.strerror or error}.")
        finally:
            self._let_go()
            with self._lock:
                os.close(self._wake)
                os.close(self._waker)
                self._waker = -1
            self._over.set()

    def _answer(self, events: bytes) -> None:
        at = 0
        while at < len(events):
            length, _, _, _, _, opened, thread = _EVENT.unpack_from(events, at)
            at += length
            try:
                path = str(Path(f"/proc/self/fd/{opened}").readlink()).removeprefix(f"{self._root}/")
                meant = self._pattern.fullmatch(path) and self._is_victim(thread) and _writes(thread)
                if meant and not self.struck:
                    self.struck = path
                    self._strike(path, self._let_go)
                    self._over.set()
                elif self._line >= 0:
                    os.write(self._line, _RESPONSE.pack(opened, _ALLOW))
            finally:
                os.close(opened)

    def _is_victim(self, thread: int) -> bool:
        return Path(f"/proc/{self._victim}/task/{thread}").is_dir()


def _writes(thread: int) -> bool:
    """Return whether the thread, which waits in an openat, opens for writing: its third argument."""
    try:
        words = Path(f"/proc/{thread}/syscall").read_text().split()
        return int(words[3], 16) & os.O_ACCMODE != os.O_RDONLY
    except (OSError, IndexError, ValueError):
        return False  # it was killed meanwhile


def _opened(root: Path) -> int:
    """Return a fanotify descriptor that asks for permission at every opening below ``root``."""
    libc = ctypes.CDLL(None, use_errno=True)
    line: int = libc.fanotify_init(ctypes.c_uint(_INIT), ctypes.c_uint(os.O_RDONLY | os.O_CLOEXEC))
    if line < 0:
        raise _blocked("fanotify_init")
    mask, where = ctypes.c_uint64(_OPEN_PERM), os.fsencode(root)
    if libc.fanotify_mark(line, ctypes.c_uint(_MARK), mask, _AT_FDCWD, where) != 0:
        problem = _blocked("fanotify_mark")
        os.close(line)
        raise problem
    return line


def check_can_hold(root: Path) -> None:
    """Return if openings below ``root`` can be held. :raises BlockedError: they cannot."""
    os.close(_opened(root))


def _blocked(call: str) -> BlockedError:
    return BlockedError(
        f"The opening of files cannot be held here: {call}: {os.strerror(ctypes.get_errno())}.",
        hint="It needs root with the capability SYS_ADMIN, and a kernel with FANOTIFY_ACCESS_PERMISSIONS.",
    )

"""The kernel log of an emulated host, which ``dmesg`` prints, and ``/dev/kmsg``, where programs read it."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable

from harness.emulator.vfs import Attribute, Device, Handle

_LOG_LINES = 4096
_PRIORITY = 6  # facility kern, level info


class KernelLog:
    """The ring buffer: seconds since boot and text of each line."""

    def __init__(self, uptime: Callable[[], float]) -> None:
        self._uptime = uptime
        self._entries: deque[tuple[float, str]] = deque(maxlen=_LOG_LINES)
        self._added = 0

    def add(self, text: str) -> None:
        """Append one line."""
        self._entries.append((self._uptime(), text))
        self._added += 1

    def entries(self) -> list[tuple[float, str]]:
        """Return what is there, oldest first."""
        return list(self._entries)

    def clear(self) -> None:
        """Forget everything, as ``dmesg -c`` and a reboot do."""
        self._entries.clear()

    def record(self, number: int) -> tuple[int, str] | None:
        """Return number and text of the first line from ``number`` on, as ``/dev/kmsg`` has it, or None.

        Form: ``priority,number,microseconds,-;text`` (kernel, Documentation/ABI/testing/dev-kmsg).
        """
        entries = list(self._entries)
        first = self._added - len(entries)
        number = max(number, first)
        if number >= self._added:
            return None
        seconds, text = entries[number - first]
        return number, f"{_PRIORITY},{number},{int(seconds * 1e6)},-;{text}\n"


class LogDevice(Device):
    """``/dev/kmsg``, for reading: each open file has its own place in the log."""

    __slots__ = ("log",)

    def __init__(self, log: KernelLog) -> None:
        super().__init__()
        self.log = log

    def opened(self, path: str) -> Handle:
        """Return an open file at the oldest line."""
        return _LogHandle(self, self.log, path)


class _LogHandle(Handle):
    """One read gives one line. At the end EAGAIN: nobody waits for a line that may never come."""

    __slots__ = ("_log", "_number")

    def __init__(self, node: Attribute, log: KernelLog, path: str) -> None:
        super().__init__(node, path)
        self._log = log
        self._number = 0

    def pread(self, offset: int, length: int | None = None) -> bytes:
        """Return the next line, whatever the offset. :raises OSError: EAGAIN at the end, EINVAL: too long."""
        found = self._log.record(self._number)
        if found is None:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        number, line = found
        data = line.encode()
        if length is not None and len(data) > length:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._number = number + 1
        return data

"""Hashes what arrives while more arrives: a body is read about as fast as the slower of the two goes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType

#: Small enough to be hashed while it is in a cache of the processor.
_BUFFER = 1 << 18
#: One is filled, one is hashed, and one waits, so that neither side does.
_BUFFERS = 3


class BodyHash:
    """The hash of one body after the other, in bounded memory.

    What fits into one buffer is hashed where it is; a thread is only started for more.
    """

    def __init__(self) -> None:
        #: Bytes of the body that is being read, or was read last.
        self.received = 0
        self._free: SimpleQueue[memoryview] = SimpleQueue()
        for _ in range(_BUFFERS):
            self._free.put(memoryview(bytearray(_BUFFER)))
        self._filled: SimpleQueue[tuple[memoryview, int] | None] = SimpleQueue()

    def take(self, readinto: Callable[[memoryview], int], algorithm: str) -> tuple[int, str]:
        """Read until ``readinto`` gives 0 bytes; return how many there were, and their hash in hex.

        :raises Exception: whatever ``readinto`` raises; ``received`` then has the bytes that came before.
        """
        self.received = 0
        hashed = hashlib.new(algorithm)
        buffer, size = self._fill(readinto)
        if size < _BUFFER:
            hashed.update(buffer[:size])
            self._free.put(buffer)
            return size, hashed.hexdigest()
        with _Hasher(hashed.update, self._filled, self._free):
            while size:
                self._filled.put((buffer, size))
                buffer, size = self._fill(readinto)
            self._free.put(buffer)
        return self.received, hashed.hexdigest()

    def _fill(self, readinto: Callable[[memoryview], int]) -> tuple[memoryview, int]:
        """Fill a free buffer, the last one in part."""
        buffer = self._free.get()
        size = 0
        try:
            while size < _BUFFER and (got := readinto(buffer[size:])):
                size += got
                self.received += got
        except BaseException:
            self._free.put(buffer)
            raise
        return buffer, size


class _Hasher:
    """The thread that hashes filled buffers, in their order, until the body ends."""

    def __init__(
        self,
        update: Callable[[memoryview], None],
        filled: SimpleQueue[tuple[memoryview, int] | None],
        free: SimpleQueue[memoryview],
    ) -> None:
        self._update = update
        self._filled = filled
        self._free = free
        self._thread = threading.Thread(target=self._run, name="hash of a body", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._filled.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (next_one := self._filled.get()) is not None:
            buffer, size = next_one
            self._update(buffer[:size])
            self._free.put(buffer)

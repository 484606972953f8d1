"""How a shell line on a host ended, and its two streams, taken as they come."""

from __future__ import annotations

import codecs
import select
import time
from collections.abc import Callable
from dataclasses import dataclass

import paramiko

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Ran:
    """How a shell line ended: exit code (-1: by a signal), its streams, and whether the link broke."""

    exit_code: int
    out: bytes
    err: bytes
    lost: bool


class Streams:
    """What a command prints on its two streams, taken as it comes so that neither fills its window."""

    def __init__(self, channel: paramiko.Channel, on_output: Callable[[str], None] | None) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self._channel = channel
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)

    def drain_until(self, end: float, over: Callable[[], bool] = lambda: False) -> bool:
        """Take output until the command ends, or is ``over`` by what it has printed.

        Return False when ``end`` (monotonic) comes first.
        """
        channel = self._channel
        while True:
            # Asked before taking: what arrives in between is taken by the next round.
            ended = bool(channel.eof_received or channel.closed)
            while channel.recv_ready():
                self._take(channel.recv(_CHUNK))
            while channel.recv_stderr_ready():
                self.err += channel.recv_stderr(_CHUNK)
            if ended or over():
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._poll.poll(left * 1000)

    def _take(self, data: bytes) -> None:
        self.out += data
        if self._on_output is not None and (text := self._decoder.decode(data)):
            self._on_output(text)


def shown(line: str) -> str:
    """Return a shell line for a message."""
    return f"`{line if len(line) <= 120 else line[:117] + '...'}`"

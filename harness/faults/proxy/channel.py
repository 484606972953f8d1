"""One side of a connection: a socket, plain or TLS, that is read and written without waiting."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

_BUFFER = 256 << 10
#: State of a socket (include/net/tcp_states.h).
_TCP_CLOSE = 7
_RESET = struct.pack("ii", 1, 0)


class Stopped(Exception):
    """The proxy ends."""


class Channel:
    """A socket and the buffer of what was read from it and is not passed on yet."""

    def __init__(self, opened: socket.socket) -> None:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = opened
        #: Nothing more comes: the other side has closed, or broken the connection.
        self.ended = False
        #: It was broken (RST) rather than closed.
        self.broken = False
        #: Which events reading and writing wait for; TLS may turn them round.
        self.reads_on = select.POLLIN
        self.writes_on = select.POLLOUT
        #: We have told the other side that nothing more comes.
        self.written = False
        self._start = self._end = 0

    @cached_property
    def _buffer(self) -> memoryview:
        return memoryview(bytearray(_BUFFER))

    @property
    def view(self) -> memoryview:
        """What was read and not consumed."""
        return self._buffer[self._start : self._end]

    @property
    def full(self) -> bool:
        """Whether the buffer takes no more."""
        return self._end - self._start == _BUFFER

    def consume(self, count: int) -> None:
        """Drop the first ``count`` bytes of the view."""
        self._start += count
        if self._start == self._end:
            self._start = self._end = 0

    def fill(self) -> bool:
        """Read what has come, as far as there is room; return whether anything has, an end included."""
        if self.ended or self.full:
            return False
        if self._end == _BUFFER:
            count = self._end - self._start
            self._buffer[:count] = self._buffer[self._start : self._end]
            self._start, self._end = 0, count
        before = self._end
        try:
            while self._end < _BUFFER:
                got = self.socket.recv_into(self._buffer[self._end :])
                if not got:
                    self.ended = True
                    self.broken = self._was_reset()
                    return True
                self._end += got
                if not isinstance(self.socket, ssl.SSLSocket):
                    break  # a TLS record is 16 KiB at most; a plain read takes all there is
        except (BlockingIOError, ssl.SSLWantReadError):
            self.reads_on = select.POLLIN
        except ssl.SSLWantWriteError:
            self.reads_on = select.POLLOUT
        except OSError:
            self.ended = self.broken = True
            return True
        return self._end > before

    def _was_reset(self) -> bool:
        """Return whether what looks like an end was a RST: Python 3.11 tells them apart only without TLS."""
        # After the other side's FIN the socket waits for ours; closed without that, it was reset.
        state = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        return state == _TCP_CLOSE and not self.written

    def write(self, data: memoryview | bytes) -> int:
        """Write what can be written now; return how much. :raises OSError: the connection is broken."""
        done = 0
        view = memoryview(data)
        try:
            while done < len(view):
                done += self.socket.send(view[done:])
        except (BlockingIOError, ssl.SSLWantWriteError):
            self.writes_on = select.POLLOUT
        except ssl.SSLWantReadError:
            self.writes_on = select.POLLIN
        return done

    def end_of_writing(self) -> None:
        """Tell the other side that nothing more comes (FIN); what it sends can still be read."""
        self.written = True
        with contextlib.suppress(OSError, ValueError):
            if isinstance(self.socket, ssl.SSLSocket):
                self.socket.unwrap()
        with contextlib.suppress(OSError):
            # Not of the SSLSocket, which could not be read any more.
            socket.socket.shutdown(self.socket, socket.SHUT_WR)

    def close(self) -> None:
        """Close it; in TLS, with the notice of that."""
        if isinstance(self.socket, ssl.SSLSocket) and not self.broken:
            with contextlib.suppress(OSError, ValueError):
                self.socket.unwrap()
        self.socket.close()

    def cut(self) -> None:
        """Close it without a word, whatever was to come."""
        self.socket.close()

    def reset(self) -> None:
        """Break it: the other side gets a RST."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.socket.close()


@dataclass(slots=True)
class Waiter:
    """Waits for sockets, and for the end of the proxy: then the descriptor ``stop`` is readable."""

    stop: int
    _events: dict[int, int] = field(default_factory=dict)

    def on(self, channel: Channel | socket.socket, events: int) -> None:
        """Have the next wait end on these events of ``channel``, too."""
        number = (channel.socket if isinstance(channel, Channel) else channel).fileno()
        self._events[number] = self._events.get(number, 0) | events

    def wait(self, seconds: float | None = None) -> dict[int, int]:
        """Return the events that came, by descriptor; none after ``seconds``.

        :raises Stopped: the proxy ends.
        """
        poll = select.poll()
        poll.register(self.stop, select.POLLIN)
        for number, events in self._events.items():
            poll.register(number, events)
        self._events = {}
        came = dict(poll.poll(None if seconds is None else seconds * 1000))
        if self.stop in came:
            raise Stopped
        return came


def shake_hands(wrapped: ssl.SSLSocket, waiter: Waiter) -> None:
    """Do the handshake of TLS. :raises OSError: it fails."""
    while True:
        try:
            wrapped.do_handshake()
            return
        except ssl.SSLWantReadError:
            waiter.on(wrapped, select.POLLIN)
        except ssl.SSLWantWriteError:
            waiter.on(wrapped, select.POLLOUT)
        waiter.wait()


def connect(host: str, port: int, waiter: Waiter) -> socket.socket:
    """Return a connection to the first address of ``host`` that takes one. :raises OSError: none does."""
    last: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in _addresses(host, port):
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                opened.connect(address)
            waiter.on(opened, select.POLLOUT)
            waiter.wait()
            if number := opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(number, os.strerror(number))
        except OSError as error:
            opened.close()
            last = error
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    raise last


def _addresses(host: str, port: int) -> Iterable[tuple[int, int, int, str, tuple[object, ...]]]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

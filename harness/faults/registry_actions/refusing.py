"""Holds the port of a registry that is down, and counts the connections that get nothing there."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from harness.errors import HarnessError
from harness.registry.ports import listen

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close by a RST
_END_SECONDS = 30.0


class Refusing:
    """Breaks every connection to a port until there were ``count``, then calls ``over``.

    A port that nobody holds refuses by itself, but nobody can count that.

    :param over: what starts the service again; its error is raised by :meth:`close`.
    :raises InfrastructureError: the port is taken.
    """

    def __init__(self, address: str, port: int, count: int, over: Callable[[], object]) -> None:
        (self._listener,) = listen((address,), port)
        self._count = count
        self._over = over
        self._error: HarnessError | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._refuse, name="refusing connections", daemon=True)
        self._thread.start()

    def _refuse(self) -> None:
        with self._listener:
            for _ in range(self._count):
                try:
                    connection, _ = self._listener.accept()
                except OSError:
                    return  # it was closed before
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                connection.close()
        if not self._closed:
            try:
                self._over()
            except HarnessError as error:
                self._error = error

    def close(self) -> None:
        """Refuse no more, and wait for what was begun. :raises HarnessError: the service did not start."""
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._thread.join(_END_SECONDS)
        if self._error is not None:
            raise self._error

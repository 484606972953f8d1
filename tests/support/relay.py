"""A TCP relay in front of a server: its connections can be cut, or go silent as a dead machine's do."""

import socket
import threading
from contextlib import suppress


class Relay:
    def __init__(self, port: int, port_here: int = 0) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", port_here))
        self._pairs: list[socket.socket] = []
        self._open = threading.Event()
        self._open.set()
        self.port = self._server.getsockname()[1]
        self.connections = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            far = socket.create_connection(("127.0.0.1", self._target))
            self._pairs += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    def _copy(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                self._open.wait()
                other.sendall(data)
        except OSError:
            pass

    def stall(self) -> None:
        """Let nothing through any more, without a word to either side."""
        self._open.clear()

    def cut(self) -> None:
        for one in self._pairs:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._pairs.clear()

    def close(self) -> None:
        """Cut everything, and listen no more; may be called twice."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._open.set()
        self.cut()
        self._thread.join()

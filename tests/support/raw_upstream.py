"""An upstream made of a socket: it does to a connection exactly what a test says, well-behaved or not."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from harness.registry.wire import Endpoint


class RawUpstream:
    """Runs ``script(connection)`` for each connection, in a thread each."""

    def __init__(
        self,
        script: Callable[[socket.socket], None],
        *,
        identity: tuple[Path, Path] | None = None,
        ca_file: Path | None = None,
    ) -> None:
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._context: ssl.SSLContext | None = None
        if identity is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*identity)
        scheme = "https" if identity else "http"
        self.endpoint = Endpoint(f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}", ca_file)
        self.connections = 0
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> "RawUpstream":
        return self

    def __exit__(self, *exception: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), "a script of the upstream does not end"

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(accepted,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            connection.settimeout(30)
            self._script(connection)
        except OSError:
            pass  # the proxy went away first
        finally:
            connection.close()


def read_head(connection: socket.socket) -> bytes:
    """Return one head, byte by byte, so that nothing after it is taken; empty at an end."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        piece = connection.recv(1)
        if not piece:
            return b""
        data += piece
    return data


def read_exactly(connection: socket.socket, count: int) -> bytes:
    """Return ``count`` bytes, fewer at an end."""
    data = bytearray()
    while len(data) < count and (piece := connection.recv(min(1 << 16, count - len(data)))):
        data += piece
    return bytes(data)


def read_all(connection: socket.socket) -> bytes:
    """Return everything until the end."""
    return read_exactly(connection, 1 << 40)


def break_off(connection: socket.socket) -> None:
    """End the connection by a RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()

"""Where programs on this machine ask a lab for a host's faces: a Unix socket beside the control's.

The first line from a client is ``{"host": NAME, "stand_ins": {PATH: KIND}}``; an open ``/dev/fuse`` that
comes with it is served from then on. The first line back is ``{"ready": {...}}`` or ``{"error": TEXT,
"hint": TEXT}``. Each further line back tells of a device that came or went, ``{"event": {...}}``, or that
the host went down, ``{"down": true}``. The conversation ends when the client closes it.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from harness.emulator.faces.devices import DeviceEvent, Hotplug
from harness.emulator.faces.fuse import FuseFace
from harness.emulator.faces.umockdev import description, device_description
from harness.emulator.host import EmulatedHost
from harness.emulator.vfs import Vfs
from harness.errors import BlockedError, ConfigurationError, HarnessError

_REQUEST_BYTES = 1 << 16


class Door:
    """Serves the faces of ``hosts``, in threads of its own."""

    def __init__(self, hosts: Mapping[str, EmulatedHost]) -> None:
        self._hosts = hosts
        self._lock = threading.Lock()
        self._hotplug: dict[str, Hotplug] = {}
        self._clients: dict[str, list[_Client]] = {name: [] for name in hosts}
        for name, host in hosts.items():
            host.on_down.append(partial(self._went_down, name))

    def serve(self, path: Path) -> None:
        """Listen at ``path``."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(path))
        path.chmod(0o600)
        server.listen()

        def accept() -> None:
            while True:
                connection, _ = server.accept()
                threading.Thread(target=self._converse, args=(connection,), name="face", daemon=True).start()

        threading.Thread(target=accept, name="faces-accept", daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with connection:
            line, descriptors = _request(connection)
            if not line.endswith(b"\n"):
                return  # it went away
            client = _Client(connection)
            try:
                self._show(json.loads(line), descriptors, client)
            except HarnessError as error:
                for descriptor in descriptors:
                    os.close(descriptor)
                client.tell({"error": error.message, "hint": error.hint})
            client.send_until_closed()

    def _show(self, request: dict[str, Any], descriptors: list[int], client: _Client) -> None:
        """Begin to show a host to ``client``. :raises HarnessError: it cannot be shown."""
        host = self._hosts.get(request["host"])
        if host is None:
            raise ConfigurationError(
                f"The emulated lab has no host {request['host']!r}.", hint=f"Known: {', '.join(self._hosts)}."
            )
        if not host.powered:
            raise BlockedError(f"The emulated host {host.name} has no power; no program can run on it.")
        with self._lock:
            if host.name not in self._hotplug:
                self._hotplug[host.name] = Hotplug(host)
            hotplug = self._hotplug[host.name]
            self._clients[host.name].append(client)
        tell = client.event if descriptors else partial(client.described_event, host.vfs)
        hotplug.subscribe(tell)
        client.on_close = lambda: self._forget(host.name, client, lambda: hotplug.unsubscribe(tell))
        for descriptor in descriptors:
            FuseFace(host, descriptor, request.get("stand_ins", {})).start()
        ready = {"hostname": host.hostname}
        if not descriptors:
            ready["description"] = description(host.vfs)
        client.tell({"ready": ready})

    def _forget(self, host: str, client: _Client, unsubscribe: Callable[[], None]) -> None:
        unsubscribe()
        with self._lock:
            self._clients[host].remove(client)

    def _went_down(self, host: str) -> None:
        with self._lock:
            clients = list(self._clients[host])
        for client in clients:
            client.tell({"down": True})


class _Client:
    """Who is shown a host; what it is told waits in a queue, so that no host waits for it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._queue: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.on_close: Callable[[], None] = lambda: None

    def tell(self, message: dict[str, Any]) -> None:
        """Have ``message`` sent."""
        self._queue.put(message)

    def event(self, event: DeviceEvent) -> None:
        """Have the client told of ``event``."""
        self.tell({"event": asdict(event)})

    def described_event(self, files: Vfs, event: DeviceEvent) -> None:
        """Have the client told of ``event``, with the description of what came."""
        text = device_description(files, event.path, event.properties) if event.action == "add" else ""
        self.tell({"event": asdict(event) | {"description": text}})

    def send_until_closed(self) -> None:
        """Send what is told, until the client closes the conversation."""
        threading.Thread(target=self._watch, name="face-watch", daemon=True).start()
        try:
            while (message := self._queue.get()) is not None:
                self._connection.sendall(json.dumps(message).encode() + b"\n")
                if "error" in message:
                    return
        except OSError:
            pass  # it is closed
        finally:
            self.on_close()

    def _watch(self) -> None:
        try:
            while self._connection.recv(4096):
                pass
        except OSError:
            pass  # it was closed on our side
        self._queue.put(None)


def _request(connection: socket.socket) -> tuple[bytes, list[int]]:
    """Return the first line from the client (without its end where it went away) and its descriptors."""
    line, descriptors, _, _ = socket.recv_fds(connection, _REQUEST_BYTES, 1)
    piece = line
    while piece and not line.endswith(b"\n"):
        piece = connection.recv(_REQUEST_BYTES)
        line += piece
    return line, list(descriptors)

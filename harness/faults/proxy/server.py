"""The proxy itself: its listeners, its connections, its gates and its evidence."""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.errors import InfrastructureError
from harness.faults.proxy.connection import Connection
from harness.faults.proxy.exchanges import Exchange, ExchangeLog
from harness.faults.proxy.gate import Gate, Request
from harness.registry.configuration import socket_address
from harness.registry.ports import listen
from harness.registry.wire import Endpoint

if TYPE_CHECKING:
    from harness.faults.registry_points import FaultPoint, Step
    from harness.registry.tls import ServerIdentity

_END_SECONDS = 10.0
#: How long no connection is accepted when the process has no descriptor left for one.
_EXHAUSTED_MS = 100


class FaultProxy:
    """Stands before a registry or a token service and passes everything on, but for what a gate holds.

    Each connection of a client has one of its own to the upstream, and one thread. HTTP/1.1 only.
    What the upstream does to a connection is done to the client's: nothing is invented.

    :param tls: what clients are shown; None: plain HTTP. :param addresses: all get the same port.
    :param port: 0 chooses one that is free at all addresses.
    """

    def __init__(
        self,
        upstream: Endpoint,
        *,
        tls: ServerIdentity | None = None,
        addresses: tuple[str, ...] = ("127.0.0.1", "::1"),
        port: int = 0,
        name: str = "registry",
    ) -> None:
        self.name = name
        self.log = ExchangeLog()
        self._upstream = upstream
        self._identity = tls
        self._context = _server_context(tls) if tls else None
        self._addresses = addresses
        self._port = port
        self._lock = threading.Lock()
        self._gates: list[Gate] = []
        self._requests = 0
        self._accepted = 0
        self._listeners: list[socket.socket] = []
        self._threads: set[threading.Thread] = set()
        self._stop = -1

    def __enter__(self) -> FaultProxy:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The port at all addresses; chosen at the first start."""
        return self._port

    @property
    def endpoint(self) -> Endpoint:
        """Where clients reach it, at its first address."""
        scheme = "https" if self._identity else "http"
        authority = self._identity.authority if self._identity else None
        return Endpoint(f"{scheme}://{socket_address(self._addresses[0], self._port)}", authority)

    @property
    def upstream(self) -> Endpoint:
        """Where new requests go."""
        return self._upstream

    @property
    def identity(self) -> ServerIdentity | None:
        """What new connections are shown; None: plain HTTP."""
        return self._identity

    @property
    def context(self) -> ssl.SSLContext | None:
        """What new connections are wrapped in."""
        return self._context

    @property
    def stop(self) -> int:
        """The descriptor that becomes readable when the proxy ends."""
        return self._stop

    # -- start and end ------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen. :raises InfrastructureError: the port is taken, or there is no such address."""
        self._listeners = listen(self._addresses, self._port)
        self._port = self._listeners[0].getsockname()[1]
        for listener in self._listeners:
            listener.setblocking(False)
        self._stop = os.eventfd(0)
        self._spawn(self._accept, f"{self.name} proxy")

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        def run() -> None:
            try:
                target()
            finally:
                with self._lock:
                    self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name=name, daemon=True)
        with self._lock:  # who ends the proxy sees it with its start, and can wait for it
            self._threads.add(thread)
            thread.start()

    def _accept(self) -> None:
        poll = select.poll()
        poll.register(self._stop, select.POLLIN)
        by_number = {listener.fileno(): listener for listener in self._listeners}
        for number in by_number:
            poll.register(number, select.POLLIN)
        while True:
            ready = [number for number, _ in poll.poll()]
            if self._stop in ready:
                return
            for number in ready:
                try:
                    accepted, _ = by_number[number].accept()
                except BlockingIOError:
                    continue
                except OSError:
                    rest = select.poll()
                    rest.register(self._stop, select.POLLIN)
                    rest.poll(_EXHAUSTED_MS)
                    continue
                self._accepted += 1
                connection = Connection(self, accepted, self._accepted)
                self._spawn(connection.serve, f"{self.name} proxy connection {self._accepted}")

    def close(self) -> None:
        """Let go of everything, break every connection and free the port; may be called twice.

        :raises InfrastructureError: a connection does not end.
        """
        if self._stop < 0:
            return
        os.eventfd_write(self._stop, 1)
        with self._lock:
            gates, self._gates = self._gates, []
        for gate in gates:
            gate.disarm()
        for listener in self._listeners:
            listener.close()
        while thread := next(iter(self._running()), None):
            thread.join(_END_SECONDS)
            if thread.is_alive():
                raise InfrastructureError(f"Waited {_END_SECONDS:g} s for the {thread.name} to end.")
        os.close(self._stop)
        self._stop = -1

    def _running(self) -> list[threading.Thread]:
        with self._lock:
            return list(self._threads)

    # -- what is done to requests -------------------------------------------------------------------

    def retarget(self, upstream: Endpoint) -> None:
        """Send every request that comes from now on there."""
        self._upstream = upstream

    def exchange_certificate(self, identity: ServerIdentity) -> None:
        """Show ``identity`` to connections that are made from now on."""
        self._context = _server_context(identity)
        self._identity = identity

    def arm(
        self,
        point: FaultPoint,
        *,
        repository: str = "",
        matching: Callable[[Request], bool] | None = None,
    ) -> Gate:
        """Return a gate that catches the point's nth request from now on.

        :param repository: counts only requests for it. :param matching: counts only what it returns True for.
        :raises ConfigurationError: the point is not resolved.
        """
        gate = Gate(point, repository, matching)
        with self._lock:
            self._gates.append(gate)
        return gate

    def exchanges(self, since: int = 0) -> tuple[Exchange, ...]:
        """Return the requests after the one of the number ``since``, those that still go on as well."""
        return self.log.since(since)

    def steps_seen(self, since: int = 0) -> Counter[Step]:
        """Return how often each step was passed after the request of the number ``since``."""
        return self.log.steps(since)

    @property
    def last(self) -> int:
        """The number of the newest request, for ``since``."""
        return self._requests

    # -- for its connections ------------------------------------------------------------------------

    def number(self) -> int:
        """Return the number of the next request."""
        with self._lock:
            self._requests += 1
            return self._requests

    def catching(self, request: Request) -> list[Gate]:
        """Return the gates that ``request`` has run into, in the order in which they were armed."""
        with self._lock:
            caught = [gate for gate in self._gates if gate.catches(request)]
            self._gates = [gate for gate in self._gates if not gate.spent]
        return caught


def _server_context(identity: ServerIdentity) -> ssl.SSLContext:
    """Return what clients are met with. :raises InfrastructureError: its files are none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(identity.certificate, identity.key)
    except (OSError, ssl.SSLError) as error:
        raise InfrastructureError(
            f"The certificate {identity.certificate} and its key cannot be used: {error}."
        ) from None
    return context

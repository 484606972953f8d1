"""One connection of a client, with its own to the upstream: request after request until one of them ends."""

from __future__ import annotations

import http
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harness.faults.proxy.bodies import BrokenBody, Counted
from harness.faults.proxy.channel import Channel, Stopped, Waiter, connect, shake_hands
from harness.faults.proxy.gate import Decision, Request
from harness.faults.proxy.heads import NotHttp, RequestHead, end_of_head
from harness.faults.proxy.passage import Decided, Flow, Gone, Passage, hold
from harness.faults.registry_points import classify
from harness.registry.wire import Endpoint
from harness.tls_trust import client_context

if TYPE_CHECKING:
    from harness.faults.proxy.server import FaultProxy

#: How long a client that was answered early may go on sending before it is closed, as Go's server does.
_LINGER_SECONDS = 0.5


class Connection:
    """A connection that was accepted; ``number`` is its name in the evidence."""

    def __init__(self, proxy: FaultProxy, accepted: socket.socket, number: int) -> None:
        self._proxy = proxy
        self._number = number
        self._waiter = Waiter(proxy.stop)
        self._tls = proxy.context
        self._client = Channel(accepted)
        self._upstream: Channel | None = None
        self._target: Endpoint | None = None
        #: Its upstream broke while an answer was held: the client's breaks at its next request.
        self._outlived = False

    def serve(self) -> None:
        """Serve it until it ends."""
        try:
            self._meet()
            while self._exchange():
                pass
            self._linger()
            self._client.close()
        except Decided as decided:
            self._carry_out(decided.decision)
        except Gone as gone:
            if gone.reset:
                self._client.reset()
            else:
                self._client.close()
        except (NotHttp, BrokenBody, Stopped, OSError):
            pass  # what cannot be followed is closed; so is everything at the end
        finally:
            self._client.cut()
            if self._upstream is not None:
                self._upstream.close()

    def _meet(self) -> None:
        if self._tls is not None:
            plain = self._client.socket
            wrapped = self._tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
            self._client.socket = wrapped
            shake_hands(wrapped, self._waiter)

    def _exchange(self) -> bool:
        """Pass one request and its answer; return whether another may follow."""
        data = self._next_head()
        if data is None:
            return False
        head = RequestHead.read(data)
        step, repository = classify(head.method, head.target)
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.head.named.items()}
        request = Request(
            self._proxy.number(), self._number, head.method, head.target, step, repository, named
        )
        log = self._proxy.log
        log.begin(request)
        passage: Passage | None = None
        try:
            gates = self._proxy.catching(request)
            hold([gate for gate in gates if gate.point.when == "before"], request, 0, log, self._waiter)
            upstream = self._reach()
            passage = Passage(
                request, head, self._client, upstream, gates, self._waiter, log, self._forwarded()
            )
            goes_on = passage.run()
            self._outlived = passage.outlived
            return goes_on
        except Stopped:
            log.note(request.number, done="the proxy ended")
            raise
        except (Gone, BrokenBody, OSError) as error:
            log.note(request.number, done=str(error))
            raise
        finally:
            received, sent = passage.passed if passage is not None else (0, 0)
            log.note(request.number, ended=time.time(), received=received, sent=sent)

    def _next_head(self) -> bytes | None:
        """Return the next request's head; None where the client has ended.

        :raises Gone: the upstream has closed while nothing was asked of it.
        """
        while True:
            if size := end_of_head(self._client.view):
                data = bytes(self._client.view[:size])
                self._client.consume(size)
                return data
            if self._client.ended:
                return None
            if self._client.fill():
                continue
            if self._upstream is not None and not (self._client.view or self._outlived):
                self._upstream.fill()
                if self._upstream.ended or self._upstream.view:
                    raise Gone("the upstream closed", reset=self._upstream.broken)
                self._waiter.on(self._upstream, self._upstream.reads_on)
            self._waiter.on(self._client, self._client.reads_on)
            self._waiter.wait()

    def _reach(self) -> Channel:
        """Return the connection to the upstream: a new one for the first request, and after a retarget.

        :raises Gone: the upstream cannot be reached, or is not who it should be; or it broke the connection
            since the last request, as it would have broken the client's.
        """
        target = self._proxy.upstream
        if self._upstream is not None:
            self._upstream.fill()
            if self._upstream.ended or self._upstream.view:
                raise Gone("the upstream closed before the request", reset=self._upstream.broken)
            if self._target == target:
                return self._upstream
            self._upstream.close()
            self._upstream = None
        self._target = target
        try:
            self._upstream = self._connected(target)
        except OSError as error:
            raise Gone(f"the upstream {target.url} cannot be reached: {error}", reset=True) from None
        return self._upstream

    def _connected(self, target: Endpoint) -> Channel:
        parts = urlsplit(target.url)
        host, secure = str(parts.hostname), parts.scheme == "https"
        channel = Channel(connect(host, parts.port or (443 if secure else 80), self._waiter))
        try:
            if secure:
                # Anew for each connection: authority and certificate may be exchanged at a restart.
                context = client_context(target.ca_file)
                context.set_alpn_protocols(["http/1.1"])
                channel.socket = wrapped = context.wrap_socket(
                    channel.socket, server_hostname=host, do_handshake_on_connect=False
                )
                shake_hands(wrapped, self._waiter)
        except BaseException:
            channel.cut()
            raise
        return channel

    def _forwarded(self) -> list[tuple[bytes, bytes]]:
        """Return what tells the upstream how the client came here, where it would guess wrongly."""
        assert self._target is not None, "reached"
        secure = self._target.url.startswith("https:")
        if secure == (self._tls is not None):
            return []
        return [(b"X-Forwarded-Proto", b"http" if secure else b"https")]

    def _carry_out(self, decision: Decision) -> None:
        if decision.kind == "reset":
            self._client.reset()
        elif decision.kind == "answer":
            try:
                self._answer(decision)
            except (OSError, Stopped):
                return
            self._linger()
            self._client.close()
        else:
            self._client.cut()

    def _answer(self, decision: Decision) -> None:
        """Answer in the upstream's place; the connection ends with it."""
        known = {status.value: status.phrase for status in http.HTTPStatus}
        lines = [f"HTTP/1.1 {decision.status} {known.get(decision.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in decision.headers.items()]
        lines += [f"Content-Length: {len(decision.body)}", "Connection: close", "", ""]
        head = "\r\n".join(lines).encode("latin-1")
        flow = Flow(self._client, self._client, Counted(0), head + decision.body)
        while not flow.finished:
            if not flow.advance():
                flow.waits(self._waiter)
                self._waiter.wait()

    def _linger(self) -> None:
        """Close the way to the client and drop what it still sends: a RST could take an answer from it."""
        self._client.end_of_writing()
        ends = time.monotonic() + _LINGER_SECONDS
        try:
            while not self._client.ended and (left := ends - time.monotonic()) > 0:
                self._client.consume(len(self._client.view))
                if not self._client.fill():
                    self._waiter.on(self._client, self._client.reads_on)
                    self._waiter.wait(left)
        except Stopped:
            pass

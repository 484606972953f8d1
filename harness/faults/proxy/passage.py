"""One request on its way to the upstream, and its answer on the way back."""

from __future__ import annotations

import copy
import select
import time
from collections.abc import Iterable

from harness.faults.proxy.bodies import Body, Counted, UntilClose
from harness.faults.proxy.channel import Channel, Waiter
from harness.faults.proxy.exchanges import ExchangeLog
from harness.faults.proxy.gate import Decision, Gate, Request
from harness.faults.proxy.heads import AnswerHead, NotHttp, RequestHead, end_of_head

#: A flow lets the other direction have its turn after so many buffers.
_TURN = 4


class Gone(Exception):
    """The upstream has ended the connection, so the client's ends as well; ``reset``: by a RST."""

    def __init__(self, why: str, *, reset: bool) -> None:
        super().__init__(why)
        self.reset = reset


class Decided(Exception):
    """Somebody decided that a request does not go on."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(str(decision))
        self.decision = decision


def hold(gates: Iterable[Gate], request: Request, passed: int, log: ExchangeLog, waiter: Waiter) -> None:
    """Hold ``request`` at each gate in turn. :raises Decided: it does not go on."""
    for gate in gates:
        began = time.monotonic()
        decision = gate.hold(request, passed)
        held = time.monotonic() - began
        log.note(request.number, done=f"held {held:.3f} s at {gate.point}, {decision}")
        waiter.wait(0)  # what was let go because the proxy ends goes nowhere
        if decision.kind != "release":
            raise Decided(decision)


class Flow:
    """A message that is passed from one channel to another, as far as its body goes.

    ``limit``: bytes of the body after which it waits.
    """

    def __init__(self, source: Channel, sink: Channel, body: Body, head: bytes) -> None:
        self.source = source
        self.sink = sink
        self.body = body
        self.limit: int | None = None
        self._head = head
        self._ready = 0

    @property
    def blocked(self) -> bool:
        """Whether it waits for the sink."""
        return bool(self._head or self._ready)

    @property
    def finished(self) -> bool:
        """Whether everything has been passed on."""
        return self.body.done and not self.blocked

    @property
    def at_limit(self) -> bool:
        """Whether the sink has all that it may have for now."""
        return self.body.passed == self.limit and not self.blocked

    @property
    def starved(self) -> bool:
        """Whether the source ended before the body did."""
        return self.source.ended and not self.source.view and not self.blocked and not self.body.done

    def advance(self) -> bool:
        """Pass on what can be passed without waiting; return whether anything was.

        :raises OSError: the sink is broken. :raises BrokenBody: the body is not what its head says.
        """
        moved = False
        for _ in range(_TURN):
            if self._head:
                sent = self.sink.write(self._head)
                self._head = self._head[sent:]
                moved |= sent > 0
            if not self._head:
                moved |= self._pass_on()
            if self.blocked or self.body.done or self.at_limit or not self.source.fill():
                break
            moved = True
        return moved

    def _pass_on(self) -> bool:
        if not self._ready:
            self._ready = self.body.take(self.source.view, self.limit)
        if not self._ready:
            return False
        sent = self.sink.write(self.source.view[: self._ready])
        self._ready -= sent
        self.source.consume(sent)
        return sent > 0

    def waits(self, waiter: Waiter) -> None:
        """Have ``waiter`` end when there is something to do."""
        if self.blocked:
            waiter.on(self.sink, self.sink.writes_on)
        elif not (self.body.done or self.at_limit or self.source.ended):
            waiter.on(self.source, self.source.reads_on)


class Passage:
    """Passes one request and its answer, both at once: an answer may come before the request ends."""

    def __init__(
        self,
        request: Request,
        head: RequestHead,
        client: Channel,
        upstream: Channel,
        gates: list[Gate],
        waiter: Waiter,
        log: ExchangeLog,
        more: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        self._request = request
        self._asked = head
        self._client = client
        self._upstream = upstream
        self._waiter = waiter
        self._log = log
        self._middle = sorted((g for g in gates if g.point.when == "mid"), key=lambda g: g.point.offset)
        self._after = [gate for gate in gates if gate.point.when in ("after", "cut")]
        self._up = Flow(client, upstream, head.body, head.passed_on(more))
        self._up.limit = self._next_limit()
        self._up_ended = False
        #: The upstream has ended while its answer was held here.
        self.outlived = False
        self._down: Flow | None = None

    @property
    def passed(self) -> tuple[int, int]:
        """How many bytes of the two bodies have passed: of the request's, and of the answer's."""
        return self._up.body.passed, self._down.body.passed if self._down is not None else 0

    def run(self) -> bool:
        """Pass everything; return whether both connections can be used again.

        :raises Gone: the upstream ended first. :raises Decided: at a gate.
        :raises OSError: the client has gone.
        """
        while True:
            answer = self._answer()
            if answer is None:
                self._relay(UntilClose(), b"")
                return False
            if not answer.interim:
                break
            self._relay(Counted(0), answer.passed_on(closing=False))
        # Before anything of it is seen: who has the answer finds it in the evidence.
        self._log.note(self._request.number, status=answer.status, received=self._up.body.passed)
        body = answer.body(self._request.method)
        closing = answer.head.closes or self._asked.head.closes or isinstance(body, UntilClose)
        if self._after:
            self._gather(body)
            hold(self._after, self._request, self._up.body.passed, self._log, self._waiter)
            while self._upstream.fill():
                pass
            # It was perhaps restarted meanwhile. The answer says nothing of that: it was sent before.
            self.outlived = self._upstream.ended
        self._relay(body, answer.passed_on(closing=closing))
        if closing:
            return False
        while not (self._up.finished or self._up_ended):
            if self._upstream.ended:
                return False
            if not (self._advance() | self._upstream.fill()):
                self._wait()
        return self._up.finished

    def _answer(self) -> AnswerHead | None:
        """Return the next answer's head, consumed; None where what comes is none, and still there."""
        while True:
            try:
                if size := end_of_head(self._upstream.view):
                    answer = AnswerHead.read(bytes(self._upstream.view[:size]))
                    self._upstream.consume(size)
                    return answer
            except NotHttp as error:
                self._log.note(self._request.number, done=f"the answer is not HTTP: {error}")
                return None
            if self._upstream.ended:
                if self._upstream.view:
                    return None
                raise Gone("the upstream closed without an answer", reset=self._upstream.broken)
            if not (self._advance() | self._upstream.fill()):
                self._wait()

    def _gather(self, body: Body) -> None:
        """Have the answer's body here, as far as the buffer holds it: its sender may not live much longer."""
        while not (self._upstream.full or self._upstream.ended):
            whole = copy.copy(body)
            whole.take(self._upstream.view)
            if whole.done:
                return
            if not (self._advance() | self._upstream.fill()):
                self._wait()

    def _relay(self, body: Body, head: bytes) -> None:
        self._down = down = Flow(self._upstream, self._client, body, head)
        while not down.finished:
            if down.starved:
                if isinstance(body, UntilClose) and not self._upstream.broken:
                    return
                raise Gone("the upstream closed within its answer", reset=self._upstream.broken)
            if not (self._advance() | down.advance()):
                self._wait()

    def _advance(self) -> bool:
        """Pass on what there is of the request; hold it in its middle where it is to be."""
        if self._up_ended or self._up.finished:
            return False
        try:
            moved = self._up.advance()
        except OSError:
            # It may have answered before it closed: that is still to be read.
            self._up_ended = True
            return True
        if self._middle and self._up.at_limit:
            gate = self._middle.pop(0)
            hold([gate], self._request, self._up.body.passed, self._log, self._waiter)
            self._up.limit = self._next_limit()
            return True
        if self._up.starved:
            self._up_ended = True
            self._upstream.end_of_writing()
        return moved

    def _next_limit(self) -> int | None:
        return self._middle[0].point.offset if self._middle else None

    def _wait(self) -> None:
        asked = self._up_ended or self._up.finished
        if not asked:
            self._up.waits(self._waiter)
        if self._down is not None and not self._down.finished:
            self._down.waits(self._waiter)
        elif not (self._upstream.ended or self._upstream.full):
            self._waiter.on(self._upstream, self._upstream.reads_on)
        watched = asked and not (self._client.ended or self._client.full)
        if watched:
            self._waiter.on(self._client, select.POLLRDHUP)
        came = self._waiter.wait().get(self._client.socket.fileno(), 0)
        if watched and came & (select.POLLRDHUP | select.POLLHUP | select.POLLERR):
            while self._client.fill():
                pass
            if self._client.broken:
                raise ConnectionResetError("the client has gone")
            if self._client.ended and not self._client.view:
                self._upstream.end_of_writing()

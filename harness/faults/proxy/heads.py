"""Heads of requests and answers: read by h11, and as they are passed on, without what is for one hop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import h11

from harness.faults.proxy.bodies import Body, Chunked, Counted, UntilClose

#: A head that is longer is none; Go's limit is 1 MiB, what registries are sent stays below 16 KiB.
LONGEST_HEAD = 64 << 10

#: RFC 9110, section 7.6.1. Transfer-Encoding is kept: bodies are passed on as they are encoded.
_ONE_HOP = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade"}
_NO_BODY = (204, 304)


class NotHttp(Exception):
    """What came is no head of HTTP/1.x; the connection cannot be followed any further."""


@dataclass(frozen=True, slots=True)
class Head:
    """A head without its first line. ``raw``: the names as they came; ``named``: in lower case.

    ``closes``: whether its sender ends the connection after this message.
    """

    raw: tuple[tuple[bytes, bytes], ...]
    named: dict[bytes, bytes]
    closes: bool

    @classmethod
    def of(cls, event: h11.Request | h11.Response | h11.InformationalResponse) -> Head:
        """Return the head that h11 has read."""
        named: dict[bytes, bytes] = {}
        for name, value in event.headers:
            named[name] = named[name] + b", " + value if name in named else value
        tokens = _tokens(named.get(b"connection", b""))
        old = event.http_version < b"1.1"
        return cls(tuple(event.headers.raw_items()), named, old or b"close" in tokens)

    def passed_on(self, first: bytes, *, closing: bool, more: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
        """Return the head as the next hop gets it, with the line ``first``."""
        dropped = _ONE_HOP | _tokens(self.named.get(b"connection", b""))
        lines = [first]
        lines += [name + b": " + value for name, value in self.raw if name.lower() not in dropped]
        lines += [name + b": " + value for name, value in more]
        if closing:
            lines.append(b"Connection: close")
        return b"\r\n".join(lines) + b"\r\n\r\n"

    @property
    def _framing(self) -> Body | None:
        """The body as the headers tell it; None where they do not."""
        if b"transfer-encoding" in self.named:
            return Chunked()
        if b"content-length" in self.named:
            return Counted(int(self.named[b"content-length"]))
        return None


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request's first line and headers."""

    method: str
    target: str
    version: bytes
    head: Head

    @classmethod
    def read(cls, data: bytes) -> RequestHead:
        """Return the request whose head ``data`` is. :raises NotHttp: it is none."""
        event = _event(h11.Connection(h11.SERVER, max_incomplete_event_size=LONGEST_HEAD), data)
        if not isinstance(event, h11.Request) or event.method == b"CONNECT":
            raise NotHttp("no request that can be passed on")
        return cls(
            event.method.decode("latin-1"),
            event.target.decode("latin-1"),
            event.http_version,
            Head.of(event),
        )

    @property
    def body(self) -> Body:
        """Its body, still to come."""
        return self.head._framing or Counted(0)

    def passed_on(self, more: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the head for the upstream; ``more``: headers that are added where it has none such."""
        first = b"%s %s HTTP/%s" % (
            self.method.encode("latin-1"),
            self.target.encode("latin-1"),
            self.version,
        )
        added = [(name, value) for name, value in more if name.lower() not in self.head.named]
        return self.head.passed_on(first, closing=self.head.closes, more=added)


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """An answer's first line and headers; ``interim``: another one follows (1xx)."""

    status: int
    first: bytes
    head: Head
    interim: bool

    @classmethod
    def read(cls, data: bytes) -> AnswerHead:
        """Return the answer whose head ``data`` is. :raises NotHttp: it is none."""
        reader = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        reader.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        reader.send(h11.EndOfMessage())
        event = _event(reader, data)
        if not isinstance(event, h11.Response | h11.InformationalResponse) or event.status_code == 101:
            raise NotHttp("no answer that can be passed on")
        first = data.lstrip(b"\r\n").partition(b"\n")[0].rstrip(b"\r")
        return cls(event.status_code, first, Head.of(event), isinstance(event, h11.InformationalResponse))

    def body(self, method: str) -> Body:
        """Return its body, still to come, as the answer to a request of ``method``."""
        if self.interim or method == "HEAD" or self.status in _NO_BODY:
            return Counted(0)
        return self.head._framing or UntilClose()

    def passed_on(self, *, closing: bool) -> bytes:
        """Return the head for the client; ``closing``: its connection ends after this answer."""
        return self.head.passed_on(self.first, closing=closing and not self.interim)


def end_of_head(data: memoryview) -> int:
    """Return how many bytes of ``data`` are the first head in it; 0 where it is not complete.

    :raises NotHttp: it is too long to be one.
    """
    text = bytes(data[: LONGEST_HEAD + 1])
    # Empty lines before a first line are skipped (RFC 9112, section 2.2).
    start = len(text) - len(text.lstrip(b"\r\n"))
    ends = [
        at + len(mark) for mark in (b"\r\n\r\n", b"\n\n", b"\n\r\n") if (at := text.find(mark, start)) >= 0
    ]
    if not ends and len(text) > LONGEST_HEAD:
        raise NotHttp(f"a head of more than {LONGEST_HEAD} bytes")
    return min(ends, default=0)


def _event(reader: h11.Connection, data: bytes) -> object:
    try:
        reader.receive_data(data)
        return reader.next_event()
    except h11.ProtocolError as error:
        raise NotHttp(str(error)) from None


def _tokens(value: bytes) -> set[bytes]:
    return {token.strip().lower() for token in value.split(b",") if token.strip()}

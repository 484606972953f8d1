"""Connections to the services of a system, kept open: HTTP by the standard library alone.

A look at a cloud is a thousand small requests: one takes a quarter of the processor time that it takes with
httpx's transport, and a few modules less to import.
"""

from __future__ import annotations

import json
import secrets
import select
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPMessage, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from harness.errors import ConfigurationError

if TYPE_CHECKING:
    import ssl

#: Scheme, host and port.
Place = tuple[str, str, int | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answers to one request."""

    status: int
    headers: HTTPMessage
    content: bytes

    @property
    def text(self) -> str:
        """The body as text; APIs speak UTF-8, and what is none stays readable."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the body as data. :raises ValueError: it is no JSON."""
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class Body:
    """What a request carries: its parts, which are sent one after the other, and what they are."""

    kind: str
    parts: tuple[bytes, ...]

    @property
    def headers(self) -> dict[str, str]:
        """The headers that say what it is."""
        return {"Content-Type": self.kind, "Content-Length": str(sum(map(len, self.parts)))}


class NotConnectedError(Exception):
    """No connection came about; the cause says why."""


class Connections:
    """Asks the services of one system. Safe to use from several threads, each with a connection of its own.

    :param ca_file: authority of their certificates, where the machine's own are not enough.
    """

    def __init__(self, ca_file: Path | None) -> None:
        self._ca_file = ca_file
        self._lock = threading.Lock()
        self._idle: dict[Place, list[HTTPConnection]] = defaultdict(list)
        self._closed = False

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: Body | None, wait: float
    ) -> Answer:
        """Ask once, and follow no redirection.

        :param wait: seconds for each step: the connection, each part that is sent, each that comes.
        :raises NotConnectedError: there is no connection. :raises TimeoutError: a step took too long.
        :raises OSError: it broke off. :raises HTTPException: what came is no HTTP.
        :raises ValueError: the URL is none. :raises ConfigurationError: see :func:`_trusting`.
        """
        split = urlsplit(url)
        target = (split.path or "/") + (f"?{split.query}" if split.query else "")
        place = (split.scheme, split.hostname or "", split.port)
        connection = self._connected(place, wait)
        more, parts = (body.headers, body.parts) if body is not None else ({}, None)
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # who ends it amid a body may have said why
                connection.request(method, target, parts, {**headers, **more})
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
            if not response.will_close:
                self._keep(place, connection)
                return answer
        except BaseException:
            connection.close()
            raise
        connection.close()
        return answer

    def close(self) -> None:
        """Close all that are kept; what is being asked is answered still. May be called twice."""
        with self._lock:
            self._closed = True
            kept = [connection for idle in self._idle.values() for connection in idle]
            self._idle.clear()
        for connection in kept:
            connection.close()

    def _connected(self, place: Place, wait: float) -> HTTPConnection:
        """Return a connection that nobody uses: one that is kept and that the server has not ended, or a new
        one."""
        while (connection := self._kept(place)) is not None:
            if not _is_readable(connection):
                connection.sock.settimeout(wait)
                return connection
            connection.close()
        scheme, host, port = place
        if scheme not in ("http", "https") or not host:
            raise ValueError(f"no URL of HTTP: {scheme}://{host}")
        made = (
            HTTPSConnection(host, port, timeout=wait, context=_trusting(self._ca_file))
            if scheme == "https"
            else HTTPConnection(host, port, timeout=wait)
        )
        try:
            made.connect()
        except BaseException as error:
            made.close()
            if isinstance(error, OSError) and not isinstance(error, TimeoutError):
                raise NotConnectedError(str(error)) from error
            raise
        return made

    def _kept(self, place: Place) -> HTTPConnection | None:
        with self._lock:
            idle = self._idle[place]
            return idle.pop() if idle else None

    def _keep(self, place: Place, connection: HTTPConnection) -> None:
        with self._lock:
            if not self._closed:
                self._idle[place].append(connection)
                return
        connection.close()


@cache
def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    """Return what servers are verified by; reading the system's authorities takes 50 ms, for all once.

    :raises ConfigurationError: the file is not there, or has no certificate.
    """
    import ssl

    try:
        return ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except OSError as error:  # an ssl.SSLError is one
        raise ConfigurationError(
            f"The authority of a controller's certificates, {ca_file}, cannot be used: {error}.",
            hint="`ca_file` of the controller in the inventory names a file with certificates in PEM.",
        ) from None


def _is_readable(connection: HTTPConnection) -> bool:
    """Whether something came on a connection on which nothing is asked: its end, or what nobody waits for."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


def queried(path: str, query: Mapping[str, str | int]) -> str:
    """Return a path with its query."""
    return f"{path}?{urlencode(query)}"


def json_body(value: Any) -> Body:
    """Return what carries data."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Body("application/json", (text.encode(),))


def form_body(fields: Mapping[str, str], filename: str, content: bytes) -> Body:
    """Return a form of text fields, with one file in its field `file` (RFC 7578)."""
    boundary = secrets.token_hex(16)
    start, field = f"--{boundary}\r\n", "Content-Disposition: form-data; name="
    texts = [f'{start}{field}"{_quoted(name)}"\r\n\r\n{text}\r\n' for name, text in fields.items()]
    kind = "Content-Type: application/octet-stream"
    texts.append(f'{start}{field}"file"; filename="{_quoted(filename)}"\r\n{kind}\r\n\r\n')
    parts = ("".join(texts).encode(), content, f"\r\n--{boundary}--\r\n".encode())
    return Body(f"multipart/form-data; boundary={boundary}", parts)


def _quoted(name: str) -> str:
    """Return a name as it stands in a form: as browsers, and servers, have it."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")

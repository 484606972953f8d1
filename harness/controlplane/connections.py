"""Connections to the services of a system, kept open by urllib3: one request, and what became of it."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationValueError,
    NewConnectionError,
    ReadTimeoutError,
)
from urllib3.filepost import encode_multipart_formdata

from harness.errors import ConfigurationError

#: Connections to one service that are kept for later: as many as threads ask one system at a time.
_KEPT: Final = 16


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answers to one request."""

    status: int
    headers: Mapping[str, str]
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
    """What a request carries, and what kind of content that is."""

    kind: str
    content: bytes


class NotConnectedError(Exception):
    """No connection came about; the text says why."""


class BrokenOffError(Exception):
    """What came is no whole answer; the text says why. Whether it was asked for is not known."""


class _Secured(HTTPSConnection):
    """Tells a connection that did not come about from one over which something was asked already."""

    def connect(self) -> None:
        try:
            super().connect()
        except ssl.SSLError as error:
            raise NewConnectionError(self, str(error)) from error


class _SecuredPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Secured


class Connections:
    """Asks the services of one system. Safe to use from several threads.

    :param ca_file: authority of their certificates, where the machine's own are not enough.
    """

    def __init__(self, ca_file: Path | None) -> None:
        self._ca_file = ca_file
        self._plain = urllib3.PoolManager(maxsize=_KEPT, retries=False)
        self._secure: urllib3.PoolManager | None = None

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: Body | None, wait: float
    ) -> Answer:
        """Ask once, and follow no redirection.

        :param wait: seconds for each step: the connection, each part that is sent, each that comes.
        :raises NotConnectedError: there is no connection. :raises TimeoutError: a step took too long.
        :raises BrokenOffError: what came is no whole answer. :raises ValueError: the URL is none.
        :raises ConfigurationError: see :func:`_trusting`.
        """
        scheme = urlsplit(url).scheme
        if scheme not in ("http", "https"):
            raise ValueError(f"no URL of HTTP: {url}")
        pools = self._secured() if scheme == "https" else self._plain
        try:
            response = pools.request(
                method,
                url,
                headers={**headers, **({"Content-Type": body.kind} if body is not None else {})},
                body=None if body is None else body.content,
                timeout=urllib3.Timeout(connect=wait, read=wait),
                redirect=False,
            )
        except LocationValueError:  # is a ValueError
            raise
        except NewConnectionError as error:
            raise NotConnectedError(str(error)) from error
        except (ConnectTimeoutError, ReadTimeoutError) as error:
            raise TimeoutError(str(error)) from error
        except HTTPError as error:
            raise BrokenOffError(str(error) or type(error).__name__) from error
        return Answer(response.status, response.headers, response.data)

    def close(self) -> None:
        """Close all that are kept; what is being asked is answered still. May be called twice."""
        self._plain.clear()
        if self._secure is not None:
            self._secure.clear()

    def _secured(self) -> urllib3.PoolManager:
        if self._secure is None:
            context = _trusting(self._ca_file)
            self._secure = urllib3.PoolManager(maxsize=_KEPT, retries=False, ssl_context=context)
            self._secure.pool_classes_by_scheme = {"https": _SecuredPool}
        return self._secure


@cache
def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    """Return what servers are verified by; reading the system's authorities takes 50 ms, for all once.

    :raises ConfigurationError: the file is not there, or has no certificate.
    """
    from harness.tls_trust import client_context

    try:
        return client_context(ca_file)
    except OSError as error:  # an ssl.SSLError is one
        raise ConfigurationError(
            f"The authority of a controller's certificates, {ca_file}, cannot be used: {error}.",
            hint="`ca_file` of the controller in the inventory names a file with certificates in PEM.",
        ) from None


def queried(path: str, query: Mapping[str, str | int]) -> str:
    """Return a path with its query."""
    return f"{path}?{urlencode(query)}"


def json_body(value: Any) -> Body:
    """Return what carries data."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Body("application/json", text.encode())


def form_body(fields: Mapping[str, str], filename: str, content: bytes) -> Body:
    """Return a form of text fields, with one file in its field `file` (RFC 7578)."""
    file = (filename, content, "application/octet-stream")
    encoded, kind = encode_multipart_formdata([*fields.items(), ("file", file)])
    return Body(kind, encoded)

"""Asks a registry over HTTP: one connection, certificates always checked, bodies read as they come."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode, urlsplit

from harness.errors import (
    ConfigurationError,
    DeadlineError,
    InfrastructureError,
    LinkLostError,
    UnreachableError,
)
from harness.tls_trust import client_context

#: Tokens and error bodies are small; what is larger is not one.
_SMALL = 1 << 20
#: A certificate that does not hold yet, or not any more (OpenSSL, X509_V_ERR_...).
_OUT_OF_TIME = (9, 10)
#: What a header can carry of one: visible ASCII.
_TOKEN = re.compile(r"[!-~]+")
_CHALLENGE = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a registry answers: ``url`` without a path, and the file with the authority of its certificate.

    Without ``ca_file`` the machine's own authorities count.
    """

    url: str
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a 401 asks for: ``scheme`` in lower case, and its parameters such as realm and scope."""

    scheme: str
    parameters: Mapping[str, str]

    @classmethod
    def parse(cls, header: str) -> Challenge:
        """Return what a WWW-Authenticate header says; commas within quotes belong to the value."""
        scheme, _, rest = header.strip().partition(" ")
        found = {
            key: re.sub(r"\\(.)", r"\1", quoted) or bare for key, quoted, bare in _CHALLENGE.findall(rest)
        }
        return cls(scheme.lower(), found)


class Authorizer(Protocol):
    """Answers challenges."""

    def answer(self, challenge: Challenge, *, deadline: float) -> str | None:
        """Return an Authorization header for ``challenge``; None where there is none to give."""
        ...


class Minted:
    """Answers with tokens that are made on the spot, whatever state the token service is in."""

    def __init__(self, mint: Callable[[str, str], str]) -> None:
        """``mint(service, scope)`` returns a token."""
        self._mint = mint

    def answer(self, challenge: Challenge, *, deadline: float) -> str | None:
        """Return a fresh token for what is asked."""
        asked = challenge.parameters
        return f"Bearer {self._mint(asked.get('service', ''), asked.get('scope', ''))}"


class Login:
    """Answers as the user of a registry does: Basic, or a token from the realm of the challenge."""

    def __init__(self, user: str, password: str, *, ca_file: Path | None = None) -> None:
        self._basic = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self._user = user
        self._ca_file = ca_file

    def answer(self, challenge: Challenge, *, deadline: float) -> str | None:
        """Return the header. :raises InfrastructureError: the token service refuses, or cannot be had."""
        if challenge.scheme == "basic":
            return self._basic
        asked = challenge.parameters
        realm = urlsplit(asked.get("realm", ""))
        if challenge.scheme != "bearer" or not realm.hostname:
            return None
        query = [("service", asked.get("service", "")), ("account", self._user)]
        query += [("scope", scope) for scope in asked.get("scope", "").split()]
        endpoint = Endpoint(f"{realm.scheme}://{realm.netloc}", self._ca_file)
        with Wire(endpoint) as wire:
            path = f"{realm.path or '/'}?{urlencode(query)}"
            with wire.get(path, headers={"Authorization": self._basic}, deadline=deadline) as answer:
                body = answer.read(_SMALL)
        if answer.status != 200:
            raise InfrastructureError(
                f"The token service {endpoint.url} refuses {self._user}: {answer.status}.",
                hint="Look at the user and the password that the inventory refers to.",
            )
        return f"Bearer {_token(body, endpoint)}"


def _token(body: bytes, endpoint: Endpoint) -> str:
    try:
        found = json.loads(body)
        token = found.get("token") or found["access_token"]  # StarlingX's has the second alone
        if not _TOKEN.fullmatch(token):  # it goes into a header
            raise ValueError
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError):
        raise InfrastructureError(f"What {endpoint.url} answered holds no token.") from None
    return str(token)


@dataclass(slots=True)
class Answer:
    """A response whose body is still to be read. ``length``: the announced one; None where none is.

    ``deadline``: the seconds that a body may take which is read as a whole.
    """

    status: int
    headers: Mapping[str, str]
    length: int | None
    deadline: float
    _response: http.client.HTTPResponse = field(repr=False)

    def readinto(self, buffer: memoryview, *, arrived: bool = False) -> int:
        """Read the next bytes; 0 at the end, which comes early where a server breaks off.

        :param arrived: return with what has arrived, instead of waiting until ``buffer`` is full.
        :raises LinkLostError: the connection broke. :raises DeadlineError: nothing came in time.
        """
        try:
            if arrived and self._response.length != 0:
                buffer = buffer[: len(self._response.peek(1)) or None]
            return self._response.readinto(buffer)
        except TimeoutError:
            raise DeadlineError("The registry stopped in the middle of a body.") from None
        except http.client.IncompleteRead:
            if self.length is not None:
                return 0
            raise LinkLostError("The connection broke in the middle of a body.") from None
        except (OSError, http.client.HTTPException) as error:
            raise LinkLostError(f"The connection broke in the middle of a body: {_reason(error)}.") from None

    def read(self, limit: int) -> bytes:
        """Return the rest of the body.

        :raises InfrastructureError: it is longer than ``limit`` bytes.
        :raises DeadlineError: it has not ended in time, such as where it comes byte by byte.
        """
        view = memoryview(bytearray(limit + 1))
        have = 0
        end = time.monotonic() + self.deadline
        while have <= limit and (got := self.readinto(view[have:], arrived=True)):
            have += got
            if time.monotonic() > end:
                raise DeadlineError(f"Waited {self.deadline:g} s for the end of a body; {have} bytes came.")
        if have > limit:
            raise InfrastructureError(f"A body is longer than the {limit} bytes that it may have.")
        return bytes(view[:have])


class Wire:
    """One connection to a registry, opened when it is needed; for one thread at a time."""

    def __init__(self, endpoint: Endpoint, authorizer: Authorizer | None = None) -> None:
        """:raises ConfigurationError: the URL is none, or the authority's file cannot be read."""
        self.endpoint = endpoint
        self._authorizer = authorizer
        self._authorization: dict[str, str] = {}
        self._parts = urlsplit(endpoint.url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise ConfigurationError(
                f"{endpoint.url!r} is not the URL of a registry.",
                hint="It has the form https://registry.example:9001",
            )
        self._context = _context(endpoint) if self._parts.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None
        self._aborted = False

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def another(self) -> Wire:
        """Return one more connection to the same registry, which gets in by the same authorizations."""
        made = Wire(self.endpoint, self._authorizer)
        made._authorization = self._authorization
        return made

    def abort(self) -> None:
        """Break the connection under whoever waits for it in another thread; there will be no other."""
        self._aborted = True
        opened = self._connection.sock if self._connection is not None else None
        if opened is not None:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; may be called twice, and the object used again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def get(
        self, path: str, *, headers: Mapping[str, str] | None = None, deadline: float = 30.0, scope: str = ""
    ) -> Iterator[Answer]:
        """Give the answer to a GET of ``path``; a challenge is answered once.

        :param deadline: seconds without anything arriving, after which it is over.
        :param scope: what an earlier authorization is kept under, such as a repository's name.
        :raises UnreachableError: nobody answers there, or the connection breaks before an answer.
        :raises InfrastructureError: the certificate is not trusted.
        """
        given = dict(headers or {})
        if scope in self._authorization:
            given.setdefault("Authorization", self._authorization[scope])
        response = self._ask(path, given, deadline)
        challenged = response.headers.get("WWW-Authenticate")
        if response.status == 401 and challenged and self._authorizer is not None:
            answer = self._authorizer.answer(Challenge.parse(challenged), deadline=deadline)
            if answer is not None:
                response.close()
                self.close()
                self._authorization[scope] = answer
                response = self._ask(path, given | {"Authorization": answer}, deadline)
        try:
            yield Answer(
                response.status,
                {name.lower(): value for name, value in response.headers.items()},
                response.length,
                deadline,
                response,
            )
        finally:
            if not response.isclosed():
                # Somebody stopped in the middle; the next request cannot follow on this connection.
                response.close()
                self.close()

    def _ask(self, path: str, headers: Mapping[str, str], deadline: float) -> http.client.HTTPResponse:
        kept = self._connection is not None
        try:
            return self._once(path, headers, deadline)
        except LinkLostError:
            if not kept:
                raise
            # A server may close a connection that it keeps for later at any moment.
            return self._once(path, headers, deadline)

    def _once(self, path: str, headers: Mapping[str, str], deadline: float) -> http.client.HTTPResponse:
        try:
            connection = self._connected(deadline)
            connection.request("GET", path, headers=dict(headers))
            return connection.getresponse()
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise InfrastructureError(
                f"The certificate of {self.endpoint.url} is not trusted: {error.verify_message}.",
                hint="Renew it, or set the clock right; the check cannot be switched off."
                if error.verify_code in _OUT_OF_TIME
                else "Name the file of its authority as ca_file; the check cannot be switched off.",
            ) from None
        except TimeoutError:
            self.close()
            raise DeadlineError(
                f"Waited {deadline:g} s for {self.endpoint.url} to answer GET {path}; nothing came."
            ) from None
        except ConnectionRefusedError:
            self.close()
            raise UnreachableError(
                f"Nobody listens at {self.endpoint.url}.", hint="Does the registry run?"
            ) from None
        except socket.gaierror as error:
            self.close()
            raise UnreachableError(f"{self._parts.hostname} cannot be resolved: {error.strerror}.") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise LinkLostError(
                f"{self.endpoint.url} gave no answer to GET {path}: {_reason(error)}.",
                hint="Is it a registry, and does the URL say http or https as it should?",
            ) from None

    def _connected(self, deadline: float) -> http.client.HTTPConnection:
        if self._aborted:
            raise LinkLostError(f"The connection to {self.endpoint.url} was broken off by us.")
        if self._connection is None or self._connection.sock is None:
            host, port = str(self._parts.hostname), self._parts.port
            if self._context is not None:
                self._connection = http.client.HTTPSConnection(
                    host, port, timeout=deadline, context=self._context
                )
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=deadline)
            self._connection.connect()
        self._connection.sock.settimeout(deadline)
        return self._connection


def _context(endpoint: Endpoint) -> ssl.SSLContext:
    try:
        return client_context(endpoint.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"The authority {endpoint.ca_file} for {endpoint.url} cannot be read: {_reason(error)}.",
            hint="`ca_file:` of the registry's inventory entry names a file with certificates as PEM.",
        ) from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__

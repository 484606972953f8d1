"""Speaks a registry's protocol over httpx: tokens, tries, waiting, and one deadline for all of it."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin
from urllib.request import parse_http_list

from harness.errors import ConfigurationError
from harness.registry.clients.protocol import Destination
from harness.tls_trust import client_context

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
#: Seconds without a byte after which a connection counts as broken.
_STALL = 30.0
#: Answers that are no content are small; what is longer is cut.
_SMALL = 1 << 20


class PushError(Exception):
    """The push or pull cannot go on; the text says why, as a person reads it."""


class TransientError(PushError):
    """It may go better at the next try: a connection broke (``status`` 0), or the registry is in trouble."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class UnauthorizedError(TransientError):
    """The token is not, or no longer, taken. ``used``: the Authorization header that was refused."""

    def __init__(self, text: str, used: str) -> None:
        super().__init__(text, 401)
        self.used = used


class OutOfTimeError(PushError):
    """The deadline passed, or somebody ended the client."""


@dataclass(frozen=True, slots=True)
class Tries:
    """How often one step is tried: at most ``most`` times, and no new try after ``seconds``.

    Between tries it waits ``first`` seconds, then twice as long each time, up to ``longest``. A token that
    was refused is exchanged and tried again at once, the first time.
    """

    most: int = 1
    seconds: float = 0.0
    first: float = 0.1
    longest: float = 2.0


ONCE = Tries()
#: Outlasts a registry that is down for seconds (fact sheet of the registry, section 3: 5 x 0.5 s do not).
PATIENT = Tries(most=10, seconds=12.0)


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a 401 asks for: ``scheme`` in lower case, and its parameters such as realm and scope."""

    scheme: str
    parameters: Mapping[str, str]


def parse_challenge(header: str) -> Challenge:
    """Return what a WWW-Authenticate header says; parameters without a value are left out."""
    scheme, _, rest = header.strip().partition(" ")
    found = {}
    for part in parse_http_list(rest):
        key, equals, value = part.partition("=")
        if equals:
            quoted = len(value) >= 2 and value[0] == value[-1] == '"'
            found[key.strip().lower()] = value[1:-1] if quoted else value
    return Challenge(scheme.lower(), found)


class Waiting:
    """Counts the seconds in which every worker that is at work waits for its next try."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._working = 0
        self._sleeping = 0
        self._since = 0.0
        self.seconds = 0.0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count the caller among those at work."""
        self._change(1, 0)
        try:
            yield
        finally:
            self._change(-1, 0)

    @contextmanager
    def sleeping(self) -> Iterator[None]:
        """Count the caller, who is at work, among those that wait."""
        self._change(0, 1)
        try:
            yield
        finally:
            self._change(0, -1)

    def _change(self, working: int, sleeping: int) -> None:
        with self._lock:
            now = time.monotonic()
            if self._sleeping and self._sleeping == self._working:
                self.seconds += now - self._since
            self._working += working
            self._sleeping += sleeping
            self._since = now


class Session:
    """Requests to one registry for one repository, by several threads at once.

    :param actions: what its token is for, such as ``pull,push``.
    :param ends: when all is over, by the monotonic clock.
    """

    def __init__(self, destination: Destination, actions: str, tries: Tries, ends: float) -> None:
        """:raises ConfigurationError: the reference names no registry, or the authority cannot be read."""
        import httpx

        registry = destination.reference.registry
        if not registry:
            raise ConfigurationError(
                f"{destination.reference} names no registry.", hint="Such as registry.local:9001/a/b:v1."
            )
        self.base = f"{'http' if destination.plain else 'https'}://{registry}"
        self._destination = destination
        self._scope = f"repository:{destination.reference.repository}:{actions}"
        self._tries = tries
        self._ends = ends
        self._authorization = ""
        self._exchange = threading.Lock()
        self._over = threading.Event()
        self.waiting = Waiting()
        self._sockets: list[Any] = []
        self._client = httpx.Client(
            verify=_context(destination) if not destination.plain else False,
            # A proxy of the machine's environment is no part of the lab.
            trust_env=False,
            headers={"User-Agent": "hil-oci"},
        )
        self._clock = threading.Timer(max(0.0, ends - time.monotonic()), self.end)
        self._clock.daemon = True
        self._clock.start()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self._clock.cancel()
        self.end()
        self._clock.join()
        self._client.close()

    def end(self) -> None:
        """Break off whatever is under way: threads that wait for the registry or a next try return."""
        import socket
        from contextlib import suppress

        self._over.set()
        for opened in list(self._sockets):
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)

    def check_time(self) -> None:
        """:raises OutOfTimeError: the deadline has passed, or :meth:`end` was called."""
        if self._over.is_set() or time.monotonic() > self._ends:
            raise OutOfTimeError("the deadline passed")

    # -- tries ------------------------------------------------------------------------------------------

    def attempt(self, act: Callable[[], T], say: Callable[[str], None]) -> T:
        """Do ``act`` until it does not fail for a reason that may pass, or the tries are used up.

        :raises PushError: it failed for good.
        """
        import tenacity

        tries = self._tries
        grown = tenacity.wait_exponential(multiplier=tries.first, max=tries.longest)

        def pause(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            return 0.0 if isinstance(error, UnauthorizedError) and state.attempt_number == 1 else grown(state)

        def before(state: tenacity.RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            say(f"{error}; trying again in {state.next_action.sleep if state.next_action else 0:.1f} s")
            if isinstance(error, UnauthorizedError):
                self._forget_token(error.used)

        with self.waiting.working():
            return tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(TransientError),
                stop=tenacity.stop_after_attempt(tries.most) | tenacity.stop_after_delay(tries.seconds),
                wait=pause,
                sleep=self._sleep,
                before_sleep=before,
                reraise=True,
            )(act)

    def _sleep(self, seconds: float) -> None:
        if seconds:
            with self.waiting.sleeping():
                self._over.wait(min(seconds, max(0.0, self._ends - time.monotonic())))
        self.check_time()

    # -- requests ---------------------------------------------------------------------------------------

    @contextmanager
    def ask(
        self,
        method: str,
        path: str,
        *,
        content: bytes | Iterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[httpx.Response]:
        """Give the answer to one request whose body is not read yet; ``path`` may be a Location.

        :raises UnauthorizedError: the answer is 401. :raises TransientError: the connection broke, or the
            answer is 429 or 5xx. :raises PushError: nothing will ever come of it.
        """
        url = urljoin(self.base, path)
        given = dict(headers or {})
        used = self._authorized() if url.startswith(f"{self.base}/") else ""
        if used:
            given["Authorization"] = used
        with self._sent(method, url, content, given) as response:
            said = f"{method} {response.request.url.path}: "
            if response.status_code == 401:
                raise UnauthorizedError(said + refusal(response), used)
            if response.status_code == 429 or response.status_code >= 500:
                raise TransientError(said + refusal(response), response.status_code)
            yield response

    @contextmanager
    def _sent(
        self, method: str, url: str, content: bytes | Iterator[bytes] | None, headers: Mapping[str, str]
    ) -> Iterator[httpx.Response]:
        """Send and give what comes; what goes wrong on the way is said in our words."""
        import httpx

        self.check_time()
        following = method == "GET"  # a registry may keep content elsewhere
        try:
            with self._client.stream(
                method,
                url,
                content=content,
                headers=headers,
                timeout=min(_STALL, max(0.1, self._ends - time.monotonic())),
                follow_redirects=following,
                extensions={"trace": self._remember},
            ) as response:
                yield response
        except (httpx.TransportError, httpx.StreamError) as error:
            self.check_time()
            raise _broken(method, url, error) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise PushError(f"{method} {url}: {error}") from None

    def _remember(self, event: str, information: Mapping[str, Any]) -> None:
        """Keep the sockets that are opened, for :meth:`end`."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._sockets.append(information["return_value"].get_extra_info("socket"))

    # -- tokens -----------------------------------------------------------------------------------------

    def _authorized(self) -> str:
        """Return the Authorization header, got first where there is none; empty where none is needed."""
        with self._exchange:
            if not self._authorization:
                self._authorization = self._login()
            return self._authorization.strip()

    def _forget_token(self, used: str) -> None:
        with self._exchange:
            # Several threads are refused with one token, and exchange it once.
            if self._authorization.strip() == used:
                self._authorization = ""

    def _login(self) -> str:
        """Ask the registry what it wants, and get it; a space stands for nothing."""
        with self._sent("GET", f"{self.base}/v2/", None, {}) as answer:
            body = _start_of(answer)
        if answer.status_code == 429 or answer.status_code >= 500:
            raise TransientError(f"GET /v2/: {answer.status_code} {_said(body)}")
        version = answer.headers.get("docker-distribution-api-version", "")
        asked = [parse_challenge(each) for each in answer.headers.get_list("www-authenticate")]
        if answer.status_code == 200 and (version.startswith("registry/2") or body.strip() == b"{}"):
            return " "
        if answer.status_code != 401 or not asked:
            raise PushError(f"{self.base} is not a registry: it answers /v2/ with {answer.status_code}")
        chosen = next((each for each in asked if each.scheme == "bearer"), asked[0])
        if chosen.scheme == "bearer":
            return f"Bearer {self._token(chosen)}"
        if chosen.scheme == "basic":
            return _basic(self._destination)
        raise PushError(f"{self.base} asks for the unknown login {chosen.scheme!r}")

    def _token(self, challenge: Challenge) -> str:
        import httpx

        asked = challenge.parameters
        query = {"service": asked.get("service", ""), "scope": self._scope}
        headers = {}
        if self._destination.user:
            query["account"] = self._destination.user
            headers["Authorization"] = _basic(self._destination)
        try:
            url = str(httpx.URL(asked.get("realm", "")).copy_merge_params(query))
        except httpx.InvalidURL as error:
            raise PushError(f"the registry names no usable token service: {error}") from None
        with self._sent("GET", url, None, headers) as answer:
            body = _start_of(answer)
        if answer.status_code != 200:
            kind = TransientError if answer.status_code == 429 or answer.status_code >= 500 else PushError
            who = self._destination.user or "an anonymous user"
            raise kind(f"the token service refuses {who}: {answer.status_code} {_said(body)}")
        try:
            found = json.loads(body)
            return str(found.get("token") or found["access_token"])  # StarlingX's has the second alone
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            raise PushError("what the token service answered holds no token") from None


def refusal(response: httpx.Response) -> str:
    """Return status and error codes of an answer, in words."""
    return f"{response.status_code} {_said(_start_of(response))}"


def _said(body: bytes) -> str:
    try:
        return ", ".join(f"{each['code']}: {each.get('message', '')}" for each in json.loads(body)["errors"])
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return body[:120].decode(errors="replace").strip() or "no body"


def _start_of(response: httpx.Response) -> bytes:
    """Return the body, or its start where it is longer than any that counts."""
    have = b""
    for piece in response.iter_bytes():
        have += piece
        if len(have) > _SMALL:
            break
    return have


def _broken(method: str, url: str, error: Exception) -> PushError:
    """Return what a failed connection is to us."""
    import httpx

    path = httpx.URL(url).path
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return PushError(f"the certificate of {url} is not trusted: {cause.verify_message}")
        cause = cause.__cause__ or cause.__context__
    said = f"{method} {path}: {error or type(error).__name__}"
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol | httpx.StreamError):
        return PushError(said)
    return TransientError(said)


def _basic(destination: Destination) -> str:
    import base64

    both = f"{destination.user}:{destination.password}".encode()
    return f"Basic {base64.b64encode(both).decode()}"


def _context(destination: Destination) -> ssl.SSLContext:
    try:
        return client_context(destination.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"The authority {destination.ca_file} for {destination.reference.registry} cannot be read: "
            f"{getattr(error, 'strerror', None) or error}."
        ) from None

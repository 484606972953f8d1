"""A session with a StarlingX system over HTTP: Keystone's token, the catalogue, one request at a time."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from harness.controlplane.connections import (
    Answer,
    Body,
    BrokenOffError,
    Connections,
    NotConnectedError,
    json_body,
)
from harness.controlplane.faults import answered_error
from harness.errors import (
    ConfigurationError,
    DeadlineError,
    LoginRefusedError,
    NotOfferedError,
    UnreachableError,
)

_WRONG: Final = "Is the URL that of the Keystone of a StarlingX system, such as http://controller:5000/v3?"
#: A token is renewed when this part of its life is over; and no later than so many seconds before its end.
_RENEW_AT: Final = 0.9
_SPARE: Final = 60.0
_PAUSES: Final = (0.1, 2.0)
#: The region of the services of a system controller's own; ``SystemController`` is that of its subclouds.
_OWN_REGION: Final = "RegionOne"
#: What a gateway answers for a service that is away for a moment.
_AWAY: Final = frozenset({502, 503, 504})
_NO_HEADERS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Login:
    """Where a system is and who asks. ``url``: of its Keystone, with ``/v3``; the password is never shown.

    ``region`` and ``interface`` choose the endpoint; an empty region is the only one, or where there are
    several that of the system's own services, ``RegionOne``. ``ca_file``: authority of the certificates,
    where the machine's own are not enough.
    """

    url: str
    user: str
    password: str = field(repr=False)
    project: str = "admin"
    user_domain: str = "Default"
    project_domain: str = "Default"
    region: str = ""
    interface: str = "public"
    ca_file: Path | None = None


class _Refusals:
    """Logins that a Keystone has refused in this process: none is tried twice, for accounts lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: set[tuple[str, str, str]] = set()

    def add(self, login: Login) -> None:
        with self._lock:
            self._known.add(self._key(login))

    def __contains__(self, login: Login) -> bool:
        with self._lock:
            return self._key(login) in self._known

    @staticmethod
    def _key(login: Login) -> tuple[str, str, str]:
        return login.url, login.user, hashlib.sha256(login.password.encode()).hexdigest()


_REFUSED = _Refusals()


@dataclass(frozen=True, slots=True)
class _Token:
    """A token: ``text``, ``renew_at`` (of our monotonic clock), service type -> URL."""

    text: str = field(repr=False)
    renew_at: float
    urls: Mapping[str, str]


class Session:
    """Asks one system. Safe to use from several threads; nothing is connected before the first request.

    :param name: the controller's name in the inventory, for messages.
    :param deadline: seconds for one request with all its repetitions.
    """

    def __init__(self, name: str, login: Login, *, deadline: float = 60.0) -> None:
        self.name = name
        self.login = login
        self._deadline = deadline
        self._lock = threading.RLock()
        self._connections: Connections | None = None
        self._token: _Token | None = None

    def close(self) -> None:
        """Close the connections; may be called twice."""
        with self._lock:
            connections, self._connections = self._connections, None
            self._token = None
        if connections is not None:
            connections.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        service: str = "platform",
        names: bool = False,
        body: Body | None = None,
        deadline: float | None = None,
    ) -> tuple[Any, str]:
        """Ask a service; return the body of its answer, and the same as text.

        A GET is repeated while the service is away; anything else is asked once. An expired token is renewed
        once.

        :param names: whether the path names something, so that what is unknown is the caller's mistake.
        :raises ControlPlaneError: it refuses; the message has its text.
        :raises NoSuchRecordError: it knows no such name. :raises NotOfferedError: it has no such route.
        :raises LoginRefusedError: the login is refused. :raises UnreachableError: it does not answer.
        :raises DeadlineError: it did not in time. :raises ConfigurationError: it is no StarlingX system.
        """
        end = time.monotonic() + (deadline or self._deadline)
        response = self._request(method, path, service, end, body)
        if response.status == 401:
            with self._lock:
                self._token = None
            response = self._request(method, path, service, end, body)
            if response.status == 401:
                raise LoginRefusedError(
                    f"{self.name} takes no token of {self.login.user}, not even a new one.",
                    hint="See the logs of Keystone and sysinv; their keys or clocks may differ.",
                )
        if response.status >= 400:
            raise answered_error(self.name, f"{method} {path}", response.status, response.text, names=names)
        if not response.content.strip():
            return None, ""
        return self._json(response, path), response.text

    # -- requests -------------------------------------------------------------------------------------

    def _request(self, method: str, path: str, service: str, end: float, body: Body | None) -> Answer:
        """Ask with a valid token; a GET again while the service is away, until ``end`` (monotonic)."""
        token = self._valid_token(end)
        base = token.urls.get(service)
        if base is None:
            raise NotOfferedError(
                f"The catalogue of {self.name} has no service {service}: it has {', '.join(token.urls)}.",
                hint=_WRONG,
            )
        headers = {"X-Auth-Token": token.text, "Accept": "application/json"}
        url = f"{base.rstrip('/')}{path}"

        def once() -> Answer:
            response = self._once(method, url, end, headers, body)
            if response.status in _AWAY:
                raise UnreachableError(
                    f"{self.name} answers {response.status} to {method} {path}: the service is away.",
                    hint="It may be restarting; a change was not taken.",
                )
            return response

        pause = _PAUSES[0]
        while True:
            try:
                return once()
            except UnreachableError:
                if method != "GET" or time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])

    def _once(
        self,
        method: str,
        url: str,
        end: float,
        headers: Mapping[str, str] = _NO_HEADERS,
        body: Body | None = None,
    ) -> Answer:
        left = end - time.monotonic()
        if left <= 0:
            raise DeadlineError(f"The deadline for {method} {url} of {self.name} had passed before it began.")
        try:
            return self._kept().ask(method, url, headers, body, left)
        except NotConnectedError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise ConfigurationError(
                    f"The certificate of {self.name} at {url} is not one to be trusted: {error}.",
                    hint="Give the controller `ca_file` in the inventory: the authority of its certificates.",
                ) from None
            raise UnreachableError(
                f"{self.name} does not answer at {url}: {error}.", hint="Is it up, and is the URL right?"
            ) from None
        except TimeoutError:
            raise DeadlineError(
                f"Waited {left:.0f} s for the answer of {self.name} to {method} {url}; nothing came.",
                hint="Whether a change took place is not known; look before asking again.",
            ) from None
        except (BrokenOffError, ValueError) as error:
            raise UnreachableError(
                f"The answer of {self.name} to {method} {url} broke off: {error}.",
                hint="Whether a change took place is not known; look before asking again.",
            ) from None

    def _kept(self) -> Connections:
        with self._lock:
            if self._connections is None:
                self._connections = Connections(self.login.ca_file)
            return self._connections

    # -- Keystone -------------------------------------------------------------------------------------

    def _valid_token(self, end: float) -> _Token:
        """Return a token that is valid for a while. One thread gets it for all."""
        with self._lock:
            if self._token is None or time.monotonic() >= self._token.renew_at:
                self._token = None
                self._token = self._log_in(end)
            return self._token

    def _log_in(self, end: float) -> _Token:
        login = self.login
        if login in _REFUSED:
            raise LoginRefusedError(
                f"{self.name} has refused the login of {login.user} before, and it is not tried again: "
                "a few wrong ones lock the account.",
                hint="Correct the credentials in the inventory and begin anew.",
            )
        url = login.url.rstrip("/")
        self._check_keystone(url, end)
        asked = time.monotonic()
        response = self._once("POST", f"{url}/auth/tokens", end, body=json_body(_token_request(login)))
        if response.status == 401:
            _REFUSED.add(login)
            raise LoginRefusedError(
                f"{self.name} refuses the login of {login.user} at {url}; it was tried once.",
                hint="Correct the credentials in the inventory: a few wrong logins lock the account.",
            )
        if response.status != 201 or "X-Subject-Token" not in response.headers:
            raise answered_error(
                self.name, "a request for a token", response.status, response.text, names=False
            )
        described = self._json(response, "/auth/tokens")
        try:
            token = described["token"]
            life = (_moment(token["expires_at"]) - _moment(token["issued_at"])).total_seconds()
            catalogue = token["catalog"]
            urls = self._endpoints(catalogue)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(
                f"What answers at {url} for {self.name} is no Keystone of version 3: {error!r}.", hint=_WRONG
            ) from None
        renew = max(life * 0.5, min(life * _RENEW_AT, life - _SPARE))
        return _Token(response.headers["X-Subject-Token"], asked + renew, urls)

    def _check_keystone(self, url: str, end: float) -> None:
        """:raises ConfigurationError: what answers there does not say that it is Keystone v3."""
        document = self._json(self._once("GET", url, end), url)
        version = document.get("version") if isinstance(document, dict) else None
        if not isinstance(version, dict) or not str(version.get("id", "")).startswith("v3"):
            raise ConfigurationError(
                f"What answers at {url} for {self.name} is no Keystone of version 3: {str(document)[:120]}.",
                hint=_WRONG,
            )

    def _endpoints(self, catalogue: Any) -> dict[str, str]:
        """Return service type -> URL. :raises ConfigurationError: there is no platform service for us."""
        regions = {
            str(endpoint["region"])
            for service in catalogue
            for endpoint in service["endpoints"]
            if service["type"] == "platform" and endpoint["interface"] == self.login.interface
        }
        own = _OWN_REGION if _OWN_REGION in regions and len(regions) > 1 else ""
        region = self.login.region or own
        found: dict[str, set[str]] = {}
        elsewhere: dict[str, set[str]] = {}  # alarms, for one, are no matter of the subclouds' region
        for service in catalogue:
            for endpoint in service["endpoints"]:
                if endpoint["interface"] != self.login.interface:
                    continue
                if region in ("", endpoint["region"]):
                    found.setdefault(str(service["type"]), set()).add(str(endpoint["url"]))
                elif endpoint["region"] == _OWN_REGION:
                    elsewhere.setdefault(str(service["type"]), set()).add(str(endpoint["url"]))
        if not regions:
            raise ConfigurationError(
                f"{self.name} is no StarlingX system: its Keystone knows no {self.login.interface} platform "
                "service.",
                hint=_WRONG,
            )
        if "platform" not in found:
            raise ConfigurationError(
                f"{self.name} has no region {self.login.region!r}.",
                hint=f"It has {', '.join(sorted(regions))}.",
            )
        if len(regions) > 1 and not region and len(found["platform"]) > 1:
            raise ConfigurationError(
                f"{self.name} has several regions: {', '.join(sorted(regions))}.", hint="Name one."
            )
        return {kind: sorted(urls)[0] for kind, urls in (elsewhere | found).items()}

    def _json(self, response: Answer, path: str) -> Any:
        try:
            return response.json()
        except (json.JSONDecodeError, UnicodeDecodeError):
            if response.status >= 400:
                raise answered_error(self.name, path, response.status, response.text, names=False) from None
            raise ConfigurationError(
                f"What answers at {path} for {self.name} is no API of StarlingX: it said "
                f"{response.text[:80]!r} ({response.status}).",
                hint=_WRONG,
            ) from None


def _token_request(login: Login) -> dict[str, Any]:
    user = {"name": login.user, "domain": {"name": login.user_domain}, "password": login.password}
    scope = {"project": {"name": login.project, "domain": {"name": login.project_domain}}}
    return {
        "auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope},
    }


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))

"""Switches power by Redfish: reads a computer, posts its reset action, over HTTP.

Plain HTTP requests rather than a client library: it takes three of them, each with its own deadline. The
libraries (`redfish`, `sushy`) are maintained and free, but repeat requests and sleep by themselves, also when
a reset got no answer, and bring up to six packages with them.
"""

from __future__ import annotations

import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from harness.errors import ConfigurationError, InfrastructureError, UnreachableError
from harness.lab.power.access import RedfishAccess
from harness.lab.power.redfish_forms import (
    SESSIONS,
    SYSTEMS,
    System,
    below,
    local_path,
    only_member,
    service_root,
    system_of,
    told,
)
from harness.lab.power.switch import Power, Reading
from harness.tls_trust import client_context

if TYPE_CHECKING:
    import httpx

#: Controllers are slow; one that takes longer for an answer is asked again.
_ANSWER_SECONDS: Final = 20.0
#: Bytes of an answer; a computer with all its parts has a few thousand.
_LONGEST_ANSWER: Final = 1 << 20
#: What may be over in a moment: too many requests, and a gateway or service that is not there now.
_NOT_NOW: Final = (429, 502, 503, 504)
_NOT_FOUND: Final = (
    "Check `url` and `system` of `power: redfish`: the service is looked for below `url`, at /redfish/v1."
)


class Redfish:
    """The Redfish service of the host ``name``."""

    def __init__(self, name: str, access: RedfishAccess) -> None:
        self._name = name
        self._access = access
        self._client: httpx.Client | None = None
        self._origin, self._prefix = service_root(access.url)
        self._session = ""
        self._path = ""

    @property
    def where(self) -> str:
        """Who is asked, for messages."""
        return f"the Redfish service at {self._access.url}"

    @property
    def sees(self) -> bool:
        """It says what the power is."""
        return True

    def state(self, seconds: float) -> Reading:
        """Return the computer's PowerState."""
        return self._system(seconds).power

    def ask(self, to: Power, seconds: float) -> None:
        """Post the reset action."""
        system = self._system(seconds)
        self._answer("POST", system.target, seconds, {"ResetType": system.reset_type(to)})

    def close(self) -> None:
        """End the session; may be called twice."""
        client, self._client = self._client, None
        if client is not None:
            if self._session:
                import httpx

                with suppress(httpx.HTTPError):
                    client.delete(below(self._prefix, self._session), timeout=5.0)
            client.close()

    def _system(self, seconds: float) -> System:
        if not self._path:
            named = self._access.system
            if named:
                self._path = named if named.startswith("/") else f"{SYSTEMS}/{named}"
            else:
                self._path = only_member(self._answer("GET", SYSTEMS, seconds))
        return system_of(self._answer("GET", self._path, seconds))

    def _answer(self, method: str, path: str, seconds: float, body: dict[str, str] | None = None) -> bytes:
        """Return what the service answers to a request of somebody who is logged in.

        :raises UnreachableError: it does not answer now. :raises InfrastructureError: it refuses.
        """
        client = self._opened(seconds)
        return self._request(client, method, path, seconds, body)[1]

    def _opened(self, seconds: float) -> httpx.Client:
        if self._client is not None:
            return self._client
        import httpx

        access = self._access
        basic = None if access.session else httpx.BasicAuth(access.user, access.password)
        client = httpx.Client(
            base_url=self._origin,
            verify=_trust(access),
            auth=basic,
            headers={"OData-Version": "4.0", "Accept-Encoding": "identity"},
            trust_env=False,  # a proxy of the environment would be told the password
        )
        try:
            if access.session:
                login = {"UserName": access.user, "Password": access.password}
                said, _ = self._request(client, "POST", SESSIONS, seconds, login)
                client.headers["X-Auth-Token"] = said.get("X-Auth-Token", "")
                self._session = local_path(urlsplit(said.get("Location", "")).path)
        except BaseException:
            client.close()
            raise
        self._client = client
        return client

    def _request(
        self, client: httpx.Client, method: str, path: str, seconds: float, body: dict[str, str] | None
    ) -> tuple[httpx.Headers, bytes]:
        import httpx

        path = below(self._prefix, path)
        timeout = min(seconds, _ANSWER_SECONDS)
        end = time.monotonic() + timeout
        try:
            with client.stream(method, path, json=body, timeout=timeout) as answer:
                content = self._whole(answer, end)
        except httpx.HTTPError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise InfrastructureError(
                    f"The certificate of {self.where} is not trusted: {str(error)[:200]}.",
                    hint="Name its authority: `ca_file` (or `insecure: true`) of `power: redfish`.",
                ) from None
            reason = str(error) or type(error).__name__
            raise UnreachableError(f"{self.where} does not answer: {reason}.") from None
        if answer.is_success:
            return answer.headers, content
        text = f"{self.where} answers {method} {path} with {told(answer.status_code, content)}"
        if answer.status_code in (401, 403):
            raise InfrastructureError(
                f"{text} It was tried once, as {self._access.user!r}.",
                hint="Check user and credentials of `power: redfish` in the inventory; some services want "
                "`login: session`.",
            )
        hint = _NOT_FOUND if answer.status_code == 404 else ""
        raise (UnreachableError if answer.status_code in _NOT_NOW else InfrastructureError)(text, hint=hint)

    def _whole(self, answer: httpx.Response, end: float) -> bytes:
        """Return the body of an answer.

        :raises UnreachableError: it has not come by ``end``. :raises InfrastructureError: it is too long.
        """
        body = bytearray()
        for part in answer.iter_raw():
            body += part
            if len(body) > _LONGEST_ANSWER:
                raise InfrastructureError(
                    f"{self.where} answers with more than {_LONGEST_ANSWER >> 20} MiB.",
                    hint="Is it a Redfish service? Check `url` of `power: redfish` in the inventory.",
                )
            if time.monotonic() > end:
                raise UnreachableError(f"{self.where} does not end its answer in time.")
        return bytes(body)


def _trust(access: RedfishAccess) -> Any:
    """Return whom to trust. :raises ConfigurationError: the file of the authority cannot be read."""
    if access.insecure:
        return False
    try:
        return client_context(access.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"The authority {access.ca_file} of the Redfish service cannot be read: {error}."
        ) from None

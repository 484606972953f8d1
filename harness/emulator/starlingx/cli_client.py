"""What the commands of a controller ask of it: Keystone for a token, then a service (section 2.7)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

_SECONDS: Final = 60.0
_BOUNDARY: Final = "b1c0ffee5ec0de"


class CommandError(Exception):
    """What the command tells on standard error before it ends with 1."""


class NotFound(CommandError):
    """The controller has answered 404."""


class Client:
    """A session with one service of a controller, by the OS_* variables of ``env``."""

    def __init__(self, env: Mapping[str, str], service: str = "platform") -> None:
        """Log in. :raises CommandError: it is refused, or a variable is missing."""
        for name, words in (("OS_USERNAME", "a username"), ("OS_PASSWORD", "a password")):
            if not env.get(name):
                option = name.lower().replace("_", "-")
                raise CommandError(f"You must provide {words} via either --{option} or via env[{name}]")
        if not env.get("OS_AUTH_URL"):
            raise CommandError(
                "You must provide an auth url via either --os-auth-url or via env[OS_AUTH_URL]"
            )
        self._env = env
        self._token = ""
        self._base = ""
        self._log_in(service)

    def _log_in(self, kind: str) -> None:
        env = self._env
        domain = {"name": env.get("OS_USER_DOMAIN_NAME", "Default")}
        user = {"name": env["OS_USERNAME"], "domain": domain, "password": env["OS_PASSWORD"]}
        project = {
            "name": env.get("OS_PROJECT_NAME", "admin"),
            "domain": {"name": env.get("OS_PROJECT_DOMAIN_NAME", "Default")},
        }
        auth = {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": project},
        }
        url = env["OS_AUTH_URL"].rstrip("/")
        self._exchange("GET", url, None, {})
        status, headers, body = self._exchange(
            "POST",
            f"{url}/auth/tokens",
            json.dumps({"auth": auth}).encode(),
            {"Content-Type": "application/json"},
        )
        if status != 201:
            raise CommandError("Invalid Identity credentials.")
        self._token = headers["x-subject-token"]
        interface = env.get("OS_ENDPOINT_TYPE", "publicURL").removesuffix("URL")
        region = env.get("OS_REGION_NAME", "")
        endpoints = [
            endpoint["url"]
            for service in json.loads(body)["token"]["catalog"]
            for endpoint in service["endpoints"]
            if service["type"] == kind
            and endpoint["interface"] == interface
            and region in ("", endpoint["region"])
        ]
        if not endpoints:
            raise CommandError(f"{interface} endpoint for {kind} service in {region} region not found")
        self._base = endpoints[0]

    def ask(self, method: str, *path: str, query: Mapping[str, str] | None = None, body: Any = None) -> Any:
        """Return the body of the answer. ``path``: the parts of the route, each percent-encoded.

        :raises CommandError: with the text that the command tells.
        """
        kind = "application/octet-stream" if method == "DELETE" else "application/json"
        status, answer = self.answer(method, *path, query=query, body=body, kind=kind)
        if status < 400:
            return json.loads(answer) if answer else None
        if status == 401:
            raise CommandError("Invalid Identity credentials.")
        if status == 403:
            raise CommandError("Error: Forbidden")
        raise (NotFound if status == 404 else CommandError)(_fault(answer))

    def answer(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        kind: str = "application/json",
        accept: str = "application/json",
        agent: str = "cgtsclient",
    ) -> tuple[int, bytes]:
        """Return status and body of the answer, whatever they are. ``kind``: said of the request's body.

        :raises CommandError: there is no answer.
        """
        headers = {"Content-Type": kind, "Accept": accept}
        headers |= {"X-Auth-Token": self._token, "User-Agent": agent}
        data = None if body is None else json.dumps(body).encode()
        url = "/".join((self._base, *(quote(part, safe="") for part in path)))
        url += f"?{urlencode(query, safe='/:', quote_via=quote)}" if query else ""
        status, _, answer = self._exchange(method, url, data, headers)
        return status, answer

    def upload(self, fields: Mapping[str, str], name: str, content: bytes) -> Any:
        """Upload a file with fields; the status of the answer is not looked at, as in the real command.

        :raises ValueError: the answer is no JSON.
        """
        parts = [
            f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in fields.items()
        ]
        head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = b"".join([*parts, head.encode(), content, f"\r\n--{_BOUNDARY}--\r\n".encode()])
        headers = {
            "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}",
            "X-Auth-Token": self._token,
            "User-Agent": "python-requests/2.28.1",
        }
        _, _, answer = self._exchange("POST", f"{self._base}/device_images", body, headers)
        return json.loads(answer)

    @staticmethod
    def _exchange(
        method: str, url: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        import http.client

        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
        try:
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise CommandError(f"Error communicating with {url}: {error}") from error
        finally:
            connection.close()


def _fault(answer: bytes) -> str:
    """Return the text of an error: of the JSON in the JSON, or of the bare form."""
    try:
        body = json.loads(answer)
        if "error_message" in body:
            return str(json.loads(body["error_message"])["faultstring"])
        return str(body["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode("utf-8", "replace").strip()

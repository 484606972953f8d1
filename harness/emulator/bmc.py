"""The management controllers of emulated hosts: a Redfish service each, that cuts and gives the host's power.

As DSP0266 has it: the root is for all, the rest for who logs in, by each request or for a session; errors
carry ``@Message.ExtendedInfo``; a reset is accepted before it is done.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from harness.emulator.host import EmulatedHost

USER: Final = "admin"
_BACKLOG: Final = 64
_ROOT: Final = "/redfish/v1"
_SYSTEM: Final = f"{_ROOT}/Systems/1"
_RESET: Final = f"{_SYSTEM}/Actions/ComputerSystem.Reset"
_SESSIONS: Final = f"{_ROOT}/SessionService/Sessions"
_RESET_TYPES: Final = ("On", "ForceOff", "ForceRestart", "PowerCycle")
#: How often a slow controller still shows the state in between.
_SLOW_LOOKS: Final = 3

Answer = tuple[int, Mapping[str, Any] | None, Mapping[str, str]]


class Controller:
    """The controller of one host. Its answers are the same whoever serves them.

    It heeds the circumstances ``bmc-...`` of the host.
    """

    def __init__(self, host: EmulatedHost, password: str) -> None:
        self._host = host
        self._password = password
        self._sessions: dict[str, str] = {}
        self._looks = 0
        self._between = ""
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        """Return status, document and headers for a request. ``headers``: with names in lower case."""
        path = path.rstrip("/")
        if (method, path) == ("GET", _ROOT):
            return (
                200,
                {"@odata.id": f"{_ROOT}/", "RedfishVersion": "1.15.1", "Systems": _link("Systems")},
                {},
            )
        if "bmc-busy" in self._host.conditions:
            return *_error(503, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable."), {
                "Retry-After": "1"
            }
        if (method, path) == ("POST", _SESSIONS):
            return self._log_in(body)
        if not self._known(headers):
            basic = {"WWW-Authenticate": 'Basic realm="Redfish"'}
            return *_error(401, "NoValidSession", "There is no valid session established."), basic
        return self._asked(method, path, body)

    def _asked(self, method: str, path: str, body: Any) -> Answer:
        """Answer somebody who is logged in."""
        if (method, path) == ("GET", f"{_ROOT}/Systems"):
            return 200, {"Members@odata.count": 1, "Members": [{"@odata.id": _SYSTEM}]}, {}
        if (method, path) == ("GET", _SYSTEM):
            return 200, self._system(), {}
        if (method, path) == ("POST", _RESET):
            return self._reset(body)
        if method == "DELETE" and self._sessions.pop(path.removeprefix(f"{_SESSIONS}/"), ""):
            return 204, None, {}
        return *_error(404, "ResourceMissingAtURI", f"The resource at the URI '{path}' was not found."), {}

    def _log_in(self, body: Any) -> Answer:
        given = body if isinstance(body, dict) else {}
        if not self._right(given.get("UserName"), given.get("Password")):
            return *_error(401, "InsufficientPrivilege", "The user name or the password is wrong."), {}
        name, token = secrets.token_hex(4), secrets.token_hex(16)
        self._sessions[name] = token
        place = f"{_SESSIONS}/{name}"
        return 201, {"@odata.id": place, "UserName": USER}, {"X-Auth-Token": token, "Location": place}

    def _known(self, headers: Mapping[str, str]) -> bool:
        token = headers.get("x-auth-token", "")
        if token:
            return any(
                hmac.compare_digest(token.encode(), known.encode()) for known in self._sessions.values()
            )
        scheme, _, given = headers.get("authorization", "").partition(" ")
        try:
            user, _, password = base64.b64decode(given, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            return False
        return scheme.lower() == "basic" and self._right(user, password)

    def _right(self, user: Any, password: Any) -> bool:
        if "bmc-locked-out" in self._host.conditions:
            return False
        return user == USER and hmac.compare_digest(str(password).encode(), self._password.encode())

    def _system(self) -> dict[str, Any]:
        with self._lock:
            state = "On" if self._host.powered else "Off"
            if self._between and ("bmc-stuck" in self._host.conditions or self._looks > 0):
                self._looks -= 1
                state = self._between
        return {
            "@odata.id": _SYSTEM,
            "Id": "1",
            "HostName": self._host.hostname,
            "PowerState": state,
            "Actions": {
                "#ComputerSystem.Reset": {
                    "target": _RESET,
                    "ResetType@Redfish.AllowableValues": list(_RESET_TYPES),
                }
            },
        }

    def _reset(self, body: Any) -> Answer:
        kind = body.get("ResetType") if isinstance(body, dict) else None
        if kind is None:
            return *_error(400, "ActionParameterMissing", "The action requires the parameter ResetType."), {}
        if kind not in _RESET_TYPES:
            text = f"The value '{kind}' for the parameter ResetType is not in the list of acceptable values."
            return *_error(400, "ActionParameterValueNotInList", text), {}
        conditions = self._host.conditions
        with self._lock:
            self._between = "PoweringOn" if kind == "On" else "PoweringOff"
            self._looks = _SLOW_LOOKS if "bmc-slow" in conditions else 0
        if not conditions & {"bmc-ignores", "bmc-stuck"}:
            if kind != "On":
                self._host.power_off()
            if kind != "ForceOff":
                self._host.power_on()
        if "bmc-ignores" in conditions:
            self._between = ""
        return (202, {"TaskState": "Running"}, {}) if "bmc-slow" in conditions else (204, None, {})


def _link(name: str) -> dict[str, str]:
    return {"@odata.id": f"{_ROOT}/{name}"}


def _error(status: int, name: str, text: str) -> tuple[int, dict[str, Any]]:
    message = {"MessageId": f"Base.1.18.{name}", "Message": text, "Severity": "Critical"}
    general = "A general error has occurred. See ExtendedInfo for more information."
    error = {"code": "Base.1.18.GeneralError", "message": general, "@Message.ExtendedInfo": [message]}
    return status, {"error": error}


def application(controllers: Mapping[int, Controller]) -> Callable[..., Awaitable[None]]:
    """Return the web application that answers for each of ``controllers`` on its port."""
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        try:
            body = await request.json()
        except (ValueError, RecursionError):
            body = None
        controller = controllers[scope["server"][1]]
        headers = {name.lower(): value for name, value in request.headers.items()}
        status, document, more = controller.answer(request.method, request.url.path, headers, body)
        made = Response(None, status) if document is None else JSONResponse(dict(document), status)
        made.headers.update({"OData-Version": "4.0", **more})
        await made(scope, receive, send)

    return answer


class Controllers:
    """The controllers of a lab's hosts, each on a loopback port of its own; served once somebody comes."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._controllers: dict[int, Controller] = {}

    def add(self, host: EmulatedHost, address: str) -> dict[str, str]:
        """Give ``host`` a controller; return where it is reached, and a throw-away login."""
        found = socket.create_server((address, 0), backlog=_BACKLOG)
        port = found.getsockname()[1]
        password = secrets.token_urlsafe(12)
        self._sockets.append(found)
        self._controllers[port] = Controller(host, password)
        return {"url": f"http://{address}:{port}", "user": USER, "password": password}

    def serve(self) -> None:
        """Serve all of them in a thread, which begins to work with the first connection."""
        if self._sockets:
            threading.Thread(target=self._run, name="bmc", daemon=True).start()

    def _run(self) -> None:
        import selectors

        with selectors.DefaultSelector() as selector:
            for found in self._sockets:
                selector.register(found, selectors.EVENT_READ)
            selector.select()  # the first connection waits in its socket's queue
        import uvicorn

        config = uvicorn.Config(
            application(self._controllers),
            lifespan="off",
            ws="none",
            log_level="critical",
            access_log=False,
            server_header=False,
        )
        uvicorn.Server(config).run(sockets=self._sockets)

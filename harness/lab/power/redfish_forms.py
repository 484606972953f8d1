"""What a Redfish service's answers mean (DSP0266, DSP0268): a computer's power, its reset action, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from harness.errors import BlockedError, InfrastructureError
from harness.lab.power.switch import Power, Reading

SYSTEMS: Final = "/redfish/v1/Systems"
SESSIONS: Final = "/redfish/v1/SessionService/Sessions"
_RESET: Final = "#ComputerSystem.Reset"
#: What cuts or gives the power at once; a graceful shutdown is no power cut. The first that is offered.
_RESET_TYPES: Final[Mapping[Power, tuple[str, ...]]] = {"off": ("ForceOff",), "on": ("On", "ForceOn")}
_STATES: Final[Mapping[str, Power]] = {"On": "on", "Off": "off"}
#: What helps where the service does not switch a computer off and on at once.
_OTHER: Final = (
    "Give the host ipmi or command below `power:` instead, in the inventory (docs/hosts.md, Power)."
)
_LONGEST: Final = 300
_ROOT: Final = re.compile(r"/redfish(?:/v1)?$")


@dataclass(frozen=True, slots=True)
class System:
    """A computer: what its power is, where it is reset, the reset types that it takes (empty: not told)."""

    power: Reading
    target: str
    offered: tuple[str, ...]

    def reset_type(self, to: Power) -> str:
        """Return the reset type that switches it. :raises BlockedError: it takes none such."""
        if not self.target:
            raise BlockedError(
                "The controller's computer has no reset action; its power cannot be switched.", hint=_OTHER
            )
        wanted = _RESET_TYPES[to]
        found = next((kind for kind in wanted if kind in self.offered or not self.offered), None)
        if found is None:
            raise BlockedError(
                f"The controller switches a computer by {', '.join(self.offered)}, and not by {wanted[0]}.",
                hint=_OTHER,
            )
        return found


def document(data: bytes, what: str) -> dict[str, Any]:
    """Return a JSON object. :raises InfrastructureError: it is none: who answers is no Redfish service."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InfrastructureError(
            f"{what} is no Redfish document: {data[:60].decode(errors='replace')!r}.",
            hint="Is `url` that of the controller? Its service is looked for below it, at /redfish/v1.",
        )
    return found


def system_of(data: bytes) -> System:
    """Return the computer that a ComputerSystem resource describes."""
    found = document(data, "What describes the computer")
    action = _mapping(_mapping(found.get("Actions")).get(_RESET))
    offered = action.get("ResetType@Redfish.AllowableValues")
    power = found.get("PowerState")
    return System(
        Reading(_STATES.get(power) if isinstance(power, str) else None, str(power)[:_LONGEST]),
        local_path(action.get("target")),
        tuple(str(kind) for kind in offered) if isinstance(offered, list) else (),
    )


def only_member(data: bytes) -> str:
    """Return the path of a collection's only member. :raises InfrastructureError: it has none, or several."""
    members = document(data, "The list of computers").get("Members")
    listed = members if isinstance(members, list) else []
    paths = [path for path in (local_path(_mapping(one).get("@odata.id")) for one in listed) if path]
    if len(paths) != 1:
        raise InfrastructureError(
            f"The controller has {len(paths)} computers: {', '.join(paths)[:_LONGEST] or 'none'}.",
            hint="Say which one: `power: {redfish: {system: ...}}`.",
        )
    return paths[0]


def service_root(url: str) -> tuple[str, str]:
    """Return the origin of a service and the prefix below which a reverse proxy has it, mostly empty.

    ``url`` may end with ``/redfish`` or ``/redfish/v1``, as DSP0266 has the root itself.
    """
    parts = urlsplit(url)
    prefix = _ROOT.sub("", parts.path.rstrip("/")).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}", prefix


def below(prefix: str, path: str) -> str:
    """Return a path of a service as its proxy has it; that may have put its prefix there already."""
    return path if path.startswith(f"{prefix}/") else f"{prefix}{path}"


def local_path(value: object) -> str:
    """Return a path on the service itself; empty for anything else: a login is never sent elsewhere."""
    plain = isinstance(value, str) and value.startswith("/") and not value.startswith("//")
    return str(value) if plain and str(value).isprintable() and "\\" not in str(value) else ""


def told(status: int, body: bytes) -> str:
    """Return what an error says: its extended messages, else its message, else what its status means."""
    try:
        error = _mapping(_mapping(json.loads(body)).get("error"))
    except (ValueError, RecursionError):
        error = {}
    infos = error.get("@Message.ExtendedInfo")
    listed = infos if isinstance(infos, list) else []
    said = [str(one["Message"]) for one in map(_mapping, listed) if one.get("Message")]
    try:
        meaning = HTTPStatus(status).phrase
    except ValueError:
        meaning = "an unknown status"
    text = " ".join(said) or str(error.get("message") or "") or meaning
    return f"{status}: {text[:_LONGEST]}"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}

"""The places of a labgrid coordinator as the text of an inventory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.leases.labgrid import Place

#: A tag that names a card says where it is; one with this ending says who it is.
_IDENTITY: Final = "_identity"
_PCI_ADDRESS: Final = re.compile(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Imported:
    """An inventory. ``left_out``: place -> why it is not in it."""

    text: str
    left_out: dict[str, str]


def imported(coordinator: str, places: Sequence[Place], wanted: Sequence[str] = ()) -> Imported:
    """Return the inventory of places: a host for each that has one ``NetworkService``, cards by its tags.

    A tag such as ``card0=0000:b2:00.0`` is a card, ``card0_identity=64:4c:36:12:34:56`` its identity. Nothing
    irreversible is permitted by a tag, and no password is taken over.

    :param wanted: the names of the places; all where it is empty.
    :raises ConfigurationError: there is no such place, or none that can be a host.
    """
    by_name = {place.name: place for place in places}
    if lacking := [name for name in wanted if name not in by_name]:
        raise ConfigurationError(
            f"The coordinator {coordinator} has no place {lacking[0]!r}.",
            hint=f"Its places: {', '.join(by_name) or 'none'}.",
        )
    hosts: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name in wanted or by_name:
        if len(by_name[name].services) == 1:
            hosts[_host_name(name, hosts)] = _host(coordinator, by_name[name])
        else:
            left_out[name] = f"it has {len(by_name[name].services)} resources NetworkService; a host has one"
    if not hosts:
        told = "; ".join(f"{name}: {why}" for name, why in left_out.items())
        raise ConfigurationError(
            f"No place of the coordinator {coordinator} can be a host: {told or 'it has none'}.",
            hint="A host is a place with a NetworkService: its address and the user of its login.",
        )
    return Imported(
        _text({"version": 1, "default_lab": "labgrid", "labs": {"labgrid": {"hosts": hosts}}}), left_out
    )


def _host_name(place: str, taken: dict[str, Any]) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", place).strip("-._") or "host"
    return next(
        n for n in (name, *(f"{name}-{count}" for count in range(2, len(taken) + 3))) if n not in taken
    )


def _host(coordinator: str, place: Place) -> dict[str, Any]:
    (service,) = place.services.values()
    ssh = {"address": service.get("address"), "user": service.get("username")}
    if service.get("port", 22) != 22:
        ssh["port"] = service["port"]
    cards = {
        tag: {"address": value.lower()} | _identity(place, tag)
        for tag, value in sorted(place.tags.items())
        if _PCI_ADDRESS.fullmatch(value)
    }
    host = {"ssh": ssh, "labgrid": {"coordinator": coordinator, "place": place.name}}
    return host | ({"cards": cards} if cards else {})


def _identity(place: Place, tag: str) -> dict[str, str]:
    told = place.tags.get(f"{tag}{_IDENTITY}")
    return {"identity": told} if told else {}


def _text(inventory: dict[str, Any]) -> str:
    from ruamel.yaml import YAML

    stream = StringIO()
    YAML().dump(inventory, stream)
    return stream.getvalue()

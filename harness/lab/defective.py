"""Brings known defects of cards, tools, registries and clients into the emulated parts of a lab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.lab.defect_table import TABLE, KnownDefect, Struck

if TYPE_CHECKING:
    from harness.inventory.model import Card, Host, Lab
    from harness.inventory.registries import Registry

OF_EQUIPMENT: Final[Mapping[str, KnownDefect]] = {defect.name: defect for defect in TABLE}
_REFERENCE_CLIENT: Final = "verified-push"


def defective(lab: Lab, on: Iterable[str], off: Iterable[str] = ()) -> Lab:
    """Return ``lab`` with the defects ``on`` in its emulated cards, hosts and registries, and not ``off``.

    Names of other kinds are passed over; what is real is what it is.
    """
    added = [OF_EQUIPMENT[name] for name in on if name in OF_EQUIPMENT]
    removed = [OF_EQUIPMENT[name] for name in off if name in OF_EQUIPMENT]
    if not added and not removed:
        return lab
    hosts = {name: _host(host, added, removed) for name, host in lab.hosts.items()}
    registries = {name: _registry(entry, added, removed) for name, entry in lab.registries.items()}
    return lab.model_copy(update={"hosts": hosts, "registries": registries})


def _host(host: Host, added: list[KnownDefect], removed: list[KnownDefect]) -> Host:
    if host.emulated is None or host.emulated.recording is not None:
        return host
    cards = {name: _card(card, added, removed) for name, card in host.cards.items()}
    own = (host.emulated.generation, "")
    mine, gone = ([each for each in some if each.generation in own] for some in (added, removed))
    tools = _with(host.emulated.tool_defects, "tool", mine, gone)
    emulated = host.emulated.model_copy(update={"tool_defects": tools})
    return host.model_copy(update={"cards": cards, "emulated": emulated})


def _card(card: Card, added: list[KnownDefect], removed: list[KnownDefect]) -> Card:
    from harness.inventory.model import EmulatedCard

    emulated = card.emulated or EmulatedCard()
    profile: dict[str, Any] = dict(emulated.profile)
    for defects, change in ((added, set.union), (removed, set.difference)):
        for defect in defects:
            for name, value in defect.switch.items() if defect.kind == "card" else ():
                profile[name] = sorted(change(set(profile.get(name, ())), {value}))
    return card.model_copy(update={"emulated": emulated.model_copy(update={"profile": profile})})


def _registry(entry: Registry, added: list[KnownDefect], removed: list[KnownDefect]) -> Registry:
    if entry.emulated is None:
        return entry
    names = {defect.name for defect in removed}
    struck = [*entry.emulated.defects, *(each.name for each in added if each.kind == "registry")]
    clients = [each.switch for each in added if each.kind == "client"]
    back = any(each.kind == "client" and each.switch == entry.push_client for each in removed)
    emulated = entry.emulated.model_copy(
        update={"defects": tuple(name for name in struck if name not in names)}
    )
    usual = _REFERENCE_CLIENT if back else entry.push_client
    return entry.model_copy(update={"emulated": emulated, "push_client": clients[-1] if clients else usual})


def _with(
    names: tuple[str, ...], kind: str, added: list[KnownDefect], removed: list[KnownDefect]
) -> tuple[str, ...]:
    found = [*names, *(each.switch for each in added if each.kind == kind)]
    gone = {each.switch for each in removed if each.kind == kind}
    return tuple(dict.fromkeys(name for name in found if name not in gone))


def struck_by(registry: Registry) -> Struck | None:
    """Return what ``registry`` does to every push; None where nothing is wrong with it.

    :raises ConfigurationError: it has a defect that there is not.
    """
    from harness.inventory.entries import unknown_name

    known = {name: each.switch for name, each in OF_EQUIPMENT.items() if each.kind == "registry"}
    names = registry.emulated.defects if registry.emulated is not None else ()
    for name in names:
        if name not in known:
            raise unknown_name("known defect", name, list(known), f"a registry ({registry.name})")
    struck: Struck | None = known[names[-1]] if names else None
    return struck

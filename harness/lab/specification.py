"""What an inventory's emulated entries mean to the emulator: the specification that its process reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.inventory.model import Card, Controller, Host, Inventory, Lab

RECIPES = Path("fixtures/images.yaml")
PAYLOADS = Path("fixtures/vectors/payloads.yaml")
_HASH_DIGITS = 64


def specification(inventory: Inventory, lab: Lab) -> dict[str, Any]:
    """Return the specification of the emulated hosts of ``lab``.

    Recipes and the table of vendor payloads are looked for beside the inventory.

    :raises ConfigurationError: a card's state refers to a recipe that there is not, or a recording cannot
        be replayed.
    """
    base = inventory.path.parent
    payloads = base / PAYLOADS
    spec: dict[str, Any] = {
        "name": lab.name,
        "hosts": [_host(host, base, lab) for host in lab.hosts.values() if host.emulated],
        "systems": [_system(entry, lab) for entry in lab.controllers.values() if entry.emulated],
    }
    if payloads.is_file():
        spec["payloads"] = payloads.read_text(encoding="utf-8")
    return spec


def _system(controller: Controller, lab: Lab) -> dict[str, Any]:
    """Return an emulated StarlingX system.

    :raises ConfigurationError: an unknown defect, or hosts that it cannot tell apart.
    """
    from harness.emulator.starlingx.defects import Defects

    entry = controller.emulated
    assert entry is not None
    Defects(entry.release, entry.defects, entry.corrected_defects)  # says what is wrong with the names
    hosts = {
        host.name: host.emulated.hostname
        for host in lab.hosts.values()
        if host.system == controller.name and host.emulated and host.emulated.recording is None
    }
    if len(set(hosts.values())) < len(hosts):
        raise ConfigurationError(
            f"Two hosts of the system {controller.name} have the same hostname.",
            hint=f"Give each of {', '.join(hosts)} a hostname of its own.",
        )
    subclouds = [
        other.name for other in lab.controllers.values() if other.emulated and other.parent == controller.name
    ]
    central = ["SystemController"] if controller.role == "system-controller" else []
    return {
        "name": controller.name,
        "regions": ["RegionOne", *central],
        "release": entry.release,
        "defects": list(entry.defects),
        "corrected_defects": list(entry.corrected_defects),
        "hosts": list(hosts),
        "subclouds": subclouds,
    }


def _fashion(host: Host, lab: Lab) -> tuple[str, str]:
    """Return tool era and driver generation: what the host says, else what its system's release has."""
    from harness.emulator.starlingx.defects import HOSTS_OF

    assert host.emulated is not None
    era, generation = host.emulated.era, host.emulated.generation
    controller = lab.controllers[host.system].emulated if host.system else None
    said = host.emulated.model_fields_set
    if controller is not None:
        usual_era, usual_generation = HOSTS_OF[controller.release]
        return era if "era" in said else usual_era, generation if "generation" in said else usual_generation
    return era, generation


def _host(host: Host, base: Path, lab: Lab) -> dict[str, Any]:
    assert host.emulated is not None
    if host.emulated.recording is not None:
        from harness.lab.replay import replayed_host

        return replayed_host(host, host.emulated.recording)
    era, generation = _fashion(host, lab)
    return {
        "name": host.name,
        "hostname": host.emulated.hostname,
        "generation": generation,
        "era": era,
        "tool_defects": list(host.emulated.tool_defects),
        "bmc": host.emulated.bmc,
        "cards": [_card(host, card, base) for card in host.cards.values()],
    }


def _card(host: Host, card: Card, base: Path) -> dict[str, Any]:
    emulated = card.emulated
    entry: dict[str, Any] = {"name": card.name, "mac": card.identity, "addresses": [card.address]}
    if emulated is None:
        return entry
    if emulated.moves_to is not None:
        entry["addresses"].append(emulated.moves_to)
    if emulated.boots_at is not None:
        entry["boots_at"] = emulated.boots_at
    entry["profile"] = dict(emulated.profile)
    entry["state"] = {
        "sr_root": _root(emulated.sr_root, f"{host.name}/{card.name}", base),
        "sr_cancelled": list(emulated.sr_cancelled),
        "flash_count": emulated.flash_count,
    }
    return entry


def _root(root: str | None, card: str, base: Path) -> str | None:
    """Return the root entry hash that ``root``, a hash or the name of a root-key recipe, stands for."""
    if root is None or (len(root) == _HASH_DIGITS and not root.strip("0123456789abcdef")):
        return root
    from harness.images.recipes import load_recipes

    file = base / RECIPES
    try:
        recipes = load_recipes(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{card}: sr_root names the recipe {root!r}, and {file} cannot be read: {error.strerror}."
        ) from error
    found = recipes[root].root_entry_hash() if root in recipes else None
    if found is None:
        known = [name for name, recipe in recipes.items() if recipe.kind == "root-key"]
        raise ConfigurationError(
            f"{card}: sr_root is {root!r}, neither a hash nor a root-key recipe of {file}.",
            hint=f"Root-key recipes: {', '.join(known) or 'none'}; or give 64 hexadecimal digits.",
        )
    return found

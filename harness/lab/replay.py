"""Labs that replay a recording: as a host of an inventory, or with an inventory made for it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import ConfigurationError
from harness.lab.background import LABS, BackgroundLab
from harness.recordings.files import read_recording

if TYPE_CHECKING:
    from harness.inventory.model import Host, Inventory
    from harness.recordings.model import Recording

INVENTORY_NAME = "inventory.yaml"
_COPY_NAME = "recording"


def replayed_host(host: Host, path: Path) -> dict[str, Any]:
    """Return what the emulator is told of ``host``, whose recording is the file ``path``.

    :raises ConfigurationError: it is none, or the inventory has other cards than were recorded.
    """
    recording = read_recording(path)
    if host.sysfs != recording.host["sysfs"]:
        raise ConfigurationError(
            f"{host.name} has its sysfs at {host.sysfs}, but {path} was recorded at "
            f"{recording.host['sysfs']}.",
            hint="Set `sysfs` of the host in the inventory.",
        )
    recorded = {card.name: (card.address, card.identity) for card in recording.cards}
    for card in host.cards.values():
        address, identity = recorded.get(card.name, (None, None))
        if address != card.address or card.identity not in (None, identity):
            known = ", ".join(f"{name} at {place} ({who})" for name, (place, who) in recorded.items())
            raise ConfigurationError(
                f"The card {host.name}/{card.name} at {card.address} is not in the recording {path}.",
                hint=f"It has {known or 'no cards'}.",
            )
    return {
        "name": host.name,
        "hostname": recording.host["hostname"],
        "cards": [],
        "recording": recording.to_json(),
    }


def replay_lab(path: Path, base: Path, name: str | None = None) -> tuple[Inventory, BackgroundLab]:
    """Prepare a lab that replays the recording ``path``, with an inventory and a copy of it of its own.

    :param base: the directory that keeps the labs. :param name: what the lab is called; the file's name.
    :raises ConfigurationError: it is no recording, or another lab is called so.
    """
    from harness.inventory.load import load_inventory

    recording = read_recording(path)
    chosen = name or _plain(path.name.partition(".")[0])
    if chosen != _plain(chosen):
        raise ConfigurationError(
            f"{chosen!r} cannot be the name of a lab.", hint="Use letters, digits, - and _."
        )
    lab = BackgroundLab(base.absolute() / LABS / chosen)
    inventory = lab.directory / INVENTORY_NAME
    if lab.pid() is not None or (lab.directory.is_dir() and not inventory.exists()):
        state = "running already" if lab.pid() is not None else "not one of a recording"
        raise ConfigurationError(
            f"The lab {chosen!r} is {state}.",
            hint=f"Stop it (hil lab down {chosen}), or call this one something else: --as NAME",
        )
    lab.directory.mkdir(parents=True, exist_ok=True)
    copy = lab.directory / f"{_COPY_NAME}{'.json.gz' if path.suffix == '.gz' else '.json'}"
    if path.absolute() != copy:
        shutil.copyfile(path, copy)
    inventory.write_text(_inventory(recording, chosen, copy.name, path), encoding="utf-8")
    return load_inventory(inventory), lab


def _inventory(recording: Recording, name: str, copy: str, source: Path) -> str:
    """Return the text of an inventory with the recorded host alone."""
    import json

    from harness.inventory.model import Tools

    host: dict[str, Any] = {
        "emulated": {"recording": copy},
        "sysfs": recording.host["sysfs"],
        "tools": {tool: where for tool, where in recording.tools.items() if tool in Tools.model_fields},
        "cards": {
            card.name: {"address": card.address}
            | ({"identity": card.identity} if card.identity else {})
            # Nothing can happen to what is replayed; what was recorded can be seen again.
            | {"irreversible": ["root-key", "key-cancellation"]}
            for card in recording.cards
        },
    }
    lab = {"version": 1, "default_lab": name, "labs": {name: {"hosts": {recording.host["name"]: host}}}}
    # JSON is YAML; the inventory is written by nobody's hand.
    return f"# Made by `hil lab up --from`: replays {source.name}.\n{json.dumps(lab, indent=2)}\n"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "recording"

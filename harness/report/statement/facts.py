"""What was qualified, as the records of the runs have it: devices, versions, images, digests, root hashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.judgement.records import Environment, Intent, Observation, Record, RunStarted
from harness.judgement.values import Unknown

#: Of a card: what it is and runs with. The last word counts.
_OF_CARDS: Final = (
    *("identity", "address", "driver", "generation", "device_id"),
    *("bmc_version", "bmcfw_version", "sr_root"),
)
#: Between the values of a thing that was not always the same.
_AND: Final = "; later "


@dataclass
class Facts:
    """What the runs worked with.

    ``hosts``: name -> versions of kernel and tools, of registries theirs. ``images``: name -> SHA-256,
    effect, root entry hash. ``pushed``: reference -> manifest digest.
    """

    runs: list[dict[str, str]] = field(default_factory=list)
    hosts: dict[str, dict[str, str]] = field(default_factory=dict)
    devices: dict[str, dict[str, str]] = field(default_factory=dict)
    images: dict[str, dict[str, str]] = field(default_factory=dict)
    pushed: dict[str, dict[str, str]] = field(default_factory=dict)


def facts_of(records: Iterable[Record]) -> Facts:
    """Return what the records say of it; a value that could not be read says why."""
    found = Facts()
    for record in records:
        if isinstance(record, RunStarted):
            said = {name: _text(value) for name, value in {**record.versions, **record.options}.items()}
            found.runs.append({"run": record.run, "lab": record.lab} | {k: v for k, v in said.items() if v})
        elif isinstance(record, Observation) and record.subject.kind == "card":
            seen = {name: _text(record.values[name]) for name in _OF_CARDS if name in record.values}
            _add(found.devices.setdefault(record.subject.name, {}), seen)
        elif isinstance(record, Environment):
            said = {name: _text(value) for name, value in record.values.items()}
            _add(found.hosts.setdefault(record.part, {}), said)
        elif isinstance(record, Intent):
            _take(record, found)
    return found


def _take(intent: Intent, found: Facts) -> None:
    image, content = intent.parameters.get("image"), intent.parameters.get("content")
    if isinstance(image, Mapping) and "sha256" in image:
        kept = {
            name: _text(image.get(name)) for name in ("sha256", "effect", "root_entry_hash", "programs_root")
        }
        _add(found.images.setdefault(str(image.get("name")), {}), kept)
    if isinstance(content, Mapping) and content.get("digest"):
        digests = {"digest": str(content["digest"])}
        _add(found.pushed.setdefault(intent.subject.name, {}), digests)


def _add(known: dict[str, str], said: Mapping[str, str]) -> None:
    """Add what is new to what is known: where a thing was not always the same, each value is told."""
    for name, value in said.items():
        values = known.get(name, "").split(_AND) if name in known else []
        if value and value not in values:
            known[name] = _AND.join([*values, value])


def _text(value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, Unknown):
        return str(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(map(str, value))
    return f"{value:#x}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

"""Reads what a manifest names, whoever wrote it; what cannot be read so is said, never guessed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from harness.registry.media_types import INDEXES, MANIFESTS, OCI_INDEX, OCI_MANIFEST
from harness.registry.reference import is_digest

#: An int64, as the image specification has it (descriptor, "size").
_LARGEST = (1 << 63) - 1


class NotAManifest(ValueError):
    """The bytes are no manifest of a known kind; the text says why."""


@dataclass(frozen=True, slots=True)
class Named:
    """Something that a manifest names. ``size``: as it states."""

    digest: str
    size: int
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An image's manifest (``config`` and ``layers``) or an index (``children``)."""

    media_type: str
    config: Named | None = None
    layers: tuple[Named, ...] = ()
    children: tuple[Named, ...] = ()


def read_manifest(content: bytes, media_type: str = "") -> Manifest:
    """Return what ``content`` names.

    :param media_type: what the registry calls it; the manifest's own word counts where it has one.
    :raises NotAManifest: it is none of a known kind.
    """
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        raise NotAManifest("it is no JSON") from None
    if not isinstance(parsed, dict):
        raise NotAManifest("it is no JSON object")
    kind = str(parsed.get("mediaType") or media_type.partition(";")[0].strip())
    if not kind:
        kind = OCI_INDEX if "manifests" in parsed else OCI_MANIFEST
    try:
        if kind in INDEXES:
            return Manifest(kind, children=tuple(map(_named, parsed["manifests"])))
        if kind in MANIFESTS:
            # Layers that are to be fetched from elsewhere are not the registry's to hold.
            held = [layer for layer in parsed["layers"] if not layer.get("urls")]
            return Manifest(kind, _named(parsed["config"]), tuple(map(_named, held)))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise NotAManifest(f"it is of the type {kind}, and lacks what that has ({error})") from None
    raise NotAManifest(f"its type {kind[:80]!r} is not known")


def _named(descriptor: Any) -> Named:
    digest = descriptor["digest"]
    if not isinstance(digest, str) or not is_digest(digest):
        raise ValueError(f"{str(digest)[:80]!r} is no digest")
    size = descriptor["size"]
    if type(size) is not int or not 0 <= size <= _LARGEST:
        raise ValueError(f"{str(size)[:80]!r} is no size")
    return Named(digest, size, str(descriptor.get("mediaType", "")))

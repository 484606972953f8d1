"""Which kind of image a flash wrote: all that a card's answer to it depends on, without the bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import NotAnImage
from harness.images.facts import image_facts
from harness.images.verify import verify

_TOLD = ("effect", "section", "root_entry_hash", "csk_id", "cancel_id", "programs_root", "unsigned")


def image_kind(data: bytes) -> dict[str, Any]:
    """Return the kind of the image ``data``: what it does, by whose keys, and what is wrong with it.

    Two images of the same kind differ in what is in their payloads only. Never raises for its content.
    """
    facts = image_facts(data)
    kind: dict[str, Any] = {name: getattr(facts, name) for name in _TOLD}
    try:
        verified = verify(data)
    except NotAnImage:
        return kind | {"findings": [facts.note]}
    return kind | {
        "csk_signature": verified.csk.value,
        "block0_signature": verified.block0.value,
        "payload_sha256_ok": verified.payload_sha256_ok,
        "findings": sorted({finding.rule for finding in verified.findings}),
    }


def described(kind: Mapping[str, Any]) -> str:
    """Return a kind in a few words."""
    effect = str(kind.get("effect"))
    words = [f"{effect} of {kind['section']}" if kind.get("section") else effect]
    if kind.get("unsigned"):
        words.append("unsigned")
    elif root := kind.get("root_entry_hash") or kind.get("programs_root"):
        words.append(f"root {str(root)[:12]}...")
        words += [f"CSK {kind['csk_id']}"] if kind.get("csk_id") is not None else []
    if kind.get("cancel_id") is not None:
        words.append(f"cancels CSK {kind['cancel_id']}")
    findings = kind.get("findings")
    if isinstance(findings, list) and findings:
        words.append("wrong: " + ", ".join(map(str, findings)))
    return ", ".join(words)

"""The columns of `system`: their names, and what a cell of several lines was before it was wrapped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from harness.judgement.values import Unknown, Value

IMAGE_COLUMNS: Final = (
    "uuid", "bitstream_type", "pci_vendor", "pci_device", "bitstream_id", "key_signature", "revoke_key_id",
    "name", "description", "image_version", "bmc", "retimer_included", "applied", "applied_labels",
)  # fmt: skip
#: As they were before November 2021 (section 2.7).
EARLIER_IMAGE_COLUMNS: Final = tuple(
    name for name in IMAGE_COLUMNS if name not in ("bmc", "retimer_included")
)
STATE_COLUMNS: Final = (
    "hostname", "PCI device address", "Device image uuid", "status", "Update start time", "updated_at",
)  # fmt: skip
LABEL_COLUMNS: Final = ("hostname", "PCI device name", "label key", "label value")
DEVICE_COLUMNS: Final = (
    "name", "address", "class id", "vendor id", "device id", "class name", "vendor name", "device name",
    "numa_node", "enabled",
)  # fmt: skip
HOST_COLUMNS: Final = ("id", "hostname", "personality", "administrative", "operational", "availability")
ALARM_COLUMNS: Final = ("UUID", "Alarm ID", "Reason Text", "Entity ID", "Severity", "Time Stamp")
SUBCLOUD_COLUMNS: Final = (
    "id", "name", "management", "availability", "deploy status", "sync", "backup status", "prestage status",
)  # fmt: skip
STEP_COLUMNS: Final = ("cloud", "stage", "state", "details", "started_at", "finished_at")
_TABLES: Final = (
    IMAGE_COLUMNS, STATE_COLUMNS, LABEL_COLUMNS, DEVICE_COLUMNS, HOST_COLUMNS, ALARM_COLUMNS,
    SUBCLOUD_COLUMNS, STEP_COLUMNS,
)  # fmt: skip
_KNOWN: Final = {re.sub(r"\s", "", name): name for columns in _TABLES for name in columns}
#: Words that no blank is in, so that the pieces of one belong together without.
_ONE_WORD: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"
    r"|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
    r"|pci_[0-9a-f]{4}_[0-9a-f]{2}_[0-9a-f]{2}_[0-7]"
    r"|(?:0x)?[0-9a-fA-F]+"
)
#: Values of several words, so that it does not matter where they are broken (section 5.4).
_PHRASES: Final = {
    phrase.replace(" ", ""): phrase
    for phrase in (
        "importing firmware", "creating fw update strategy", "applying fw update strategy",
        "finishing fw update", "abort requested",
    )
}  # fmt: skip
#: Around these, and at blanks, the real command breaks a cell that is too long.
_BREAKS: Final = ",=.:-"
_QUOTE: Final = re.compile(r"(?<!\\)['\"]")


def known_header(pieces: Sequence[str], width: int) -> str:
    """Return the name of a column whose header stands in ``pieces`` of at most ``width`` characters."""
    parts = [piece for piece in pieces if piece]
    squeezed = re.sub(r"\s", "", "".join(parts))
    if squeezed in _KNOWN:
        return _KNOWN[squeezed]
    text = parts[0] if parts else ""
    for before, after in pairwise(parts):
        text += ("" if _may_be_broken(before, after, width) else " ") + after
    return text


def joined(pieces: Sequence[str], width: int, *, wrapped: bool) -> Value[str]:
    """Return the cell that was wrapped into ``pieces``; Unknown where a blank may have been swallowed.

    ``width``: how many characters the longest line of the column has. ``wrapped``: whether the row shows that
    it was, so that its lines are none of the cell's own.
    """
    parts = list(pieces)
    while parts and not parts[-1]:
        parts.pop()
    if len(parts) < 2:
        return parts[0] if parts else ""
    whole = "".join(parts)
    if _ONE_WORD.fullmatch(whole):
        return whole
    if (phrase := _PHRASES.get(whole.replace(" ", ""))) is not None:
        return phrase
    if not wrapped:
        return Unknown(f"of several lines, wrapped or its own: {' / '.join(parts)}")
    text = parts[0]
    for before, after in pairwise(parts):
        if not _may_be_broken(before, after, width):
            text += " "
        elif text.startswith("[") and not _within_quotes(text):
            text += " " if before.endswith(",") else ""
        else:
            return Unknown(f"wrapped where a blank may have been: {' / '.join(parts)}")
        text += after
    return text


def _may_be_broken(before: str, after: str, width: int) -> bool:
    """Whether a break between the two may be one without a blank."""
    return len(before) >= width or before[-1:] in _BREAKS or after[:1] in _BREAKS


def _within_quotes(text: str) -> bool:
    """Whether ``text``, the beginning of a Python literal, ends within one of its strings."""
    quote = ""
    for found in _QUOTE.findall(text):
        if not quote:
            quote = found
        elif found == quote:
            quote = ""
    return bool(quote)

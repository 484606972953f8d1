"""The messages that udev sends to its listeners over netlink, as libudev (systemd) reads them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

#: Multicast group of netlink's KOBJECT_UEVENT family in which udev speaks; the kernel itself speaks in 1.
UDEV_GROUP: Final = 2

# sd-device's monitor_netlink_header: prefix, magic, own size, offset and length of the properties, and
# what filters in the kernel compare: hashes of subsystem and device type, and a Bloom filter of tags.
_HEADER: Final = struct.Struct(">8sI4s4s4sII8x")
_MAGIC: Final = 0xFEEDCAFE
_WORD: Final = 0xFFFFFFFF


def udev_message(action: str, path: str, properties: Mapping[str, str], number: int) -> bytes:
    """Return the message for one event.

    ``path``: of the device, below ``/sys``. ``properties``: SUBSYSTEM among them. ``number``: a count that
    rises, never 0.
    """
    words = {"ACTION": action, "DEVPATH": path, "SEQNUM": str(number), **properties}
    body = b"".join(f"{name}={value}".encode() + b"\0" for name, value in words.items())
    own, offset, length = (struct.pack("=I", n) for n in (_HEADER.size, _HEADER.size, len(body)))
    kind = properties.get("DEVTYPE")
    hashes = murmur(properties["SUBSYSTEM"].encode()), murmur(kind.encode()) if kind else 0
    return _HEADER.pack(b"libudev\0", _MAGIC, own, offset, length, *hashes) + body


def murmur(data: bytes) -> int:
    """Return MurmurHash2 (32 bits, seed 0) of ``data``, by which libudev's filters tell subsystems."""
    factor = 0x5BD1E995
    found = len(data)
    whole = len(data) & ~3
    for (part,) in struct.iter_unpack("<I", data[:whole]):
        mixed = part * factor & _WORD
        mixed = (mixed ^ mixed >> 24) * factor & _WORD
        found = (found * factor & _WORD) ^ mixed
    if whole < len(data):
        found = (found ^ int.from_bytes(data[whole:], "little")) * factor & _WORD
    found = (found ^ found >> 13) * factor & _WORD
    return found ^ found >> 15

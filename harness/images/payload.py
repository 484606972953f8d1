"""What a payload says it is: the descriptor that emulated payloads begin with, and bit reversal.

A real bitstream carries no such thing: its recipe or manifest states the same values. The card reads the
descriptor when it loads the image, and takes a page whose content does not fit its descriptor for
half written. Little-endian, 128 bytes, before bit reversal:

====== ==== ==========================================================================
offset size field
====== ==== ==========================================================================
0x00   8    magic ``HILPAYLD``
0x08   2    descriptor version, 1
0x0a   2    section: 0 SR, 1 BMC
0x0c   4    payload length in bytes, this descriptor included, padding behind it not
0x10   8    bitstream_id (SR)
0x18   8    bitstream_metadata (SR)
0x20   16   interface id (SR), in the order of its text form
0x30   4    Nios firmware version word (BMC), such as 0x44020014 for D.2.0.20
0x34   4    MAX10 build version word (BMC)
0x38   40   zero
0x60   32   SHA-256 over bytes 0x00 to 0x5f and everything behind the descriptor
====== ==== ==========================================================================
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.errors import ConfigurationError
from harness.yaml_text import load_plain

DESCRIPTOR_SIZE: Final = 128
_MAGIC: Final = b"HILPAYLD"
_VERSION: Final = 1
_FIELDS: Final = struct.Struct("<8sHHIQQ16sII40x")
_SECTIONS: Final[dict[str, int]] = {"SR": 0, "BMC": 1}
_REVERSED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@dataclass(frozen=True, slots=True)
class PayloadIdentity:
    """What a card with this SR payload says of itself once it has loaded it.

    ``interface_id``: text form of the PR interface id, such as
    ``a5d72a3c-c8b0-4939-912c-f715e5dc10ca``.
    """

    bitstream_id: int
    interface_id: str
    bitstream_metadata: int = 0


@dataclass(frozen=True, slots=True)
class BmcIdentity:
    """Version words of a BMC payload: of the Nios firmware, and of the MAX10 build."""

    bmcfw_version: int
    bmc_version: int


def version_text(word: int) -> str:
    """Return a version word as the tools show it: 0x44020014 is D.2.0.20 (byte 3 is an ASCII letter)."""
    letter, *numbers = word.to_bytes(4, "big")
    return ".".join((chr(letter), *map(str, numbers)))


def reverse_bits(data: bytes | bytearray | memoryview) -> bytes:
    """Return ``data`` with the bits of every byte reversed, as PACSign wraps SR payloads."""
    return bytes(data).translate(_REVERSED)


def build_payload(identity: PayloadIdentity | BmcIdentity, size: int, seed: str) -> bytes:
    """Return a payload of ``size`` bytes (before bit reversal) that says it is ``identity``.

    What follows the descriptor is noise, decided by ``seed`` alone.

    :raises ConfigurationError: ``size`` does not hold the descriptor, or the interface id is none.
    """
    if not DESCRIPTOR_SIZE <= size < 1 << 32:
        raise ConfigurationError(
            f"A payload of {size} bytes does not hold its descriptor of {DESCRIPTOR_SIZE} bytes.",
            hint="Give a size of at least 128 bytes and less than 4 GiB.",
        )
    noise = hashlib.shake_256(b"hil payload " + seed.encode()).digest(size - DESCRIPTOR_SIZE)
    if isinstance(identity, PayloadIdentity):
        stated = _FIELDS.pack(
            _MAGIC,
            _VERSION,
            _SECTIONS["SR"],
            size,
            identity.bitstream_id,
            identity.bitstream_metadata,
            interface_id_bytes(identity.interface_id),
            0,
            0,
        )
    else:
        versions = identity.bmcfw_version, identity.bmc_version
        stated = _FIELDS.pack(_MAGIC, _VERSION, _SECTIONS["BMC"], size, 0, 0, bytes(16), *versions)
    return stated + hashlib.sha256(stated + noise).digest() + noise


def read_descriptor(raw_payload: bytes | memoryview) -> PayloadIdentity | None:
    """Return what a whole SR payload (before bit reversal) is; None where it is none or half written."""
    identity = peek_descriptor(raw_payload)
    return identity if identity is not None and _is_whole(raw_payload) else None


def read_bmc_descriptor(payload: bytes | memoryview) -> BmcIdentity | None:
    """Return what a whole BMC payload is; None where it is none or half written."""
    identity = peek_bmc_descriptor(payload)
    return identity if identity is not None and _is_whole(payload) else None


def peek_descriptor(raw_payload: bytes | memoryview) -> PayloadIdentity | None:
    """Return what an SR payload (before bit reversal) says it is, whether or not it is whole.

    The first 128 bytes are enough.
    """
    fields = _fields(raw_payload, "SR")
    if fields is None:
        return None
    bitstream_id, metadata, interface_id, _, _ = fields
    return PayloadIdentity(bitstream_id, interface_id_text(interface_id), metadata)


def peek_bmc_descriptor(payload: bytes | memoryview) -> BmcIdentity | None:
    """Return what a BMC payload says it is, whether or not it is whole; 128 bytes are enough."""
    fields = _fields(payload, "BMC")
    return None if fields is None else BmcIdentity(fields[3], fields[4])


def _fields(payload: bytes | memoryview, section: str) -> tuple[int, int, bytes, int, int] | None:
    if len(payload) < DESCRIPTOR_SIZE:
        return None
    magic, version, stated_section, _, *values = _FIELDS.unpack_from(payload)
    if (magic, version, stated_section) != (_MAGIC, _VERSION, _SECTIONS[section]):
        return None
    bitstream_id, metadata, interface_id, bmcfw_version, bmc_version = values
    return bitstream_id, metadata, interface_id, bmcfw_version, bmc_version


def _is_whole(payload: bytes | memoryview) -> bool:
    length = int.from_bytes(payload[0x0C:0x10], "little")
    if not DESCRIPTOR_SIZE <= length <= len(payload):
        return False
    digest = hashlib.sha256(payload[: _FIELDS.size])
    digest.update(payload[DESCRIPTOR_SIZE:length])
    return digest.digest() == payload[_FIELDS.size : DESCRIPTOR_SIZE]


def interface_id_bytes(text: str) -> bytes:
    """Return the 16 bytes of an interface id. :raises ConfigurationError: ``text`` is none."""
    try:
        value = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        value = b""
    if len(value) != 16:
        raise ConfigurationError(
            f"{text!r} is no interface id.",
            hint="Give 32 hexadecimal digits, such as a5d72a3c-c8b0-4939-912c-f715e5dc10ca.",
        )
    return value


def interface_id_text(value: bytes) -> str:
    """Return the text form (8-4-4-4-12) of a 16-byte interface id."""
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


@dataclass(frozen=True, slots=True)
class PayloadTable:
    """Identities of payloads without a descriptor, by the SHA-256 of the payload as it is in the image."""

    sr: Mapping[str, PayloadIdentity]
    bmc: Mapping[str, BmcIdentity]


def load_payload_table(text: str) -> PayloadTable:
    """Return the table that ``text`` (YAML, see ``fixtures/vectors/payloads.yaml``) holds.

    :raises ConfigurationError: an entry lacks a value or holds a wrong one.
    """
    try:
        entries: Mapping[object, Any] = load_plain(text)["payloads"]
        rows = list(entries.items())
    except ConfigurationError as error:
        raise ConfigurationError(f"The payload table cannot be read: {error.message}") from error
    except (TypeError, KeyError, AttributeError) as error:
        raise ConfigurationError(f"This is no payload table: {error}.") from error
    sr: dict[str, PayloadIdentity] = {}
    bmc: dict[str, BmcIdentity] = {}
    for digest, entry in rows:
        if not isinstance(entry, Mapping):
            raise ConfigurationError(f"Payload {digest}: not a mapping of names to values.")
        section = entry.get("section")
        try:
            if section == "SR":
                interface_id = interface_id_text(interface_id_bytes(str(entry["interface_id"])))
                metadata = _word(entry.get("bitstream_metadata", 0), 64)
                sr[str(digest)] = PayloadIdentity(_word(entry["bitstream_id"], 64), interface_id, metadata)
            elif section == "BMC":
                versions = _word(entry["bmcfw_version"], 32), _word(entry["bmc_version"], 32)
                bmc[str(digest)] = BmcIdentity(*versions)
            else:
                raise ConfigurationError(f"Payload {digest}: section {section!r} is neither SR nor BMC.")
        except (KeyError, ValueError) as error:
            raise ConfigurationError(f"Payload {digest}: wrong or missing value: {error}.") from error
    return PayloadTable(sr, bmc)


def _word(value: object, bits: int) -> int:
    """:raises ValueError: ``value`` is no number that a register of so many bits holds."""
    if type(value) is not int or not 0 <= value < 1 << bits:
        raise ValueError(f"{str(value)[:40]} is no number of {bits} bits")
    return value

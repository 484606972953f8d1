"""Text of kernel attributes and tools -> values: what is legal is checked, everything else is Unknown."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from harness.judgement.values import ALL_ONES, Unknown, Value

Reader = Callable[[str], Any]

#: Update phases, in the words of driver generations B and D (n3000.md 4.2).
STATUS_WORDS = frozenset(
    {"idle", "read_file", "reading", "receiving", "preparing", "writing", "transferring", "programming"}
)
#: Error names of the update interfaces (n3000.md 4.2, formats.md).
ERROR_WORDS = frozenset(
    {
        "hw-error",
        "timeout",
        "user-abort",
        "device-busy",
        "invalid-file-size",
        "read-write-error",
        "flash-wearout",
        "file-read-error",
        "firmware-invalid",
        "unknown-error",
    }
)
#: The flash counter is a 4 KiB bit vector (n3000.md 4.3), so it cannot count further than this.
FLASH_COUNT_MAX = 4096 * 8
CSK_ID_MAX = 127
_FACTORY_BIT = 36

_HEX = re.compile(r"0[xX]([0-9a-fA-F]{1,16})")
_DECIMAL = re.compile(r"[0-9]{1,20}")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_VERSION = re.compile(r"[A-Z]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
_DIGEST = re.compile(r"(?:0x)?([0-9a-f]{64}|[0-9a-f]{96})")
_INTERFACE = re.compile(r"[0-9a-f]{32}")
_BOOT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RETIMER = re.compile(r"[0-9a-f]{1,4}\.[0-9a-f]{1,4}")
_DEVICE_NUMBER = re.compile(r"[0-9]{1,4}:[0-9]{1,7}")
_ADDRESS = re.compile(r"(?:([0-9a-f]{1,4}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})[.:]([0-7])")
_SHOWN = 60


def garbage(text: str, what: str) -> Unknown:
    """Return the Unknown for ``text`` that is not ``what``."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return Unknown(f"not {what}: {shown!r}")


def _integer(text: str) -> int | None:
    if match := _HEX.fullmatch(text):
        return int(match[1], 16)
    return int(text) if _DECIMAL.fullmatch(text) else None


def word64(text: str) -> Value[int]:
    """Read a 64-bit register: hex with 0x, or decimal. A register of all ones is not there."""
    number = _integer(text.strip())
    if number is None or number >= 1 << 64:
        return garbage(text, "a 64-bit number")
    return ALL_ONES if number == (1 << 64) - 1 else number


def word32(text: str) -> Value[int]:
    """Read a 32-bit register: hex with 0x, or decimal. A register of all ones is not there."""
    number = _integer(text.strip())
    if number is None or number >= 1 << 64:
        return garbage(text, "a 32-bit number")
    if number in ((1 << 32) - 1, (1 << 64) - 1):
        return ALL_ONES
    return number if number < 1 << 32 else garbage(text, "a 32-bit number")


def device_id(text: str) -> Value[int]:
    """Read a PCI device id; a function that fell off the bus reads 0xffff."""
    number = word32(text)
    if isinstance(number, int) and number >= 0xFFFF:
        return ALL_ONES if number == 0xFFFF else garbage(text, "a PCI device id")
    return number


def remaining_size(text: str) -> Value[int]:
    """Read the bytes that an update has still to transfer."""
    return word32(text)


def flash_count(text: str) -> Value[int]:
    """Read the number of updates that the flash has taken; beyond its bit vector it cannot be."""
    number = word32(text)
    if isinstance(number, int) and number > FLASH_COUNT_MAX:
        return garbage(text, f"a flash count (0..{FLASH_COUNT_MAX})")
    return number


def mac(text: str) -> Value[str]:
    """Read a MAC address, lower case."""
    plain = text.strip().lower()
    if _MAC.fullmatch(plain) is None:
        return garbage(text, "a MAC address")
    if plain == "ff:ff:ff:ff:ff:ff":
        return ALL_ONES
    return plain if plain != "00:00:00:00:00:00" else garbage(text, "a MAC address")


def version_word(text: str) -> Value[str]:
    """Read a version register: 0x44020006 -> ``D.2.0.6``; byte 3 is the revision letter."""
    number = word32(text)
    if isinstance(number, Unknown):
        return number
    letter = chr(number >> 24)
    if not ("A" <= letter <= "Z"):
        return garbage(text, "a version (its first byte is no letter)")
    return ".".join([letter, *(str(number >> shift & 0xFF) for shift in (16, 8, 0))])


def bare_version_word(text: str) -> Value[str]:
    """Read a version register that is printed in hex without 0x: ``43010006`` -> ``C.1.0.6``."""
    plain = text.strip()
    return version_word(plain if plain.lower().startswith("0x") else f"0x{plain}")


def version_text(text: str) -> Value[str]:
    """Read a version as tools print it: ``D.2.0.6``."""
    plain = text.strip()
    if not plain:
        return Unknown("empty")
    if plain.lower() == "not supported":
        return Unknown("not supported")
    if _VERSION.fullmatch(plain) is None or any(int(part) > 0xFF for part in plain.split(".")[1:]):
        return garbage(text, "a version")
    return plain


def root_hash(text: str) -> Value[str]:
    """Read a root entry hash: hex without 0x, or ``""`` where none is programmed."""
    plain = text.strip().lower()
    if plain == "hash not programmed":
        return ""
    match = _DIGEST.fullmatch(plain)
    if match is None:
        return garbage(text, "a root entry hash")
    return ALL_ONES if set(match[1]) == {"f"} else match[1]


def csk_ids(text: str) -> Value[frozenset[int]]:
    """Read a kernel bitmap list of CSK ids: ``1,2-6,9``; empty for none."""
    plain = text.strip()
    ids: set[int] = set()
    for part in plain.split(",") if plain else ():
        match = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last <= CSK_ID_MAX:
            return garbage(text, f"a list of CSK ids (0..{CSK_ID_MAX})")
        ids.update(range(first, last + 1))
    return frozenset(ids)


def interface_id(text: str) -> Value[str]:
    """Read an interface id, dashed or not; return the form ``a5d72a3c-c8b0-4939-912c-f715e5dc10ca``."""
    plain = text.strip().lower().replace("-", "").removeprefix("0x")
    if _INTERFACE.fullmatch(plain) is None:
        return garbage(text, "an interface id")
    if set(plain) == {"f"}:
        return ALL_ONES
    return "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]))


def update_status(text: str) -> Value[str]:
    """Read the phase that an update is in."""
    plain = text.strip()
    return plain if plain in STATUS_WORDS else garbage(text, "a status of the update interface")


def update_error(text: str) -> Value[str]:
    """Read the error of the last update: ``<phase>:<error>``, ``<error>``, or ``""`` for none."""
    plain = text.strip()
    phase, colon, error = plain.rpartition(":")
    if not plain or (error in ERROR_WORDS and (phase in STATUS_WORDS if colon else True)):
        return plain
    return garbage(text, "an error of the update interface")


def retimer_version(text: str) -> Value[str]:
    """Read the version of a retimer: ``101c.1064``."""
    plain = text.strip().lower()
    if _RETIMER.fullmatch(plain) is None:
        return garbage(text, "a retimer version")
    return ALL_ONES if set(plain) <= set("f.") else plain


def device_number(text: str) -> Value[str]:
    """Read the number of a character device: ``240:0``."""
    plain = text.strip()
    return plain if _DEVICE_NUMBER.fullmatch(plain) else garbage(text, "a device number")


def boot_id(text: str) -> Value[str]:
    """Read the kernel's id of the current boot."""
    plain = text.strip()
    return plain if _BOOT_ID.fullmatch(plain) else garbage(text, "a boot id")


def boot_page(bitstream: Value[int]) -> Value[str]:
    """Return ``factory`` or ``user`` by bit 36 of a bitstream id (n3000.md 4.7)."""
    if isinstance(bitstream, Unknown):
        return bitstream
    return "factory" if bitstream >> _FACTORY_BIT & 1 else "user"


def boot_page_text(text: str) -> Value[str]:
    """Read the boot page as `fpgainfo` prints it."""
    plain = text.strip()
    if plain in {"N/A", ""}:
        return Unknown("not available")
    legal = plain in {"user", "factory"} or re.fullmatch(r"fpga_(user|factory)[0-9]?", plain)
    return plain if legal else garbage(text, "a boot page")


def pci_address(text: str) -> Value[str]:
    """Read a PCI address in any of the forms of tools: ``0000:C4:00.0``, ``0000:1:00.0``, ``c4:00.0``."""
    match = _ADDRESS.fullmatch(text.strip().lower())
    if match is None or int(match[3], 16) > 0x1F:
        return garbage(text, "a PCI address")
    domain, bus, device = (int(part or "0", 16) for part in match.group(1, 2, 3))
    return f"{domain:04x}:{bus:02x}:{device:02x}.{match[4]}"

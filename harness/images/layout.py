"""Where every field of a signed image lies, and the magics and ids that it may hold.

Facts: PACSign's ``reader.py``, ``key_manager.py`` and ``database.py`` (opae-sdk 2.14); Intel "Security
User Guide: Intel FPGA PAC N3000" (683519), appendix A. Integers are little-endian; hashes, X, Y, R and S
are raw big-endian bytes, left-aligned in their fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

BLOCK0_SIZE: Final = 0x80
HEADER_SIZE: Final = 0x400
#: A payload is padded with zeros to a multiple of this.
PAYLOAD_ALIGNMENT: Final = 128
#: Smallest file that the tool sends to a card (fpgasupdate.py, ``decode_auth_block0``).
MINIMUM_SIZE: Final = HEADER_SIZE + PAYLOAD_ALIGNMENT
#: Largest file that the card's staging area holds, header included.
STAGING_SIZE: Final = 0x3800000
#: Payload size of a root-key or cancellation image.
CERTIFICATE_PAYLOAD_SIZE: Final = 128

BLOCK0_MAGIC: Final = 0xB6EAFD19
BLOCK1_MAGIC: Final = 0xF27F28D7
ROOT_ENTRY_MAGIC: Final = 0xA757A046
CSK_ENTRY_MAGIC: Final = 0x14711C2F
BLOCK0_ENTRY_MAGIC: Final = 0x15364367

#: Permissions of a root key, and of every key without restriction; also the key id of a root key.
ALL_ONES: Final = 0xFFFFFFFF
#: Highest CSK id, and highest id that a cancellation may name.
MAX_CSK_ID: Final = 127
#: Highest content type that an N3000 takes (auth error 0x03 is "Block0 ConType B[7:0] > 2").
MAX_CONTENT_TYPE: Final = 2

CONTENT_TYPES: Final[dict[int, str]] = {
    0: "SR",
    1: "BMC",
    2: "PR",
    3: "FACTORY",
    4: "PXE",
    5: "THERM_SR",
    6: "THERM_PR",
    7: "SDM",
    8: "SR_TEST",
    9: "BMC_FACTORY",
    10: "PR_TEST",
    11: "SR_CERT",
    12: "SDM_TEST",
}
CERT_TYPES: Final[dict[int, str]] = {0: "UPDATE", 1: "CANCEL", 2: "RK_256", 3: "RK_384"}
#: Bit of a CSK's permissions that its content type needs.
PERMISSION_BITS: Final[dict[str, int]] = {"SR": 0x1, "BMC": 0x2, "PR": 0x4, "PXE": 1 << 4, "SDM": 1 << 7}
#: Content types whose payload bytes are bit-reversed when they are wrapped the first time.
BIT_REVERSED_TYPES: Final = frozenset({"SR", "FACTORY", "SR_TEST", "SDM", "SDM_TEST"})
#: SHA-256 of the 128 body bytes of a P-256 root entry whose X and Y are zero.
UNSIGNED_ROOT_ENTRY_HASH: Final = "f8ff7e0a52a378483c85301df49c7d55ffd26f794121bdb8b102d7e1c3132bb9"


@dataclass(frozen=True, slots=True)
class Curve:
    """One of the two curves: its magics, the hash that goes with it, and the bytes of a coordinate."""

    name: str
    key_magic: int
    signature_magic: int
    hash_name: str
    coordinate_size: int
    root_key_cert: str


P256: Final = Curve("P-256", 0xC7B88C74, 0xDE64437D, "sha256", 32, "RK_256")
P384: Final = Curve("P-384", 0x08F07B47, 0xEA2A50E9, "sha384", 48, "RK_384")
CURVES: Final = (P256, P384)
CURVE_BY_KEY_MAGIC: Final[dict[int, Curve]] = {curve.key_magic: curve for curve in CURVES}
CURVE_BY_SIGNATURE_MAGIC: Final[dict[int, Curve]] = {curve.signature_magic: curve for curve in CURVES}


@dataclass(frozen=True, slots=True)
class Field:
    """A named range of bytes of the file."""

    name: str
    offset: int
    size: int

    @property
    def end(self) -> int:
        """Offset of the first byte behind the field."""
        return self.offset + self.size

    def of(self, data: bytes | bytearray | memoryview) -> bytes:
        """Return the field's bytes of ``data``; fewer where ``data`` ends within it."""
        return bytes(data[self.offset : self.end])

    def integer(self, data: bytes | bytearray | memoryview) -> int:
        """Return the field of ``data`` as a little-endian integer."""
        return int.from_bytes(self.of(data), "little")


MAGIC: Final = Field("magic", 0x00, 4)
CONTENT_LENGTH: Final = Field("content_length", 0x04, 4)
CONTENT_TYPE: Final = Field("content_type", 0x08, 1)
CERT_TYPE: Final = Field("cert_type", 0x09, 1)
SLOT: Final = Field("slot", 0x0A, 1)
BLOCK0_RESERVED: Final = Field("block0_reserved", 0x0B, 5)
PAYLOAD_SHA256: Final = Field("payload_sha256", 0x10, 32)
PAYLOAD_SHA384: Final = Field("payload_sha384", 0x30, 48)
VERSION: Final = Field("version", 0x60, 32)

B1_MAGIC: Final = Field("block1_magic", 0x80, 4)
B1_RESERVED: Final = Field("block1_reserved", 0x84, 12)


@dataclass(frozen=True, slots=True)
class KeyEntryFields:
    """Fields of a root entry or of the key part of a CSK entry, for the entry's ``offset``."""

    name: str
    offset: int

    def _field(self, name: str, offset: int, size: int) -> Field:
        return Field(f"{self.name}_{name}", self.offset + offset, size)

    @property
    def magic(self) -> Field:
        """Magic of the entry; not part of the body."""
        return self._field("magic", 0x00, 4)

    @property
    def body(self) -> Field:
        """What is hashed (root entry hash) or signed (CSK)."""
        return self._field("body", 0x04, 128)

    @property
    def curve(self) -> Field:
        """Curve magic."""
        return self._field("curve", 0x04, 4)

    @property
    def permissions(self) -> Field:
        """Permission bits."""
        return self._field("permissions", 0x08, 4)

    @property
    def key_id(self) -> Field:
        """Key id: the CSK id, or all ones of a root."""
        return self._field("key_id", 0x0C, 4)

    @property
    def x(self) -> Field:
        """X of the public key, left-aligned."""
        return self._field("x", 0x10, 48)

    @property
    def y(self) -> Field:
        """Y of the public key, left-aligned."""
        return self._field("y", 0x40, 48)

    @property
    def reserved(self) -> Field:
        """Zero bytes at the end of the body."""
        return self._field("reserved", 0x70, 20)

    def __iter__(self) -> Iterator[Field]:
        return iter((self.magic, self.curve, self.permissions, self.key_id, self.x, self.y, self.reserved))


@dataclass(frozen=True, slots=True)
class SignatureFields:
    """Signature magic, R and S, for the ``offset`` of the signature magic."""

    name: str
    offset: int

    @property
    def magic(self) -> Field:
        """Signature magic, one per curve."""
        return Field(f"{self.name}_signature_magic", self.offset, 4)

    @property
    def r(self) -> Field:
        """R, left-aligned."""
        return Field(f"{self.name}_signature_r", self.offset + 4, 48)

    @property
    def s(self) -> Field:
        """S, left-aligned."""
        return Field(f"{self.name}_signature_s", self.offset + 0x34, 48)

    def __iter__(self) -> Iterator[Field]:
        return iter((self.magic, self.r, self.s))


ROOT_ENTRY: Final = KeyEntryFields("root", 0x90)
CSK_ENTRY: Final = KeyEntryFields("csk", 0x114)
CSK_SIGNATURE: Final = SignatureFields("csk", 0x198)

UPDATE_BLOCK0_ENTRY_OFFSET: Final = 0x1FC
#: A cancellation has no CSK entry: the block 0 entry moves up into its place.
CANCEL_BLOCK0_ENTRY_OFFSET: Final = 0x114
BLOCK0_ENTRY_SIZE: Final = 104


def block0_entry_magic(offset: int) -> Field:
    """Return the magic field of the block 0 entry at ``offset``."""
    return Field("block0_entry_magic", offset, 4)


def block0_entry_signature(offset: int) -> SignatureFields:
    """Return the signature fields of the block 0 entry at ``offset``."""
    return SignatureFields("block0", offset + 4)


CANCEL_ID: Final = Field("cancel_id", HEADER_SIZE, 4)

BLOCK0_FIELDS: Final = (
    MAGIC,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    CERT_TYPE,
    SLOT,
    BLOCK0_RESERVED,
    PAYLOAD_SHA256,
    PAYLOAD_SHA384,
    VERSION,
)


def fields_of(cert_type: str) -> tuple[Field, ...]:
    """Return every field of a header of ``cert_type``, in the order of the file, without gaps.

    An unknown ``cert_type`` has Block 0 and the magic of Block 1 only; the rest is one field.
    """
    if cert_type == "UPDATE":
        entry = UPDATE_BLOCK0_ENTRY_OFFSET
        chain = (*ROOT_ENTRY, *CSK_ENTRY, *CSK_SIGNATURE)
    elif cert_type == "CANCEL":
        entry = CANCEL_BLOCK0_ENTRY_OFFSET
        chain = tuple(ROOT_ENTRY)
    else:
        tail = Field("block1_padding", B1_RESERVED.end, HEADER_SIZE - B1_RESERVED.end)
        return (*BLOCK0_FIELDS, B1_MAGIC, B1_RESERVED, tail)
    end = entry + BLOCK0_ENTRY_SIZE
    padding = Field("block1_padding", end, HEADER_SIZE - end)
    return (
        *BLOCK0_FIELDS,
        B1_MAGIC,
        B1_RESERVED,
        *chain,
        block0_entry_magic(entry),
        *block0_entry_signature(entry),
        padding,
    )

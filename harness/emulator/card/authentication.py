"""What the card makes of an image: ordered checks on the bytes in staging, with real ECDSA.

The order and the codes are those of the fact sheet, 3.2 and 3.3. Where documents leave one open, the
profile decides. Nothing here knows a recipe, and nothing of :mod:`harness.images.verify` is used: what is
expected of the card and what the card does must be able to disagree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from harness.emulator.card.flash import SECTIONS, Section
from harness.emulator.card.profile import CHECK_CODES, CardProfile
from harness.images import layout

_ECDSA: Final = ec.ECDSA(hashes.SHA256())
_UPDATE, _CANCEL, _ROOT_KEY, _ROOT_KEY_384 = range(4)


@dataclass(frozen=True, slots=True)
class SectionTrust:
    """What the BMC holds an image of one section against.

    ``root``: the root entry hash in force; ``programmed``: whether flash holds one already (it may count
    only after the next reset); ``cancelled``: the CSK ids in force.
    """

    root: str | None = None
    programmed: bool = False
    cancelled: frozenset[int] = frozenset()


Trust = Mapping[Section, SectionTrust]


@dataclass(frozen=True, slots=True)
class StorePayload:
    """Copy the payload to the user page of a section."""

    section: Section
    payload: bytes


@dataclass(frozen=True, slots=True)
class ProgramRoot:
    """Store a root entry hash; for ever."""

    section: Section
    root: str


@dataclass(frozen=True, slots=True)
class CancelKey:
    """Cancel a CSK id; for ever."""

    section: Section
    csk_id: int


Effect = StorePayload | ProgramRoot | CancelKey


@dataclass(frozen=True, slots=True)
class Decision:
    """The card's answer: ``code`` of 3.2 (0: accepted), ``check`` that refused, and what follows."""

    code: int
    reason: str
    check: str = ""
    effect: Effect | None = None

    @property
    def accepted(self) -> bool:
        """Whether the image passed every check."""
        return self.code == 0


class _Staged:
    """The image in staging, field by field; staging beyond the file is erased flash (all ones)."""

    def __init__(self, staging: bytes | bytearray, trust: Trust, profile: CardProfile) -> None:
        self._staging = staging
        self.profile = profile
        self.head = bytes(staging[: layout.MINIMUM_SIZE]).ljust(layout.MINIMUM_SIZE, b"\xff")
        self.content_type = layout.CONTENT_TYPE.integer(self.head)
        # A defective card that lets an unknown type pass takes it for a user image, and an unknown
        # operation for an update.
        self.section: Section = SECTIONS[self.content_type] if self.content_type < len(SECTIONS) else "SR"
        self.trust = trust.get(self.section, SectionTrust())
        self.cert_type = layout.CERT_TYPE.integer(self.head)
        self.operation = {_CANCEL: _CANCEL, _ROOT_KEY: _ROOT_KEY, _ROOT_KEY_384: _ROOT_KEY}.get(
            self.cert_type, _UPDATE
        )
        cancel = self.operation == _CANCEL
        entry = layout.CANCEL_BLOCK0_ENTRY_OFFSET if cancel else layout.UPDATE_BLOCK0_ENTRY_OFFSET
        self.block0_entry_magic = layout.block0_entry_magic(entry)
        self.block0_signature = layout.block0_entry_signature(entry)

    def word(self, field: layout.Field) -> int:
        return field.integer(self.head)

    @cached_property
    def payload(self) -> bytes:
        length = min(self.word(layout.CONTENT_LENGTH), layout.STAGING_SIZE - layout.HEADER_SIZE)
        part = bytes(memoryview(self._staging)[layout.HEADER_SIZE : layout.HEADER_SIZE + length])
        return part.ljust(length, b"\xff")

    @property
    def root_hash(self) -> str:
        return hashlib.sha256(layout.ROOT_ENTRY.body.of(self.head)).hexdigest()

    def length_fits(self) -> bool:
        length = self.word(layout.CONTENT_LENGTH)
        if self.operation != _UPDATE:
            return length == layout.CERTIFICATE_PAYLOAD_SIZE
        room = layout.STAGING_SIZE - layout.HEADER_SIZE
        return 0 < length <= room and length % layout.PAYLOAD_ALIGNMENT == 0

    def operation_exists(self) -> bool:
        if (self.section, self.operation) == ("PR", _UPDATE) and self.profile.pr_update == "refused":
            return False
        return self.cert_type in (_UPDATE, _CANCEL, _ROOT_KEY)  # RK_384: the firmware knows P-256 only

    def payload_fits(self) -> bool:
        if hashlib.sha256(self.payload).digest() != layout.PAYLOAD_SHA256.of(self.head):
            return False
        if not self.profile.payload_sha384_checked:
            return True
        return hashlib.sha384(self.payload).digest() == layout.PAYLOAD_SHA384.of(self.head)

    def signed_by(
        self, key: layout.KeyEntryFields, signature: layout.SignatureFields, message: bytes
    ) -> bool:
        size = layout.P256.coordinate_size
        point = b"\x04" + key.x.of(self.head)[:size] + key.y.of(self.head)[:size]
        r, s = (int.from_bytes(part.of(self.head)[:size], "big") for part in (signature.r, signature.s))
        return _verified(point, r, s, message)

    def block0_signed(self) -> bool:
        key = layout.ROOT_ENTRY if self.operation == _CANCEL else layout.CSK_ENTRY
        return self.signed_by(key, self.block0_signature, self.head[: layout.BLOCK0_SIZE])


@lru_cache(maxsize=1024)  # the same image is flashed again and again
def _verified(point: bytes, r: int, s: int, message: bytes) -> bool:
    """Return whether the ECDSA signature (r, s) over ``message`` is that of the key at ``point``."""
    try:
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        public.verify(encode_dss_signature(r, s), message, _ECDSA)
    except (InvalidSignature, ValueError):  # ValueError: no point of the curve, such as an all-zero key
        return False
    return True


def _csk_may_sign(image: _Staged) -> bool:
    return bool(image.word(layout.CSK_ENTRY.permissions) & layout.PERMISSION_BITS[image.section])


def _csk_id(image: _Staged) -> int:
    return image.word(layout.CSK_ENTRY.key_id)


_CHECKS: Final[dict[str, tuple[str, Callable[[_Staged], bool]]]] = {
    "b0-magic": ("B0 magic", lambda i: i.word(layout.MAGIC) == layout.BLOCK0_MAGIC),
    "content-length": ("B0 content length", _Staged.length_fits),
    "content-type": ("B0 content type", lambda i: i.content_type <= layout.MAX_CONTENT_TYPE),
    "b1-magic": ("B1 magic", lambda i: i.word(layout.B1_MAGIC) == layout.BLOCK1_MAGIC),
    "operation": ("invalid operation of content type", _Staged.operation_exists),
    "root-already-programmed": ("root hash already programmed", lambda i: not i.trust.programmed),
    "root-key-payload-hash": ("hash-programming payload SHA", _Staged.payload_fits),
    "root-not-programmed": ("root hash not programmed", lambda i: i.trust.root is not None),
    "root-magic": (
        "root entry magic",
        lambda i: i.word(layout.ROOT_ENTRY.magic) == layout.ROOT_ENTRY_MAGIC,
    ),
    "root-curve": (
        "root entry curve magic",
        lambda i: i.word(layout.ROOT_ENTRY.curve) == layout.P256.key_magic,
    ),
    "root-permission": (
        "root entry permission",
        lambda i: i.word(layout.ROOT_ENTRY.permissions) == layout.ALL_ONES,
    ),
    "root-key-id": ("root entry key id", lambda i: i.word(layout.ROOT_ENTRY.key_id) == layout.ALL_ONES),
    "root-hash": ("root entry SHA mismatch", lambda i: i.root_hash == i.trust.root),
    "csk-magic": ("CSK magic", lambda i: i.word(layout.CSK_ENTRY.magic) == layout.CSK_ENTRY_MAGIC),
    "csk-curve": ("CSK curve magic", lambda i: i.word(layout.CSK_ENTRY.curve) == layout.P256.key_magic),
    "csk-permission": ("CSK permission", _csk_may_sign),
    "csk-signature-magic": (
        "CSK signature magic",
        lambda i: i.word(layout.CSK_SIGNATURE.magic) == layout.P256.signature_magic,
    ),
    "csk-id-range": ("CSK id out of range", lambda i: _csk_id(i) <= layout.MAX_CSK_ID),
    "csk-cancelled": ("CSK id cancelled", lambda i: _csk_id(i) not in i.trust.cancelled),
    "csk-signature": (
        "CSK signature",
        lambda i: i.signed_by(layout.ROOT_ENTRY, layout.CSK_SIGNATURE, layout.CSK_ENTRY.body.of(i.head)),
    ),
    "b0-entry-magic": (
        "B0 entry magic",
        lambda i: i.word(i.block0_entry_magic) == layout.BLOCK0_ENTRY_MAGIC,
    ),
    "b0-entry-signature-magic": (
        "B0 entry signature magic",
        lambda i: i.word(i.block0_signature.magic) == layout.P256.signature_magic,
    ),
    "b0-signature": ("B0 entry signature", _Staged.block0_signed),
    "payload-hash": ("payload SHA", _Staged.payload_fits),
    "cancellation-payload-hash": ("cancellation payload SHA", _Staged.payload_fits),
    "cancellation-id": (
        "invalid cancellation id",
        lambda i: i.word(layout.CANCEL_ID) <= layout.MAX_CSK_ID,
    ),
}

_FORM: Final = ("b0-magic", "content-length", "content-type", "b1-magic", "operation")
_ROOT: Final = ("root-magic", "root-curve", "root-permission", "root-key-id", "root-hash")
_CSK: Final = (
    "csk-magic",
    "csk-curve",
    "csk-permission",
    "csk-signature-magic",
    "csk-id-range",
    "csk-cancelled",
    "csk-signature",
)
_BLOCK0: Final = ("b0-entry-magic", "b0-entry-signature-magic", "b0-signature")


def _due_checks(image: _Staged) -> tuple[str, ...]:
    if image.operation == _ROOT_KEY:
        return (*_FORM, "root-already-programmed", "root-key-payload-hash")
    if image.operation == _CANCEL:
        tail = ("cancellation-payload-hash", "cancellation-id")
        return (*_FORM, "root-not-programmed", *_ROOT, *_BLOCK0, *tail)
    if image.trust.root is not None:
        return (*_FORM, *_ROOT, *_CSK, *_BLOCK0, "payload-hash")
    return (*_FORM, "payload-hash") if image.profile.payload_hash_on_unkeyed_card else _FORM


def authenticate(staging: bytes | bytearray, trust: Trust, profile: CardProfile) -> Decision:
    """Return what a card with this trust makes of an image that was written to its erased staging."""
    image = _Staged(staging, trust, profile)
    for check in _due_checks(image):
        reason, holds = _CHECKS[check]
        if check not in profile.disabled_checks and not holds(image):
            return Decision(_code(check, profile), reason, check)
    return _accepted(image)


def _code(check: str, profile: CardProfile) -> int:
    return profile.csk_id_out_of_range_code if check == "csk-id-range" else CHECK_CODES[check]


def _accepted(image: _Staged) -> Decision:
    if image.operation == _ROOT_KEY:
        root = image.payload[: layout.P256.coordinate_size].hex()
        return Decision(0, f"program {root}", effect=ProgramRoot(image.section, root))
    if image.operation == _CANCEL:
        # The vector has 128 bits: a defective card that lets a higher id pass wraps around.
        csk_id = image.word(layout.CANCEL_ID) % (layout.MAX_CSK_ID + 1)
        return Decision(0, f"cancel CSK {csk_id}", effect=CancelKey(image.section, csk_id))
    reason = "accepted" if image.trust.root is not None else "no root hash: chain ignored"
    if image.section == "PR":
        return Decision(0, reason)
    return Decision(0, reason, effect=StorePayload(image.section, image.payload))

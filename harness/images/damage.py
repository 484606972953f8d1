"""The catalogue of damages: each names the bytes it touches and the rules that these bytes then break.

A damage that lies within what a signature covers is signed again, so that the rule it names is the only
one broken. Codes are those of the card's authentication result register (DPDK ``drivers/raw/ifpga``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harness.errors import ConfigurationError
from harness.images import layout
from harness.images.keys import PrivateKey
from harness.images.layout import Field
from harness.images.parse import SignedImage, parse
from harness.images.sign import Seal, put_payload_hashes, seal

_UPDATE: Final = frozenset({"UPDATE"})
_CANCEL: Final = frozenset({"CANCEL"})
_ROOT_KEY: Final = frozenset({"RK_256", "RK_384"})
_SIGNED: Final = _UPDATE | _CANCEL
_ANY: Final = _SIGNED | _ROOT_KEY
#: Permission bits of every content type that an N3000 takes.
_CARD_PERMISSIONS: Final = 0x1 | 0x2 | 0x4
_HASH_RULES: Final = ("payload-sha256", "payload-sha384")


@dataclass(frozen=True, slots=True)
class Damage:
    """One way to break an image.

    ``rules``: the rules of :class:`harness.images.parse.Finding` that are broken afterwards, all of
    them; ``not-an-image`` where the bytes are no image any more. ``code``: authentication code that the
    documents name for it, on a card whose root is the image's; "" where the tool does not send the
    file, or the documents name none. ``cert_types``: the images that it can be done to.
    ``seals``: the signatures that are made again afterwards. ``where``: from certificate type and file
    size to the bytes that are touched.
    """

    name: str
    what: str
    rules: tuple[str, ...]
    code: str
    where: Callable[[str, int], Field]
    edit: Callable[[bytearray, Field], None]
    cert_types: frozenset[str] = _UPDATE
    seals: frozenset[Seal] = frozenset()

    @property
    def byte_range(self) -> str:
        """The bytes that are touched, such as ``0x0010-0x002f``, or counted from the file's ``end``."""
        cert_type = min(self.cert_types, key=["UPDATE", "CANCEL", "RK_256", "RK_384"].index)
        field = self.where(cert_type, 0)
        if field == self.where(cert_type, 1):
            return f"0x{field.offset:04x}-0x{field.end - 1:04x}"
        return f"end{field.offset:+}..end{field.end - 1:+}"

    def apply(self, data: bytes, *, root: PrivateKey | None = None, csk: PrivateKey | None = None) -> bytes:
        """Return the image ``data`` damaged. Keys: those it was signed with, where ``seals`` asks for them.

        A signature that the image never had is not made.

        :raises NotAnImage: ``data`` is none.
        :raises ConfigurationError: the damage is not for this certificate type, or a key is missing.
        """
        image = parse(data)
        if image.cert_type not in self.cert_types:
            raise ConfigurationError(
                f"The damage {self.name!r} is for {'/'.join(sorted(self.cert_types))} images; "
                f"this one is {image.cert_type}.",
                hint="`hil image damage --list` says which damage is for which image.",
            )
        seals = self._due_seals(image, root, csk)
        damaged = bytearray(data)
        self.edit(damaged, self.where(image.cert_type, len(data)))
        seal(damaged, root=root, csk=csk, which=seals)
        return bytes(damaged)

    def _due_seals(
        self, image: SignedImage, root: PrivateKey | None, csk: PrivateKey | None
    ) -> frozenset[Seal]:
        """Return the signatures to make again. :raises ConfigurationError: the key of one is missing."""
        signatures = {"csk": image.csk_signature, "block0": image.block0_signature}
        block0_signer = ("csk", csk) if image.cert_type == "UPDATE" else ("root", root)
        signers = {"csk": ("root", root), "block0": block0_signer}
        due: set[Seal] = set()
        for which in self.seals:
            signature, (name, key) = signatures[which], signers[which]
            if signature is None or signature.is_zero:
                continue
            if key is None:
                raise ConfigurationError(
                    f"The damage {self.name!r} is signed again with the {name} key, so that nothing else is "
                    "broken; that key was not given.",
                    hint=f"Give --{name}-key.",
                )
            due.add(which)
        return frozenset(due)


def _at(field: Field) -> Callable[[str, int], Field]:
    return lambda cert_type, size: field


def _block0_entry(name: str) -> Callable[[str, int], Field]:
    """Return where a field of the block 0 entry lies, which depends on the certificate type."""

    def where(cert_type: str, size: int) -> Field:
        update = cert_type == "UPDATE"
        offset = layout.UPDATE_BLOCK0_ENTRY_OFFSET if update else layout.CANCEL_BLOCK0_ENTRY_OFFSET
        if name == "magic":
            return layout.block0_entry_magic(offset)
        fields = layout.block0_entry_signature(offset)
        return fields.magic if name == "signature_magic" else fields.r

    return where


def _last_bytes(count: int) -> Callable[[str, int], Field]:
    return lambda cert_type, size: Field("payload", size - count, count)


def _behind(cert_type: str, size: int) -> Field:
    return Field("trailing", size, layout.PAYLOAD_ALIGNMENT)


def _flip_first_bit(data: bytearray, field: Field) -> None:
    data[field.offset] ^= 0x01


def _flip_last_bit(data: bytearray, field: Field) -> None:
    data[field.end - 1] ^= 0x80


def _set(value: int) -> Callable[[bytearray, Field], None]:
    def edit(data: bytearray, field: Field) -> None:
        data[field.offset : field.end] = value.to_bytes(field.size, "little")

    return edit


def _shorten_content(data: bytearray, field: Field) -> None:
    """Drop the payload's last byte, and say so in length and hashes."""
    del data[-1]
    _set(len(data) - layout.HEADER_SIZE)(data, field)
    put_payload_hashes(data)


def _break_both_hashes(data: bytearray, field: Field) -> None:
    _flip_first_bit(data, layout.PAYLOAD_SHA256)
    _flip_first_bit(data, layout.PAYLOAD_SHA384)


def _cancel_id_128(data: bytearray, field: Field) -> None:
    _set(layout.MAX_CSK_ID + 1)(data, field)
    put_payload_hashes(data)


def _cut(data: bytearray, field: Field) -> None:
    del data[field.offset :]


def _append(data: bytearray, field: Field) -> None:
    data.extend(b"\xa5" * field.size)


_HASHES: Final = Field("payload_hashes", layout.PAYLOAD_SHA256.offset, 32 + 48)
_CSK: Final = layout.CSK_ENTRY
_ROOT: Final = layout.ROOT_ENTRY
_BLOCK0_SEAL: Final[frozenset[Seal]] = frozenset({"block0"})
_CSK_SEAL: Final[frozenset[Seal]] = frozenset({"csk"})

_CATALOGUE: Final = (
    Damage(
        "b0-magic", "another Block 0 magic", ("not-an-image",), "", _at(layout.MAGIC), _flip_first_bit, _ANY
    ),
    Damage(
        "content-length",
        "a payload, and a length, one byte short of a multiple of 128",
        ("content-length",),
        "0x02",
        _at(layout.CONTENT_LENGTH),
        _shorten_content,
        seals=_BLOCK0_SEAL,
    ),
    Damage(
        "content-length-huge",
        "a length beyond the staging area",
        ("content-length",),
        "0x02",
        _at(layout.CONTENT_LENGTH),
        _set(0xFFFFFF80),
        seals=_BLOCK0_SEAL,
    ),
    Damage(
        "content-type",
        "content type 3 (FACTORY)",
        ("content-type",),
        "0x03",
        _at(layout.CONTENT_TYPE),
        _set(3),
        seals=_BLOCK0_SEAL,
    ),
    Damage(
        "cert-type",
        "certificate type 4, which is none",
        ("cert-type",),
        "",
        _at(layout.CERT_TYPE),
        _set(4),
        _SIGNED,
    ),
    Damage(
        "version-edited",
        "image info edited after signing",
        ("b0-signature",),
        "0x13",
        _at(layout.VERSION),
        _flip_first_bit,
        _SIGNED,
    ),
    Damage(
        "payload-hash",
        "both payload hashes wrong in a header that is signed",
        _HASH_RULES,
        "0x16",
        _at(_HASHES),
        _break_both_hashes,
        seals=_BLOCK0_SEAL,
    ),
    Damage(
        "payload-sha256",
        "a wrong SHA-256 of the payload in a header that is signed",
        ("payload-sha256",),
        "0x16",
        _at(layout.PAYLOAD_SHA256),
        _flip_first_bit,
        seals=_BLOCK0_SEAL,
    ),
    Damage(
        "payload-sha384",
        "a wrong SHA-384 of the payload in a header that is signed; whether a card looks at it is open",
        ("payload-sha384",),
        "",
        _at(layout.PAYLOAD_SHA384),
        _flip_first_bit,
        seals=_BLOCK0_SEAL,
    ),
    Damage(
        "b1-magic",
        "another Block 1 magic",
        ("b1-magic",),
        "0x04",
        _at(layout.B1_MAGIC),
        _flip_first_bit,
        _ANY,
    ),
    Damage(
        "reserved",
        "a byte of Block 1 that should be zero; whether a card looks at it is open",
        ("reserved",),
        "",
        _at(layout.B1_RESERVED),
        _flip_first_bit,
        _ANY,
    ),
    Damage(
        "root-magic",
        "another magic of the root entry",
        ("root-magic",),
        "0x05",
        _at(_ROOT.magic),
        _flip_first_bit,
        _SIGNED,
    ),
    Damage(
        "root-curve",
        "an unknown curve magic of the root key (its root entry hash changes, too)",
        ("root-curve",),
        "0x06",
        _at(_ROOT.curve),
        _flip_first_bit,
        _SIGNED,
    ),
    Damage(
        "root-permission",
        "a root key without all permissions (its root entry hash changes, too)",
        ("root-permission",),
        "0x07",
        _at(_ROOT.permissions),
        _flip_last_bit,
        _SIGNED,
    ),
    Damage(
        "root-key-id",
        "a root key with an id (its root entry hash changes, too)",
        ("root-key-id",),
        "0x08",
        _at(_ROOT.key_id),
        _set(0),
        _SIGNED,
    ),
    Damage(
        "csk-magic",
        "another magic of the CSK entry",
        ("csk-magic",),
        "0x09",
        _at(_CSK.magic),
        _flip_first_bit,
    ),
    Damage(
        "csk-curve",
        "an unknown curve magic in a CSK entry that is signed",
        ("csk-curve",),
        "0x0A",
        _at(_CSK.curve),
        _flip_first_bit,
        seals=_CSK_SEAL,
    ),
    Damage(
        "csk-permission",
        "a signed CSK without the permission for the content type",
        ("csk-permission",),
        "0x0B",
        _at(_CSK.permissions),
        _set(layout.ALL_ONES & ~_CARD_PERMISSIONS),
        seals=_CSK_SEAL,
    ),
    Damage(
        "csk-id",
        "a signed CSK with id 128 (0x0C is possible, too)",
        ("csk-id",),
        "0x14",
        _at(_CSK.key_id),
        _set(layout.MAX_CSK_ID + 1),
        seals=_CSK_SEAL,
    ),
    Damage(
        "csk-id-edited",
        "the CSK id changed after signing",
        ("csk-signature",),
        "0x12",
        _at(_CSK.key_id),
        _flip_first_bit,
    ),
    Damage(
        "csk-signature-magic",
        "an unknown magic of the CSK's signature",
        ("csk-signature-magic",),
        "0x0D",
        _at(layout.CSK_SIGNATURE.magic),
        _flip_first_bit,
    ),
    Damage(
        "csk-signature",
        "a bit of the CSK's signature",
        ("csk-signature",),
        "0x12",
        _at(layout.CSK_SIGNATURE.r),
        _flip_first_bit,
    ),
    Damage(
        "b0-entry-magic",
        "another magic of the block 0 entry",
        ("b0-entry-magic",),
        "0x0E",
        _block0_entry("magic"),
        _flip_first_bit,
        _SIGNED,
    ),
    Damage(
        "b0-entry-signature-magic",
        "an unknown magic of Block 0's signature",
        ("b0-entry-signature-magic",),
        "0x0F",
        _block0_entry("signature_magic"),
        _flip_first_bit,
        _SIGNED,
    ),
    Damage(
        "b0-signature",
        "a bit of Block 0's signature",
        ("b0-signature",),
        "0x13",
        _block0_entry("r"),
        _flip_first_bit,
        _SIGNED,
    ),
    Damage("payload-bit", "a bit of the payload", _HASH_RULES, "0x16", _last_bytes(1), _flip_last_bit),
    Damage(
        "truncated",
        "the last 128 bytes are missing",
        (*_HASH_RULES, "truncated"),
        "0x16",
        _last_bytes(layout.PAYLOAD_ALIGNMENT),
        _cut,
    ),
    Damage(
        "truncated-short",
        "all is missing but the first 1151 bytes",
        ("not-an-image",),
        "",
        _at(Field("tail", layout.MINIMUM_SIZE - 1, 1)),
        _cut,
        _ANY,
    ),
    Damage(
        "trailing",
        "128 bytes behind the content; what a card makes of them is open",
        ("trailing",),
        "",
        _behind,
        _append,
        _ANY,
    ),
    Damage(
        "cancel-payload-hash",
        "both payload hashes wrong in a cancellation that is signed",
        _HASH_RULES,
        "0x17",
        _at(_HASHES),
        _break_both_hashes,
        _CANCEL,
        _BLOCK0_SEAL,
    ),
    Damage(
        "cancel-id",
        "a signed cancellation of id 128",
        ("cancel-id",),
        "0x19",
        _at(layout.CANCEL_ID),
        _cancel_id_128,
        _CANCEL,
        _BLOCK0_SEAL,
    ),
    Damage(
        "root-key-payload-hash",
        "both payload hashes wrong in a root-key image (code on a card without a root)",
        _HASH_RULES,
        "0x18",
        _at(_HASHES),
        _break_both_hashes,
        _ROOT_KEY,
    ),
)

#: Every damage by its name.
DAMAGES: Final[dict[str, Damage]] = {damage.name: damage for damage in _CATALOGUE}

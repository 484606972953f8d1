"""Wraps payloads into signed, half-signed and unsigned images, byte for byte as PACSign lays them out."""

from __future__ import annotations

import hashlib
from collections.abc import Set
from typing import Final, Literal

from harness.errors import ConfigurationError
from harness.images import layout
from harness.images.keys import PrivateKey, PublicKey
from harness.images.layout import Curve, Field
from harness.images.parse import looks_like_image, parse
from harness.images.payload import reverse_bits

#: A signature of an image: that of the CSK entry, or that of Block 0.
Seal = Literal["csk", "block0"]
BOTH_SEALS: Final[frozenset[Seal]] = frozenset({"csk", "block0"})

_TYPE_NUMBERS: Final = {name: number for number, name in layout.CONTENT_TYPES.items()}
_CERT_NUMBERS: Final = {name: number for number, name in layout.CERT_TYPES.items()}


def sign(
    payload: bytes,
    content_type: str = "SR",
    *,
    root: PrivateKey | None = None,
    csk: PrivateKey | None = None,
    csk_id: int = 0,
    csk_permissions: int = layout.ALL_ONES,
    version: str = "",
    slot: int = 0,
) -> bytes:
    """Return an UPDATE image of ``payload``.

    Both keys: signed. ``root`` only: the CSK entry is signed but holds no key, Block 0 is not signed.
    ``csk`` only: no root key, Block 0 is signed. Neither: unsigned (all magics, no keys, no signatures).
    A raw SR payload is bit-reversed; a ``payload`` that is an image already is signed again as it is,
    with its own payload, and must be of the same ``content_type``.

    :param content_type: a name of :data:`layout.CONTENT_TYPES`.
    :param csk_id: 0 to 127. :param version: image info, up to 32 bytes. :param slot: 0 to 15.
    :raises ConfigurationError: a parameter is outside of what the format allows.
    """
    _check_id("CSK id", csk_id)
    curve = _common_curve(root, csk)
    content = _content(payload, content_type)
    header = _block0(content, content_type, "UPDATE", version, slot)
    _put_root(header, root.public if root else PublicKey.zero(curve))
    csk_key = csk.public if csk else PublicKey.zero(curve)
    _put(header, layout.CSK_ENTRY.magic, layout.CSK_ENTRY_MAGIC)
    _put(header, layout.CSK_ENTRY.body, csk_key.body(csk_id, csk_permissions))
    _put(header, layout.CSK_SIGNATURE.magic, curve.signature_magic)
    _put_block0_entry(header, layout.UPDATE_BLOCK0_ENTRY_OFFSET, curve)
    seal(header, root=root, csk=csk)
    return bytes(header + content)


def root_key_image(root: PublicKey, content_type: str = "SR") -> bytes:
    """Return the image that programs the root entry hash of ``root``. It carries no signature at all."""
    content = bytes.fromhex(root.root_entry_hash()).ljust(48, b"\0")
    if content_type == "PR":
        content += hashlib.sha256(root.x + root.y).digest()
    content = content.ljust(layout.CERTIFICATE_PAYLOAD_SIZE, b"\0")
    return bytes(_block0(content, content_type, root.curve.root_key_cert)) + content


def cancellation_image(cancel_id: int, root: PrivateKey, content_type: str = "SR") -> bytes:
    """Return the image that cancels CSK id ``cancel_id``, signed by ``root``.

    :raises ConfigurationError: ``cancel_id`` is not 0 to 127.
    """
    _check_id("id to cancel", cancel_id)
    content = cancel_id.to_bytes(4, "little").ljust(layout.CERTIFICATE_PAYLOAD_SIZE, b"\0")
    header = _block0(content, content_type, "CANCEL")
    _put_root(header, root.public)
    _put_block0_entry(header, layout.CANCEL_BLOCK0_ENTRY_OFFSET, root.public.curve)
    seal(header, root=root)
    return bytes(header + content)


def seal(
    image: bytearray,
    *,
    root: PrivateKey | None = None,
    csk: PrivateKey | None = None,
    which: Set[Seal] = BOTH_SEALS,
) -> None:
    """Make the signatures ``which`` of ``image`` fit what it says now; a missing key leaves its own alone.

    Nothing but R and S changes: the keys and magics that the image holds stay.
    """
    cert_type = layout.CERT_TYPE.integer(image)
    if cert_type == _CERT_NUMBERS["UPDATE"]:
        entry, block0_signer = layout.UPDATE_BLOCK0_ENTRY_OFFSET, csk
        if root and "csk" in which:
            _put_signature(image, layout.CSK_SIGNATURE, root, layout.CSK_ENTRY.body.of(image))
    elif cert_type == _CERT_NUMBERS["CANCEL"]:
        entry, block0_signer = layout.CANCEL_BLOCK0_ENTRY_OFFSET, root
    else:
        return
    if block0_signer and "block0" in which:
        fields = layout.block0_entry_signature(entry)
        _put_signature(image, fields, block0_signer, bytes(image[: layout.BLOCK0_SIZE]))


def put_payload_hashes(image: bytearray) -> None:
    """Make both payload hashes of ``image`` fit the payload that follows its header."""
    content = bytes(image[layout.HEADER_SIZE :])
    _put(image, layout.PAYLOAD_SHA256, hashlib.sha256(content).digest())
    _put(image, layout.PAYLOAD_SHA384, hashlib.sha384(content).digest())


def _content(payload: bytes, content_type: str) -> bytes:
    """Return the payload as it goes into the image: padded, and bit-reversed where that is due."""
    _type_number(content_type)
    if looks_like_image(payload):
        image = parse(payload)
        if image.content_type != content_type:
            raise ConfigurationError(
                f"The input is an image of type {image.content_type} already, not {content_type}.",
                hint=f"Sign it as {image.content_type}, or give the raw payload.",
            )
        if image.cert_type != "UPDATE":
            raise ConfigurationError(
                f"The input is of certificate type {image.cert_type}; only UPDATE is signed again."
            )
        content = bytes(image.payload or b"")
    elif content_type in layout.BIT_REVERSED_TYPES:
        content = reverse_bits(payload)
    else:
        content = bytes(payload)
    if not content:
        raise ConfigurationError("There is no payload to sign: the input is empty.")
    return content + bytes(-len(content) % layout.PAYLOAD_ALIGNMENT)


def _block0(content: bytes, content_type: str, cert_type: str, version: str = "", slot: int = 0) -> bytearray:
    """Return a header with Block 0 for ``content`` and the magic of Block 1."""
    if not 0 <= slot <= 15:
        raise ConfigurationError(f"Slot {slot} is not 0 to 15.")
    if len(version.encode()) > layout.VERSION.size:
        raise ConfigurationError(f"The version {version!r} is longer than {layout.VERSION.size} bytes.")
    size = layout.HEADER_SIZE + len(content)
    if size > layout.STAGING_SIZE:
        raise ConfigurationError(
            f"The image would have {size} bytes, and a card's staging area holds {layout.STAGING_SIZE}."
        )
    header = bytearray(layout.HEADER_SIZE)
    _put(header, layout.MAGIC, layout.BLOCK0_MAGIC)
    _put(header, layout.CONTENT_LENGTH, len(content))
    _put(header, layout.CONTENT_TYPE, _type_number(content_type))
    _put(header, layout.CERT_TYPE, _CERT_NUMBERS[cert_type])
    _put(header, layout.SLOT, slot)
    _put(header, layout.PAYLOAD_SHA256, hashlib.sha256(content).digest())
    _put(header, layout.PAYLOAD_SHA384, hashlib.sha384(content).digest())
    _put(header, layout.VERSION, version.encode())
    _put(header, layout.B1_MAGIC, layout.BLOCK1_MAGIC)
    return header


def _type_number(content_type: str) -> int:
    if content_type not in _TYPE_NUMBERS:
        raise ConfigurationError(
            f"There is no content type {content_type!r}.", hint=f"Known: {', '.join(_TYPE_NUMBERS)}."
        )
    return _TYPE_NUMBERS[content_type]


def _put(image: bytearray, field: Field, value: int | bytes) -> None:
    """Write ``value`` into ``field``, left-aligned with a zero tail."""
    raw = value.to_bytes(field.size, "little") if isinstance(value, int) else value.ljust(field.size, b"\0")
    image[field.offset : field.end] = raw


def _put_root(header: bytearray, root: PublicKey) -> None:
    _put(header, layout.ROOT_ENTRY.magic, layout.ROOT_ENTRY_MAGIC)
    _put(header, layout.ROOT_ENTRY.body, root.body(layout.ALL_ONES))


def _put_block0_entry(header: bytearray, offset: int, curve: Curve) -> None:
    _put(header, layout.block0_entry_magic(offset), layout.BLOCK0_ENTRY_MAGIC)
    _put(header, layout.block0_entry_signature(offset).magic, curve.signature_magic)


def _put_signature(image: bytearray, at: layout.SignatureFields, key: PrivateKey, message: bytes) -> None:
    r, s = key.sign(message)
    _put(image, at.r, r)
    _put(image, at.s, s)


def _common_curve(root: PrivateKey | None, csk: PrivateKey | None) -> Curve:
    curves = {key.public.curve for key in (root, csk) if key}
    if len(curves) > 1:
        raise ConfigurationError(
            "The root key and the CSK are on different curves.",
            hint="Make both on P-256: the only curve that N3000 firmware takes.",
        )
    return curves.pop() if curves else layout.P256


def _check_id(what: str, value: int) -> None:
    if not 0 <= value <= layout.MAX_CSK_ID:
        raise ConfigurationError(
            f"The {what} {value} is not 0 to {layout.MAX_CSK_ID}.",
            hint="Images that break a rule on purpose are made with `hil image damage`.",
        )

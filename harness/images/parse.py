"""From bytes to the fields of a signed image, with what breaks the format's rules listed, not raised."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.errors import NotAnImage
from harness.images import layout
from harness.images.layout import Curve, Field


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A rule of the format that the bytes at ``offset`` break. ``rule`` is a stable word."""

    offset: int
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A root entry, or the key part of a CSK entry, as it stands in the file."""

    fields: layout.KeyEntryFields
    magic: int
    curve_magic: int
    permissions: int
    key_id: int
    x: bytes
    y: bytes
    body: bytes

    @property
    def offset(self) -> int:
        """Offset of the entry's magic."""
        return self.fields.offset

    @property
    def curve(self) -> Curve | None:
        """Curve that the curve magic names; None for an unknown one."""
        return layout.CURVE_BY_KEY_MAGIC.get(self.curve_magic)

    @property
    def is_zero(self) -> bool:
        """Whether X and Y are all zero: there is no key."""
        return not any(self.x) and not any(self.y)


@dataclass(frozen=True, slots=True)
class Signature:
    """Signature magic, R and S as they stand in the file (48-byte fields)."""

    fields: layout.SignatureFields
    magic: int
    r: bytes
    s: bytes

    @property
    def offset(self) -> int:
        """Offset of the signature magic."""
        return self.fields.offset

    @property
    def curve(self) -> Curve | None:
        """Curve that the signature magic names; None for an unknown one."""
        return layout.CURVE_BY_SIGNATURE_MAGIC.get(self.magic)

    @property
    def is_zero(self) -> bool:
        """Whether R and S are all zero: nothing was signed."""
        return not any(self.r) and not any(self.s)


@dataclass(frozen=True, slots=True)
class SignedImage:
    """A signed image, damaged or not. Strings of types are names, or ``0x..`` where there is none.

    ``header``: the first 1024 bytes. ``size``: bytes of the whole file. ``payload``: the content that
    the header's length covers, as far as the file has it; None where the image was streamed.
    ``root_entry``, ``csk_entry``, signatures: None where this certificate type has none.
    """

    header: bytes
    size: int
    content_length: int
    content_type: str
    cert_type: str
    slot: int
    version: str
    payload_sha256: str
    payload_sha384: str
    block1_magic_ok: bool
    root_entry: KeyEntry | None
    csk_entry: KeyEntry | None
    csk_signature: Signature | None
    block0_entry_magic: int | None
    block0_signature: Signature | None
    cancel_id: int | None
    programs_root: str | None
    findings: tuple[Finding, ...]
    payload: memoryview | None

    @property
    def block0(self) -> bytes:
        """The 128 bytes that the block 0 entry signs."""
        return self.header[: layout.BLOCK0_SIZE]

    @property
    def csk_id(self) -> int | None:
        """Id of the CSK, None where there is no CSK entry."""
        return self.csk_entry.key_id if self.csk_entry else None

    @property
    def unsigned(self) -> bool:
        """Whether there is a root entry without a key in it (PACSign run without ``-r``)."""
        return self.root_entry is not None and self.root_entry.is_zero

    @property
    def root_entry_hash(self) -> str | None:
        """Hash of the root entry's body in hex, by the hash of its curve; None without a root entry."""
        if self.root_entry is None:
            return None
        curve = key_curve(self.root_entry, self.csk_signature or self.block0_signature) or layout.P256
        return hashlib.new(curve.hash_name, self.root_entry.body).hexdigest()

    @property
    def stated_size(self) -> int:
        """Bytes of the whole file as the header states them."""
        return layout.HEADER_SIZE + self.content_length

    def fields(self) -> Iterator[tuple[Field, bytes]]:
        """Yield every field of the header with its offset, size and bytes, in the order of the file."""
        return ((field, field.of(self.header)) for field in layout.fields_of(self.cert_type))


def key_curve(key: KeyEntry, signature: Signature | None) -> Curve | None:
    """Return the curve of ``key``: what it says, or else what the signature made with it says.

    So a damaged curve magic alone does not make a signature invalid.
    """
    return key.curve or (signature.curve if signature else None)


def looks_like_image(data: bytes | memoryview) -> bool:
    """Return whether the tool would send ``data`` to a card: its size and Block 0 magic, nothing else."""
    return len(data) >= layout.MINIMUM_SIZE and layout.MAGIC.integer(data) == layout.BLOCK0_MAGIC


def parse(data: bytes | bytearray | memoryview) -> SignedImage:
    """Return the signed image that ``data`` is, with everything wrong with it in ``findings``.

    Signatures and hashes are not checked here; see :func:`harness.images.verify.verify`.

    :raises NotAnImage: ``data`` is shorter than 1152 bytes or has no Block 0 magic.
    """
    view = memoryview(data).cast("B")
    image = parse_head(bytes(view[: layout.MINIMUM_SIZE]), len(view))
    return replace(image, payload=view[layout.HEADER_SIZE : image.stated_size])


def parse_head(head: bytes, size: int) -> SignedImage:
    """Return the image whose first 1152 bytes are ``head`` and whose whole size is ``size``.

    :raises NotAnImage: ``head`` is shorter than 1152 bytes or has no Block 0 magic.
    """
    if len(head) < layout.MINIMUM_SIZE:
        raise NotAnImage(
            f"This is no signed image: {len(head)} bytes, and the smallest one has {layout.MINIMUM_SIZE}.",
            hint="Give the whole file; a raw bitstream is wrapped with `hil image sign`.",
        )
    magic = layout.MAGIC.integer(head)
    if magic != layout.BLOCK0_MAGIC:
        raise NotAnImage(
            f"This is no signed image: it begins with 0x{magic:08x}, not with the Block 0 magic "
            f"0x{layout.BLOCK0_MAGIC:08x}.",
            hint="A raw bitstream is wrapped with `hil image sign` (--unsigned: without signatures).",
        )
    header, first_payload = head[: layout.HEADER_SIZE], head[layout.HEADER_SIZE :]
    content_type = layout.CONTENT_TYPE.integer(header)
    cert_type = layout.CERT_TYPE.integer(header)
    cert_name = layout.CERT_TYPES.get(cert_type, f"0x{cert_type:02x}")
    is_update, is_cancel = cert_name == "UPDATE", cert_name == "CANCEL"
    has_chain = is_update or is_cancel
    entry = layout.UPDATE_BLOCK0_ENTRY_OFFSET if is_update else layout.CANCEL_BLOCK0_ENTRY_OFFSET
    root_hash_size = {"RK_256": 32, "RK_384": 48}.get(cert_name, 0)
    image = SignedImage(
        header=header,
        size=size,
        content_length=layout.CONTENT_LENGTH.integer(header),
        content_type=layout.CONTENT_TYPES.get(content_type, f"0x{content_type:02x}"),
        cert_type=cert_name,
        slot=layout.SLOT.integer(header) & 0x0F,
        version=layout.VERSION.of(header).rstrip(b"\0").decode("utf-8", "backslashreplace"),
        payload_sha256=layout.PAYLOAD_SHA256.of(header).hex(),
        payload_sha384=layout.PAYLOAD_SHA384.of(header).hex(),
        block1_magic_ok=layout.B1_MAGIC.integer(header) == layout.BLOCK1_MAGIC,
        root_entry=_key_entry(header, layout.ROOT_ENTRY) if has_chain else None,
        csk_entry=_key_entry(header, layout.CSK_ENTRY) if is_update else None,
        csk_signature=_signature(header, layout.CSK_SIGNATURE) if is_update else None,
        block0_entry_magic=layout.block0_entry_magic(entry).integer(header) if has_chain else None,
        block0_signature=_signature(header, layout.block0_entry_signature(entry)) if has_chain else None,
        cancel_id=layout.CANCEL_ID.integer(head) if is_cancel else None,
        programs_root=first_payload[:root_hash_size].hex() if root_hash_size else None,
        findings=(),
        payload=None,
    )
    return replace(image, findings=tuple(sorted(_findings(image, first_payload))))


def _key_entry(header: bytes, fields: layout.KeyEntryFields) -> KeyEntry:
    return KeyEntry(
        fields=fields,
        magic=fields.magic.integer(header),
        curve_magic=fields.curve.integer(header),
        permissions=fields.permissions.integer(header),
        key_id=fields.key_id.integer(header),
        x=fields.x.of(header),
        y=fields.y.of(header),
        body=fields.body.of(header),
    )


def _signature(header: bytes, fields: layout.SignatureFields) -> Signature:
    return Signature(fields, fields.magic.integer(header), fields.r.of(header), fields.s.of(header))


def _findings(image: SignedImage, first_payload: bytes) -> Iterator[Finding]:
    yield from _size_findings(image)
    yield from _block0_findings(image)
    if not image.block1_magic_ok:
        yield _wrong_magic("b1-magic", layout.B1_MAGIC, image.header, layout.BLOCK1_MAGIC)
    if image.root_entry is not None:
        yield from _root_findings(image, image.root_entry)
    if image.csk_entry is not None and image.csk_signature is not None:
        yield from _csk_findings(image, image.csk_entry, image.csk_signature)
    if image.block0_signature is not None:
        yield from _block0_entry_findings(image, image.block0_signature)
    yield from _certificate_payload_findings(image, first_payload)
    yield from _reserved_findings(image)


def _size_findings(image: SignedImage) -> Iterator[Finding]:
    length = image.content_length
    at = layout.CONTENT_LENGTH.offset
    if image.size > layout.STAGING_SIZE:
        yield Finding(
            layout.STAGING_SIZE,
            "file-size",
            f"the file has {image.size} bytes, the staging area holds {layout.STAGING_SIZE}",
        )
    if length == 0 or length % layout.PAYLOAD_ALIGNMENT:
        message = f"content length {length} is not a positive multiple of {layout.PAYLOAD_ALIGNMENT}"
        yield Finding(at, "content-length", message)
    elif image.stated_size > layout.STAGING_SIZE:
        yield Finding(at, "content-length", f"content length {length} exceeds the staging area")
    elif image.cert_type in ("CANCEL", "RK_256", "RK_384") and length != layout.CERTIFICATE_PAYLOAD_SIZE:
        expected = layout.CERTIFICATE_PAYLOAD_SIZE
        yield Finding(at, "content-length", f"content length {length} of a {image.cert_type}, not {expected}")
    elif image.size < image.stated_size:
        missing = image.stated_size - image.size
        yield Finding(image.size, "truncated", f"the file ends {missing} bytes before the content does")
    elif image.size > image.stated_size:
        extra = image.size - image.stated_size
        yield Finding(image.stated_size, "trailing", f"{extra} bytes follow the content")


def _block0_findings(image: SignedImage) -> Iterator[Finding]:
    content_type = layout.CONTENT_TYPE.integer(image.header)
    if content_type > layout.MAX_CONTENT_TYPE:
        yield Finding(
            layout.CONTENT_TYPE.offset,
            "content-type",
            f"content type {image.content_type} ({content_type}) is none that an N3000 takes (SR, BMC, PR)",
        )
    if image.cert_type.startswith("0x"):
        known = ", ".join(layout.CERT_TYPES.values())
        yield Finding(
            layout.CERT_TYPE.offset, "cert-type", f"certificate type {image.cert_type} is none of {known}"
        )
    if layout.SLOT.integer(image.header) > 0x0F:
        yield Finding(layout.SLOT.offset, "reserved", "the high nibble of the slot is not zero")


def _root_findings(image: SignedImage, root: KeyEntry) -> Iterator[Finding]:
    fields = root.fields
    if root.magic != layout.ROOT_ENTRY_MAGIC:
        yield _wrong_magic("root-magic", fields.magic, image.header, layout.ROOT_ENTRY_MAGIC)
    if root.curve is None:
        yield _unknown_magic("root-curve", fields.curve, root.curve_magic)
    if root.permissions != layout.ALL_ONES:
        message = f"permissions 0x{root.permissions:08x} of the root key, not 0xffffffff"
        yield Finding(fields.permissions.offset, "root-permission", message)
    if root.key_id != layout.ALL_ONES:
        message = f"key id 0x{root.key_id:08x} of the root key, not 0xffffffff"
        yield Finding(fields.key_id.offset, "root-key-id", message)
    yield from _key_tail_findings(root)


def _csk_findings(image: SignedImage, csk: KeyEntry, signature: Signature) -> Iterator[Finding]:
    fields = csk.fields
    if csk.magic != layout.CSK_ENTRY_MAGIC:
        yield _wrong_magic("csk-magic", fields.magic, image.header, layout.CSK_ENTRY_MAGIC)
    if csk.curve is None:
        yield _unknown_magic("csk-curve", fields.curve, csk.curve_magic)
    needed = layout.PERMISSION_BITS.get(image.content_type, 0)
    if csk.permissions & needed != needed:
        yield Finding(
            fields.permissions.offset,
            "csk-permission",
            f"permissions 0x{csk.permissions:08x} of the CSK lack {image.content_type}'s bit 0x{needed:x}",
        )
    if csk.key_id > layout.MAX_CSK_ID:
        message = f"CSK id {csk.key_id} is above {layout.MAX_CSK_ID}"
        yield Finding(fields.key_id.offset, "csk-id", message)
    yield from _key_tail_findings(csk)
    if signature.curve is None:
        yield _unknown_magic("csk-signature-magic", signature.fields.magic, signature.magic)
    yield from _signature_tail_findings(signature)


def _block0_entry_findings(image: SignedImage, signature: Signature) -> Iterator[Finding]:
    if image.block0_entry_magic != layout.BLOCK0_ENTRY_MAGIC:
        field = layout.block0_entry_magic(signature.offset - 4)
        yield _wrong_magic("b0-entry-magic", field, image.header, layout.BLOCK0_ENTRY_MAGIC)
    if signature.curve is None:
        yield _unknown_magic("b0-entry-signature-magic", signature.fields.magic, signature.magic)
    yield from _signature_tail_findings(signature)


def _certificate_payload_findings(image: SignedImage, payload: bytes) -> Iterator[Finding]:
    if image.cancel_id is not None:
        if image.cancel_id > layout.MAX_CSK_ID:
            message = f"the id to cancel, {image.cancel_id}, is above {layout.MAX_CSK_ID}"
            yield Finding(layout.CANCEL_ID.offset, "cancel-id", message)
        yield from _nonzero("the cancellation", payload, 4, layout.HEADER_SIZE)
    elif image.programs_root is not None:
        size = len(image.programs_root) // 2
        yield from _nonzero("the root entry hash", payload[:48], size, layout.HEADER_SIZE)
        # An image for PR carries SHA-256(X || Y) as well; for the others nothing follows.
        if image.content_type != "PR":
            yield from _nonzero("the root entry hash", payload, 48, layout.HEADER_SIZE)


def _reserved_findings(image: SignedImage) -> Iterator[Finding]:
    for field, value in image.fields():
        if field.name == "block1_padding" and image.cert_type.startswith("0x"):
            continue  # what Block 1 of an unknown certificate type holds is not known
        if field.name.endswith(("_reserved", "_padding")):
            yield from _nonzero("the field before", value, 0, field.offset)


def _key_tail_findings(key: KeyEntry) -> Iterator[Finding]:
    if key.curve is not None:
        yield from _nonzero("X", key.x, key.curve.coordinate_size, key.fields.x.offset)
        yield from _nonzero("Y", key.y, key.curve.coordinate_size, key.fields.y.offset)


def _signature_tail_findings(signature: Signature) -> Iterator[Finding]:
    if signature.curve is not None:
        size = signature.curve.coordinate_size
        yield from _nonzero("R", signature.r, size, signature.fields.r.offset)
        yield from _nonzero("S", signature.s, size, signature.fields.s.offset)


def _nonzero(what: str, value: bytes, start: int, offset: int) -> Iterator[Finding]:
    """Yield a finding for the first byte of ``value`` from ``start`` on that is not zero."""
    for index in range(start, len(value)):
        if value[index]:
            yield Finding(offset + index, "reserved", f"0x{value[index]:02x} behind {what}, not zero")
            return


def _wrong_magic(rule: str, field: Field, header: bytes, expected: int) -> Finding:
    found = field.integer(header)
    return Finding(field.offset, rule, f"{field.name} is 0x{found:08x}, not 0x{expected:08x}")


def _unknown_magic(rule: str, field: Field, found: int) -> Finding:
    return Finding(field.offset, rule, f"{field.name} 0x{found:08x} names neither P-256 nor P-384")

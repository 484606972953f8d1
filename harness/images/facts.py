"""What an image is, decided from the bytes that will be written: its effect and whether it can be undone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.errors import NotAnImage
from harness.images import layout, payload
from harness.images.parse import SignedImage, parse
from harness.images.payload import BmcIdentity, PayloadIdentity
from harness.judgement.values import Unknown, Value

Effect = Literal["user-image", "bmc-image", "pr-image", "root-key", "key-cancellation", "unparsed"]
Irreversible = Literal["root-key", "key-cancellation"]

_EFFECT_OF_UPDATE: dict[str, Effect] = {"SR": "user-image", "BMC": "bmc-image", "PR": "pr-image"}
_EFFECT_OF_CERT: dict[str, Effect] = {
    "CANCEL": "key-cancellation",
    "RK_256": "root-key",
    "RK_384": "root-key",
}
#: What each effect may do that cannot be undone. Bytes that are not understood may do either.
_IRREVERSIBLE: dict[Effect, frozenset[Irreversible]] = {
    "root-key": frozenset({"root-key"}),
    "key-cancellation": frozenset({"key-cancellation"}),
    "unparsed": frozenset({"root-key", "key-cancellation"}),
}

_NO_SR = Unknown("not an SR payload that states what it is")
_NO_BMC = Unknown("not a BMC payload that states what it is")


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What is known of an image before it is written.

    ``effect`` is ``unparsed`` for bytes that are no signed image, or whose type or certificate type an
    N3000 does not know. ``section``: SR, BMC, PR; empty where unparsed. ``sha256``, ``size``: of the
    whole file. ``bitstream_id``, ``interface_id``, ``bitstream_metadata``: what a card reports once it has
    loaded an SR payload; ``bmcfw_version``, ``bmc_version``: the same for a BMC payload, in the form
    ``D.2.0.20``. ``note``: why the image is unparsed, else empty.
    """

    name: str
    size: int
    sha256: str
    effect: Effect
    section: str
    root_entry_hash: str | None
    csk_id: int | None
    cancel_id: int | None
    programs_root: str | None
    unsigned: bool
    bitstream_id: Value[int]
    interface_id: Value[str]
    bitstream_metadata: Value[int]
    bmcfw_version: Value[str]
    bmc_version: Value[str]
    note: str = ""

    @property
    def irreversible(self) -> frozenset[Irreversible]:
        """What writing the image may do that cannot be undone (design rule 7)."""
        return _IRREVERSIBLE.get(self.effect, frozenset())

    def to_json(self) -> dict[str, Any]:
        """Return the facts for a record: an unknown value is ``{"unknown": reason}``."""
        values = {name: getattr(self, name) for name in self.__slots__}
        plain = {
            name: {"unknown": value.reason} if isinstance(value, Unknown) else value
            for name, value in values.items()
        }
        return plain | {"irreversible": sorted(self.irreversible)}


def image_facts(
    data: bytes,
    name: str = "",
    payload_ids: Mapping[str, PayloadIdentity] | None = None,
    bmc_ids: Mapping[str, BmcIdentity] | None = None,
) -> ImageFacts:
    """Return what the image ``data`` is; never raises for the content of ``data``.

    ``payload_ids`` and ``bmc_ids`` name payloads without a descriptor by the SHA-256 of the payload as
    it is in the image (:func:`harness.images.payload.load_payload_table`).
    """
    try:
        image = parse(data)
    except NotAnImage as error:
        return _unparsed(data, name, error.message)
    effect = _effect(image)
    if effect == "unparsed":
        return _unparsed(data, name, f"content type {image.content_type}, certificate {image.cert_type}")
    sr, bmc = _identities(image, effect, payload_ids or {}, bmc_ids or {})
    return ImageFacts(
        name=name,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        effect=effect,
        section=image.content_type,
        root_entry_hash=image.root_entry_hash,
        csk_id=image.csk_id,
        cancel_id=image.cancel_id,
        programs_root=image.programs_root,
        unsigned=image.unsigned,
        bitstream_id=sr.bitstream_id if sr else _NO_SR,
        interface_id=sr.interface_id if sr else _NO_SR,
        bitstream_metadata=sr.bitstream_metadata if sr else _NO_SR,
        bmcfw_version=payload.version_text(bmc.bmcfw_version) if bmc else _NO_BMC,
        bmc_version=payload.version_text(bmc.bmc_version) if bmc else _NO_BMC,
    )


def _effect(image: SignedImage) -> Effect:
    if layout.CONTENT_TYPE.integer(image.header) > layout.MAX_CONTENT_TYPE:
        return "unparsed"
    if image.cert_type == "UPDATE":
        return _EFFECT_OF_UPDATE[image.content_type]
    return _EFFECT_OF_CERT.get(image.cert_type, "unparsed")


def _identities(
    image: SignedImage,
    effect: Effect,
    payload_ids: Mapping[str, PayloadIdentity],
    bmc_ids: Mapping[str, BmcIdentity],
) -> tuple[PayloadIdentity | None, BmcIdentity | None]:
    """Return what the payload says it is, whole or not: facts are about what the image is meant to be."""
    content = image.payload
    if content is None or effect not in ("user-image", "bmc-image"):
        return None, None
    first = content[: payload.DESCRIPTOR_SIZE]
    if effect == "user-image":
        stated = payload.peek_descriptor(payload.reverse_bits(first))
        return stated or payload_ids.get(hashlib.sha256(content).hexdigest()), None
    stated_bmc = payload.peek_bmc_descriptor(first)
    return None, stated_bmc or bmc_ids.get(hashlib.sha256(content).hexdigest())


def _unparsed(data: bytes, name: str, why: str) -> ImageFacts:
    unknown = Unknown("the image could not be parsed")
    return ImageFacts(
        name=name,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        effect="unparsed",
        section="",
        root_entry_hash=None,
        csk_id=None,
        cancel_id=None,
        programs_root=None,
        unsigned=False,
        bitstream_id=unknown,
        interface_id=unknown,
        bitstream_metadata=unknown,
        bmcfw_version=unknown,
        bmc_version=unknown,
        note=why,
    )

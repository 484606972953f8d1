"""Signed images: parsing, verification, facts, payload descriptors, and what the emulated card decides."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from collections.abc import Sequence
from functools import cache

from support.fuzz.engine import Target
from support.fuzz.mutate import Mutator
from support.fuzz.seeds import images, root_hash_of_a

from harness.emulator.card import CardProfile
from harness.emulator.card.authentication import (
    CancelKey,
    ProgramRoot,
    SectionTrust,
    StorePayload,
    authenticate,
)
from harness.emulator.card.flash import SECTIONS
from harness.emulator.card.profile import CHECK_CODES
from harness.errors import NotAnImage
from harness.images import layout, payload
from harness.images.facts import image_facts
from harness.images.parse import looks_like_image, parse
from harness.images.verify import SignatureState, verify, verify_stream

_WORDS = (0, 1, 2, 127, 128, 129, 255, 1024, 16384, 0x3800000, 0x37FFC00, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_MAGICS = (
    *(layout.BLOCK0_MAGIC, layout.BLOCK1_MAGIC, layout.ROOT_ENTRY_MAGIC, layout.CSK_ENTRY_MAGIC),
    layout.BLOCK0_ENTRY_MAGIC,
    *(magic for curve in layout.CURVES for magic in (curve.key_magic, curve.signature_magic)),
)
_FIELDS = sorted(
    {field for cert in layout.CERT_TYPES.values() for field in layout.fields_of(cert)} | {layout.CANCEL_ID},
    key=lambda field: field.offset,
)


class ImageMutator(Mutator):
    """Knows the fields of an image, and can make its payload hashes right again."""

    def __init__(self) -> None:
        super().__init__([magic.to_bytes(4, "little") for magic in _MAGICS])
        self.steps += [_field, _field, _field, _type, _rehash, _exchange, _resize]


def _field(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    field = rng.choice(_FIELDS)
    if rng.random() < 0.5:
        value = rng.choice((*_WORDS, *_MAGICS)).to_bytes(4, "little")[: field.size]
    else:
        value = bytes([rng.choice((0, 0xFF, rng.randrange(256)))]) * field.size
    data[field.offset : field.offset + len(value)] = value


def _type(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    if len(data) > layout.SLOT.offset:
        data[layout.CERT_TYPE.offset] = rng.choice((0, 1, 2, 3, 4, 255))
        data[layout.CONTENT_TYPE.offset] = rng.choice((0, 0, 1, 2, 3, 12, 255))


def _rehash(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    length = layout.CONTENT_LENGTH.integer(data)
    content = bytes(data[layout.HEADER_SIZE : layout.HEADER_SIZE + length])
    for field, name in ((layout.PAYLOAD_SHA256, "sha256"), (layout.PAYLOAD_SHA384, "sha384")):
        data[field.offset : field.end] = hashlib.new(name, content).digest()


def _exchange(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    """Take one field, or the whole payload, from another image."""
    other, field = rng.choice(pool), rng.choice(_FIELDS)
    if rng.random() < 0.8:
        data[field.offset : field.end] = field.of(other)
    else:
        data[layout.HEADER_SIZE :] = other[layout.HEADER_SIZE :]


def _resize(rng: random.Random, data: bytearray, pool: Sequence[bytes]) -> None:
    size = rng.choice((0, 127, 128, 1023, 1024, 1025, 1151, 1152, 1153, len(data) - 1, len(data) + 1))
    data[:] = bytes(data[:size]).ljust(max(size, 0), b"\0")


class _Pieces:
    """A pipe that gives a little at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def readinto(self, buffer: memoryview, /) -> int:
        size = min(len(buffer), len(self._data), 1 + len(self._data) // 3)
        buffer[:size] = self._data[:size]
        self._data = self._data[size:]
        return size


def check_parse(data: bytes) -> str:
    """Every field has its place; findings lie in the file or at its end; no type of buffer matters."""
    try:
        image = parse(data)
    except NotAnImage as error:
        assert not looks_like_image(data), "what the tool would send is said to be no image"
        assert error.hint
        return "no image"
    assert looks_like_image(data)
    assert b"".join(value for _, value in image.fields()) == image.header == data[: layout.HEADER_SIZE]
    assert image.findings == tuple(sorted(image.findings))
    assert all(0 <= finding.offset <= len(data) for finding in image.findings)
    assert image.payload is not None
    assert bytes(image.payload) == data[layout.HEADER_SIZE : layout.HEADER_SIZE + image.content_length]
    assert parse(bytearray(data)).findings == image.findings
    image.version.encode()
    return " ".join((image.cert_type, image.content_type, *sorted({f.rule for f in image.findings})))


@cache
def _genuine() -> frozenset[tuple[bytes, bytes]]:
    """Block 0 and CSK entry of every image that carries a valid chain: no chance makes another."""
    found = set()
    for data in filter(looks_like_image, images()):
        checked = verify(data)
        if checked.block0 is SignatureState.VALID:
            found.add((checked.image.block0, _csk_body(data)))
    return frozenset(found)


def _csk_body(data: bytes) -> bytes:
    return layout.CSK_ENTRY.body.of(data) if layout.CERT_TYPE.integer(data) == 0 else b""


def check_verify(data: bytes) -> str:
    """In memory and streamed alike; valid is only what was signed; a hash is right or it is not."""
    try:
        whole = verify(data)
    except NotAnImage:
        try:
            verify_stream(_Pieces(data))
        except NotAnImage:
            return "no image"
        raise AssertionError("streamed it is an image, in memory it is none") from None
    streamed = verify_stream(_Pieces(data))
    assert dataclasses.replace(whole.image, payload=None) == streamed.image
    assert whole.to_json() == streamed.to_json()
    json.dumps(whole.to_json())
    content = data[layout.HEADER_SIZE : layout.HEADER_SIZE + whole.image.content_length]
    assert whole.payload_sha256_ok is (layout.PAYLOAD_SHA256.of(data) == hashlib.sha256(content).digest())
    assert whole.payload_sha384_ok is (layout.PAYLOAD_SHA384.of(data) == hashlib.sha384(content).digest())
    signed = [whole.csk, whole.block0] if whole.image.cert_type == "UPDATE" else [whole.block0]
    if all(state is SignatureState.VALID for state in signed):
        assert (whole.image.block0, _csk_body(data)) in _genuine(), "a chain that nobody signed is valid"
    rules = " ".join(sorted({finding.rule for finding in whole.findings}))
    return f"{whole.image.cert_type} {whole.csk.value} {whole.block0.value} {rules}"


_PROFILES = (
    CardProfile(),
    CardProfile(payload_hash_on_unkeyed_card=False, pr_update="ignored"),
    CardProfile(disabled_checks=frozenset(CHECK_CODES)),  # makes no check at all
)
#: Cards that hold root A or none, sound and defective ones.
_CARDS = [(name, profile) for name in ("keyed", "open") for profile in _PROFILES]


def check_facts(data: bytes) -> str:
    """What the interlock goes by is never milder than what any card, sound or defective, would do."""
    facts = image_facts(data, "fuzzed")
    plain = json.loads(json.dumps(facts.to_json()))
    assert plain["sha256"] == hashlib.sha256(data).hexdigest()
    assert (facts.effect == "unparsed") == bool(facts.note)
    if not looks_like_image(data):
        assert facts.effect == "unparsed"
    if isinstance(facts.bmc_version, str):
        assert facts.bmc_version[0].isascii(), "a version of no letter"
        assert facts.bmc_version[0].isupper(), "a version of no letter"
    codes = []
    # Two of the cards for each input, by chance that can be repeated.
    for name, profile in random.Random(data[:64]).sample(_CARDS, 2):
        root = root_hash_of_a() if name == "keyed" else None
        trust = {s: SectionTrust(root, root is not None) for s in SECTIONS}
        decision = authenticate(data, trust, profile)
        effect = decision.effect
        assert decision.accepted or effect is None
        if isinstance(effect, ProgramRoot):
            assert "root-key" in facts.irreversible, f"a {name} card programs a root"
        elif isinstance(effect, CancelKey):
            assert "key-cancellation" in facts.irreversible, f"a {name} card cancels a CSK"
        elif isinstance(effect, StorePayload):
            assert len(effect.payload) <= layout.STAGING_SIZE
        codes.append(f"{decision.code:02x}")
    return f"{facts.effect} {facts.section} {' '.join(codes)}"


def check_payload(data: bytes) -> str:
    """A descriptor is read the same way again when it is written; a whole one has its hash."""
    words = []
    for peek, read in (
        (payload.peek_descriptor, payload.read_descriptor),
        (payload.peek_bmc_descriptor, payload.read_bmc_descriptor),
    ):
        seen, whole = peek(data), read(memoryview(data))
        assert whole is None or whole == seen
        if seen is not None:
            rebuilt = payload.build_payload(seen, payload.DESCRIPTOR_SIZE, "")
            assert peek(rebuilt) == seen
            assert read(rebuilt) == seen
        if whole is not None:
            assert any(data.startswith(known[: payload.DESCRIPTOR_SIZE]) for known in _payloads())
        words.append("whole" if whole else "seen" if seen else "none")
    assert payload.reverse_bits(payload.reverse_bits(data)) == data
    return " ".join(words)


@cache
def _payloads() -> tuple[bytes, ...]:
    contents = [data[layout.HEADER_SIZE :][:4096] for data in images()]
    made = [
        payload.build_payload(payload.PayloadIdentity(0x23001410010310, "a5" * 16), 300, "one"),
        payload.build_payload(payload.BmcIdentity(0x44020015, 0x44020006), 128, "two"),
    ]
    return (*made, *contents, *map(payload.reverse_bits, contents))


TARGETS = (
    Target("image-parse", images, check_parse, ImageMutator, share=14),
    Target("image-verify", images, check_verify, ImageMutator, share=4, short=150),
    Target("image-facts", images, check_facts, ImageMutator, share=3, short=150),
    Target("image-payload", _payloads, check_payload, Mutator, share=10),
)

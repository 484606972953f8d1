"""Checks every signature and hash of an image on its own, and says all that is wrong with it."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Protocol

from harness.images import layout
from harness.images.parse import Finding, KeyEntry, Signature, SignedImage, key_curve, parse, parse_head

#: From this size on a payload is hashed in two threads at once (hashlib lets go of the interpreter).
_WORTH_A_THREAD: Final = 1 << 20
#: Streaming holds this many buffers of this size: bounded memory, and few enough turns to stay cheap.
_BUFFERS: Final = 4
_BUFFER_SIZE: Final = 1 << 19


class SignatureState(str, Enum):
    """What a signature is. ABSENT: the image has no place for it, or R and S are all zero."""

    VALID = "valid"
    INVALID = "invalid"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Verification:
    """What an image says and what of it holds. ``findings``: of the format and of the checks, by offset."""

    image: SignedImage
    csk: SignatureState
    block0: SignatureState
    payload_sha256_ok: bool
    payload_sha384_ok: bool
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong and every signature that the certificate type calls for is valid.

        An unsigned or half-signed image is not; a root-key image, which never carries one, is.
        """
        due = {
            "UPDATE": (self.csk, self.block0),
            "CANCEL": (self.block0,),
        }.get(self.image.cert_type, ())
        return not self.findings and all(state is SignatureState.VALID for state in due)

    def to_json(self) -> dict[str, Any]:
        """Return the form of ``hil image inspect -o json``."""
        image = self.image
        return {
            "content_type": image.content_type,
            "cert_type": image.cert_type,
            "content_length": image.content_length,
            "slot": image.slot,
            "version": image.version,
            "root_entry_hash": image.root_entry_hash,
            "csk_id": image.csk_id,
            "cancel_id": image.cancel_id,
            "signatures": {"csk": self.csk.value, "block0": self.block0.value},
            "payload_sha256_ok": self.payload_sha256_ok,
            "payload_sha384_ok": self.payload_sha384_ok,
            "unsigned": image.unsigned,
            "findings": [
                {"offset": finding.offset, "rule": finding.rule, "message": finding.message}
                for finding in self.findings
            ],
        }


class Readable(Protocol):
    """An open binary file or pipe; the best one is unbuffered."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill ``buffer`` and return the number of bytes; 0 at the end."""


def verify(data: bytes | bytearray | memoryview) -> Verification:
    """Return what holds of the image ``data``.

    :raises NotAnImage: see :func:`harness.images.parse.parse`.
    """
    image = parse(data)
    content = image.payload
    assert content is not None
    if len(content) < _WORTH_A_THREAD:
        sha256, sha384 = hashlib.sha256(content), hashlib.sha384(content)
        return _conclude(image, *_check_signatures(image), sha256.hexdigest(), sha384.hexdigest())
    sha256, sha384 = hashlib.sha256(), hashlib.sha384()
    other = threading.Thread(target=sha256.update, args=(content,), name="sha256")
    other.start()
    checked = _check_signatures(image)
    sha384.update(content)
    other.join()
    return _conclude(image, *checked, sha256.hexdigest(), sha384.hexdigest())


def verify_stream(source: Readable) -> Verification:
    """Return what holds of the image that ``source`` yields, read once and in bounded memory.

    The payload itself is not kept: ``image.payload`` is None.

    :raises NotAnImage: see :func:`harness.images.parse.parse`.
    """
    head = bytearray(layout.MINIMUM_SIZE)
    head = head[: _fill(source, memoryview(head))]
    image = parse_head(bytes(head), size=len(head))
    size, sha256, sha384 = _hash_stream(source, bytes(head), image.content_length)
    image = parse_head(bytes(head), size)
    return _conclude(image, *_check_signatures(image), sha256, sha384)


def _hash_stream(source: Readable, head: bytes, content_length: int) -> tuple[int, str, str]:
    """Return the size of the file and both hashes of its content; ``head`` was read already.

    This thread reads and makes the SHA-256, the other one the SHA-384, which is the slower of the two:
    so the time is that of a SHA-384 alone.
    """
    first = head[layout.HEADER_SIZE :][:content_length]
    sha256, sha384 = hashlib.sha256(first), hashlib.sha384(first)
    size, missing = len(head), content_length - len(first)
    free: queue.SimpleQueue[memoryview] = queue.SimpleQueue()
    full: queue.SimpleQueue[tuple[memoryview, int] | None] = queue.SimpleQueue()
    for _ in range(_BUFFERS):
        free.put(memoryview(bytearray(_BUFFER_SIZE)))

    def hash_384() -> None:
        while (item := full.get()) is not None:
            buffer, length = item
            sha384.update(buffer[:length])
            free.put(buffer)

    other = threading.Thread(target=hash_384, name="sha384")
    other.start()
    try:
        while True:
            buffer = free.get()
            filled = _fill(source, buffer)
            if filled == 0:
                break
            content = min(filled, missing)
            full.put((buffer, content))
            sha256.update(buffer[:content])
            size, missing = size + filled, missing - content
    finally:
        full.put(None)
        other.join()
    return size, sha256.hexdigest(), sha384.hexdigest()


def _fill(source: Readable, buffer: memoryview) -> int:
    """Read until ``buffer`` is full or ``source`` ends: a pipe gives a little at a time."""
    filled = 0
    while filled < len(buffer) and (count := source.readinto(buffer[filled:])):
        filled += count
    return filled


def _conclude(
    image: SignedImage,
    csk: SignatureState,
    block0: SignatureState,
    signature_findings: tuple[Finding, ...],
    sha256: str,
    sha384: str,
) -> Verification:
    sha256_ok, sha384_ok = sha256 == image.payload_sha256, sha384 == image.payload_sha384
    findings = [*image.findings, *signature_findings]
    if not sha256_ok:
        findings.append(_wrong_hash("payload-sha256", layout.PAYLOAD_SHA256, sha256))
    if not sha384_ok:
        findings.append(_wrong_hash("payload-sha384", layout.PAYLOAD_SHA384, sha384))
    findings.sort()
    image = replace(image, findings=tuple(findings))
    return Verification(image, csk, block0, sha256_ok, sha384_ok, tuple(findings))


def _wrong_hash(rule: str, field: layout.Field, found: str) -> Finding:
    return Finding(field.offset, rule, f"the payload hashes to {found[:16]}..., not to what Block 0 says")


def _check_signatures(image: SignedImage) -> tuple[SignatureState, SignatureState, tuple[Finding, ...]]:
    """Return the state of the CSK's and of Block 0's signature, and what is wrong with them."""
    root, csk = image.root_entry, image.csk_entry
    csk_state, csk_findings = _check("csk", image.csk_signature, root, csk.body if csk else b"")
    signer = csk if image.cert_type == "UPDATE" else root
    block0_state, block0_findings = _check("b0", image.block0_signature, signer, image.block0)
    return csk_state, block0_state, (*csk_findings, *block0_findings)


def _check(
    name: str, signature: Signature | None, key: KeyEntry | None, message: bytes
) -> tuple[SignatureState, tuple[Finding, ...]]:
    if signature is None or key is None:
        return SignatureState.ABSENT, ()
    findings = tuple(_curve_findings(name, signature, key))
    if signature.is_zero:
        if key.is_zero:
            return SignatureState.ABSENT, findings
        why = "R and S are zero, although there is a key to sign with"
        state = SignatureState.ABSENT
    elif _holds(signature, key, message):
        return SignatureState.VALID, findings
    else:
        why = (
            "there is no key that it could be checked with"
            if key.is_zero
            else "it does not fit key and content"
        )
        state = SignatureState.INVALID
    what = "the CSK entry" if name == "csk" else "Block 0"
    return state, (
        *findings,
        Finding(signature.fields.r.offset, f"{name}-signature", f"signature of {what}: {why}"),
    )


def _curve_findings(name: str, signature: Signature, key: KeyEntry) -> Iterator[Finding]:
    if key.curve and signature.curve and key.curve != signature.curve:
        rule = "csk-signature-magic" if name == "csk" else "b0-entry-signature-magic"
        message = f"a signature on {signature.curve.name} by a key on {key.curve.name}"
        yield Finding(signature.offset, rule, message)


def _holds(signature: Signature, key: KeyEntry, message: bytes) -> bool:
    """Return whether ``signature`` over ``message`` was made with ``key``, by ECDSA."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    from harness.images.keys import ec_curve, ecdsa

    curve = key_curve(key, signature)
    if curve is None:
        return False
    x, y, r, s = (
        int.from_bytes(value[: curve.coordinate_size], "big")
        for value in (key.x, key.y, signature.r, signature.s)
    )
    try:
        public = ec.EllipticCurvePublicNumbers(x, y, ec_curve(curve)).public_key()
    except ValueError:
        return False  # not a point on the curve
    try:
        public.verify(encode_dss_signature(r, s), message, ecdsa(curve))
    except InvalidSignature:
        return False
    return True

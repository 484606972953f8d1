"""Tokens that a registry takes: keys in generations, claims, and signatures (JWS) by them."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.registry.tls import key_pem, pem, write_private

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

Algorithm = Literal["ES256", "ES384", "RS256"]
#: How a token says which key signed it: by the certificate; by libtrust's fingerprint of the key, which
#: registry 2.8 knows and 3.x does not; by the thumbprint of RFC 7638, the other way round (fact sheet,
#: section 3); by the public key itself, as StarlingX's token service does (its fact sheet, section 7.3).
KeyForm = Literal["x5c", "libtrust", "thumbprint", "jwk"]
#: Seconds by which a registry takes a token after its end and before its beginning (fact sheet, section 3).
LEEWAY = 60.0


@dataclass(frozen=True, slots=True)
class KeyGeneration:
    """One key that signs tokens, with the certificate by which a registry knows it. Counted from 1."""

    number: int
    algorithm: Algorithm
    key: EllipticCurvePrivateKey | RSAPrivateKey
    certificate: x509.Certificate

    def sign(self, claims: Mapping[str, Any], form: KeyForm = "x5c") -> str:
        """Return the token with these claims."""
        header = {"typ": "JWT", "alg": self.algorithm} | self._names_key(form)
        text = f"{_encoded(_compact(header))}.{_encoded(_compact(claims))}"
        return f"{text}.{_encoded(self._signature(text.encode()))}"

    def _names_key(self, form: KeyForm) -> dict[str, Any]:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        if form == "x5c":
            return {"x5c": [base64.b64encode(self.certificate.public_bytes(Encoding.DER)).decode()]}
        if form == "thumbprint":
            return {"kid": _encoded(hashlib.sha256(_compact(self._jwk()).encode()).digest())}
        public = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        text = base64.b32encode(hashlib.sha256(public).digest()[:30]).decode()
        fingerprint = ":".join(text[at : at + 4] for at in range(0, len(text), 4))
        return {"kid": fingerprint} if form == "libtrust" else {"jwk": self._jwk() | {"kid": fingerprint}}

    def _jwk(self) -> dict[str, str]:
        """Return the members that RFC 7638 takes, which are those that define the key."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

        if isinstance(self.key, RSAPrivateKey):
            numbers = self.key.public_key().public_numbers()
            return {"e": _number(numbers.e), "kty": "RSA", "n": _number(numbers.n)}
        point = self.key.public_key().public_numbers()
        size = (self.key.curve.key_size + 7) // 8
        curve = "P-256" if size == 32 else "P-384"
        return {"crv": curve, "kty": "EC", "x": _number(point.x, size), "y": _number(point.y, size)}

    def _signature(self, text: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        if isinstance(self.key, rsa.RSAPrivateKey):
            return self.key.sign(text, padding.PKCS1v15(), hashes.SHA256())
        digest = hashes.SHA384() if self.algorithm == "ES384" else hashes.SHA256()
        size = (self.key.curve.key_size + 7) // 8
        return b"".join(
            part.to_bytes(size, "big") for part in decode_dss_signature(self.key.sign(text, ec.ECDSA(digest)))
        )


class KeyRing:
    """The generations of a lab's token keys, and the two files that services read at their start.

    ``bundle``: certificates that the registry trusts. ``key_file``: what the token service signs with.
    """

    def __init__(self, folder: Path, algorithm: Algorithm = "ES256") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.bundle = folder / "token-bundle.crt"
        self.key_file = folder / "token.key"
        self._generations: list[KeyGeneration] = []
        self._installed = 0
        self._lock = threading.Lock()
        self.rotate(algorithm)

    @property
    def generations(self) -> tuple[KeyGeneration, ...]:
        """Every generation so far, the oldest first."""
        return tuple(self._generations)

    @property
    def installed(self) -> KeyGeneration:
        """The generation whose files are in place: what a service that starts now reads."""
        return self._generations[self._installed - 1]

    def rotate(self, algorithm: Algorithm | None = None) -> KeyGeneration:
        """Make a new generation and put its files in place; running services do not notice."""
        with self._lock:
            chosen = algorithm or self._generations[-1].algorithm
            made = new_generation(len(self._generations) + 1, chosen)
            self._generations.append(made)
        self.install(made)
        return made

    def install(self, generation: KeyGeneration, *, also: Sequence[KeyGeneration] = ()) -> None:
        """Put the files of ``generation`` in place, with which a registry also trusts those in ``also``."""
        content = b"".join(pem(each.certificate) for each in (generation, *also))
        unfinished = self.bundle.with_suffix(".new")
        unfinished.write_bytes(content)
        unfinished.replace(self.bundle)
        write_private(self.key_file, key_pem(generation.key))
        self._installed = generation.number


def new_generation(number: int, algorithm: Algorithm) -> KeyGeneration:
    """Return a new key with a certificate that it signed itself."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.x509.oid import NameOID

    key: EllipticCurvePrivateKey | RSAPrivateKey
    if algorithm == "RS256":
        key = rsa.generate_private_key(65537, 2048)
    else:
        key = ec.generate_private_key(ec.SECP384R1() if algorithm == "ES384" else ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"hil token key {number}")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365))
        .sign(key, hashes.SHA256())
    )
    return KeyGeneration(number, algorithm, key, certificate)


@dataclass(frozen=True, slots=True)
class Access:
    """What a token gives access to: ``kind`` (``repository`` or ``registry``), its name, the actions."""

    kind: str
    name: str
    actions: tuple[str, ...]

    @classmethod
    def parse(cls, scope: str) -> Access | None:
        """Return what a scope such as ``repository:a/b:pull,push`` asks for; None where it is none."""
        kind, _, rest = scope.partition(":")
        name, colon, actions = rest.rpartition(":")  # a name may hold colons
        if not kind or not name or not colon:
            return None
        return cls(kind, name, tuple(action for action in actions.split(",") if action))

    def to_json(self) -> dict[str, Any]:
        """Return it as a member of the claim ``access``."""
        return {"type": self.kind, "name": self.name, "actions": list(self.actions)}


def claims(
    *,
    issuer: str,
    service: str,
    subject: str,
    access: Sequence[Access],
    lifetime: float,
    skew: float = 0.0,
    audience_as_list: bool = False,
) -> dict[str, Any]:
    """Return the claims of a token that begins now, by a clock that is ``skew`` seconds ahead.

    :param lifetime: seconds until it ends; a registry takes it for :data:`LEEWAY` seconds more.
    :param audience_as_list: as RFC 7519 allows; registry 2.8 refuses it.
    """
    now = time.time() + skew
    return {
        "iss": issuer,
        "sub": subject,
        "aud": [service] if audience_as_list else service,
        "exp": int(now + lifetime),
        "nbf": int(now),
        "iat": int(now),
        "jti": secrets.token_hex(8),
        "access": [each.to_json() for each in access],
    }


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _encoded(data: str | bytes) -> str:
    raw = data.encode() if isinstance(data, str) else data
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _number(value: int, size: int = 0) -> str:
    return _encoded(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))

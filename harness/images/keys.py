"""Keys that images are signed with: read from PEM, or derived from a seed where they are throw-away."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from harness.errors import ConfigurationError
from harness.images import layout
from harness.images.layout import Curve

#: Group order of each curve (SEC 2), so that a seed gives a private key in 1 .. order - 1.
_ORDERS: Final = {
    "P-256": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "P-384": (1 << 384) - 0x389CB27E0BC8D220A7E5F24DB74F58851313E695333AD68D,
}
_FRESH_KEY: Final = "`openssl ecparam -genkey -name prime256v1 -noout -out key.pem` makes a fresh one."
_CURVES: Final[dict[str, ec.EllipticCurve]] = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1()}
_CURVE_OF: Final[dict[str, Curve]] = {"secp256r1": layout.P256, "secp384r1": layout.P384}
_HASHES: Final[dict[str, hashes.HashAlgorithm]] = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384()}


def ec_curve(curve: Curve) -> ec.EllipticCurve:
    """Return the cryptography library's object for ``curve``."""
    return _CURVES[curve.name]


def ecdsa(curve: Curve) -> ec.ECDSA:
    """Return ECDSA with the hash of ``curve`` and nonces of RFC 6979, so that bytes are reproducible."""
    return ec.ECDSA(_HASHES[curve.hash_name], deterministic_signing=True)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key as it stands in a key entry: ``x`` and ``y`` are as long as the curve's coordinates."""

    curve: Curve
    x: bytes
    y: bytes

    @classmethod
    def zero(cls, curve: Curve) -> PublicKey:
        """Return what stands where there is no key."""
        return cls(curve, bytes(curve.coordinate_size), bytes(curve.coordinate_size))

    def body(self, key_id: int, permissions: int = layout.ALL_ONES) -> bytes:
        """Return the 128 body bytes of a root or CSK entry with this key."""
        words = self.curve.key_magic, permissions, key_id
        head = b"".join(word.to_bytes(4, "little") for word in words)
        return (head + self.x.ljust(48, b"\0") + self.y.ljust(48, b"\0")).ljust(128, b"\0")

    def root_entry_hash(self) -> str:
        """Return the hash that a card is programmed with to take this key as its root, in hex."""
        return hashlib.new(self.curve.hash_name, self.body(layout.ALL_ONES)).hexdigest()


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key; never shown."""

    public: PublicKey
    _key: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.curve.name}, x={self.public.x.hex()})"

    def sign(self, message: bytes) -> tuple[bytes, bytes]:
        """Return R and S over ``message``, each as long as the curve's coordinates."""
        curve = self.public.curve
        r, s = decode_dss_signature(self._key.sign(message, ecdsa(curve)))
        size = curve.coordinate_size
        return r.to_bytes(size, "big"), s.to_bytes(size, "big")


def key_from_seed(seed: str, curve: Curve = layout.P256) -> PrivateKey:
    """Return the throw-away key of ``seed``: the same on every machine, and worth nothing as a secret."""
    digest = hashlib.sha512(f"hil throw-away key {curve.name} {seed}".encode()).digest()
    scalar = int.from_bytes(digest, "big") % (_ORDERS[curve.name] - 1) + 1
    return _private(ec.derive_private_key(scalar, ec_curve(curve)))


def load_private_key(pem: bytes, name: str = "key", password: bytes | None = None) -> PrivateKey:
    """Return the private key in ``pem``; ``password`` is used where it is encrypted.

    :param name: what to call it in an error, such as its file name.
    :raises ConfigurationError: no private key, on another curve, or its password is missing or wrong.
    """
    if is_public_pem(pem):
        raise ConfigurationError(
            f"{name} is a public key, and signing needs the private one.",
            hint="Give the private key, or leave this key out: the image is then half signed.",
        )
    try:
        key = serialization.load_pem_private_key(pem, password if b"ENCRYPTED" in pem else None)
    except TypeError as error:
        raise ConfigurationError(
            f"{name} is encrypted, and no password was given.",
            hint="--password-env names the environment variable that holds the password.",
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(
            f"{name} is no PEM private key that can be read"
            + (", or its password is another one." if password else "."),
            hint=_FRESH_KEY,
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise _wrong_curve(name, type(key).__name__)
    return _private(key, name)


def load_public_key(pem: bytes, name: str = "key", password: bytes | None = None) -> PublicKey:
    """Return the public key in ``pem``, which may hold the private one.

    :raises ConfigurationError: no EC key, or on another curve.
    """
    if not is_public_pem(pem):
        return load_private_key(pem, name, password).public
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(f"{name} is no PEM public key that can be read.", hint=_FRESH_KEY) from error
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise _wrong_curve(name, type(key).__name__)
    return _public(key, name)


def looks_like_pem(data: bytes) -> bool:
    """Return whether ``data`` is PEM text rather than an image."""
    return b"-----BEGIN " in data[:4096]


def is_public_pem(pem: bytes) -> bool:
    """Return whether ``pem`` holds a public key."""
    return b"-----BEGIN PUBLIC KEY-----" in pem


def _private(key: ec.EllipticCurvePrivateKey, name: str = "key") -> PrivateKey:
    return PrivateKey(_public(key.public_key(), name), key)


def _public(key: ec.EllipticCurvePublicKey, name: str) -> PublicKey:
    curve = _CURVE_OF.get(key.curve.name)
    if curve is None:
        raise _wrong_curve(name, key.curve.name)
    numbers = key.public_numbers()
    size = curve.coordinate_size
    return PublicKey(curve, numbers.x.to_bytes(size, "big"), numbers.y.to_bytes(size, "big"))


def _wrong_curve(name: str, found: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} is a key of the kind {found}; images are signed on P-256 or P-384.",
        hint=_FRESH_KEY,
    )

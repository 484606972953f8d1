"""Signatures hold for others: ECDSA from the textbook, the openssl command, and RFC 6979's own values."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from harness.images import layout
from harness.images.keys import key_from_seed, load_private_key
from harness.images.sign import cancellation_image, sign

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
PAYLOAD = (VECTORS / "payload_16k.raw").read_bytes()
BY_CURVE = pytest.mark.parametrize("curve", layout.CURVES, ids=lambda curve: curve.name)

# SEC 2 version 2, sections 2.4.2 and 2.5.1: prime, b, order, base point; a is -3
CURVES = {
    "P-256": (
        2**256 - 2**224 + 2**192 + 2**96 - 1,
        0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B,
        0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
        (
            0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
            0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
        ),
        hashlib.sha256,
    ),
    "P-384": (
        2**384 - 2**128 - 2**96 + 2**32 - 1,
        0xB3312FA7E23EE7E4988E056BE3F82D19181D9C6EFE8141120314088F5013875AC656398D8A2ED19D2A85C8EDD3EC2AEF,
        2**384 - 0x389CB27E0BC8D220A7E5F24DB74F58851313E695333AD68D,
        (
            0xAA87CA22BE8B05378EB1C71EF320AD746E1D3B628BA79B9859F741E082542A385502F25DBF55296C3A545E3872760AB7,
            0x3617DE4A96262C6F5D9E98BF9292DC29F8F41DBD289A147CE9DA3113B5F0B8C00A60B1CE1D7E819D7A431D7C90EA0E5F,
        ),
        hashlib.sha384,
    ),
}


def verifies(curve, x, y, r, s, message):
    """Return whether (r, s) over ``message`` was made with the key (x, y)."""
    prime, b, order, base, digest = CURVES[curve]
    if (y * y - (x * x * x - 3 * x + b)) % prime or not (0 < r < order and 0 < s < order):
        return False
    z = int.from_bytes(digest(message).digest(), "big")
    inverse = pow(s, -1, order)
    point = _add(_times(z * inverse % order, base, prime), _times(r * inverse % order, (x, y), prime), prime)
    return point is not None and point[0] % order == r


def _add(p, q, prime):
    if p is None or q is None:
        return p or q
    if p[0] == q[0]:
        if (p[1] + q[1]) % prime == 0:
            return None
        slope = (3 * p[0] * p[0] - 3) * pow(2 * p[1], -1, prime)
    else:
        slope = (q[1] - p[1]) * pow(q[0] - p[0], -1, prime)
    x = (slope * slope - p[0] - q[0]) % prime
    return x, (slope * (p[0] - x) - p[1]) % prime


def _times(factor, point, prime):
    result = None
    while factor:
        if factor & 1:
            result = _add(result, point, prime)
        point = _add(point, point, prime)
        factor >>= 1
    return result


def signatures_of(image):
    """Yield who signed what: curve, x, y, r, s, message; cut from the file by the documents' offsets."""
    n = 32 if image[0x94:0x98] == bytes.fromhex("748cb8c7") else 48
    curve = {32: "P-256", 48: "P-384"}[n]

    def number(offset):
        return int.from_bytes(image[offset : offset + n], "big")

    root, csk = (number(0xA0), number(0xD0)), (number(0x124), number(0x154))
    if image[0x09] == 1:
        yield curve, *root, number(0x11C), number(0x14C), image[:0x80]
    else:
        yield curve, *root, number(0x19C), number(0x1CC), image[0x118:0x198]
        yield curve, *csk, number(0x204), number(0x234), image[:0x80]


def images_to_check(curve):
    root, csk = key_from_seed("root", curve), key_from_seed("csk", curve)
    return [sign(PAYLOAD, root=root, csk=csk), cancellation_image(5, root)]


@BY_CURVE
def test_signatures_hold_by_hand_made_ecdsa(curve):
    checked = 0
    for image in images_to_check(curve):
        for name, x, y, r, s, message in signatures_of(image):
            assert verifies(name, x, y, r, s, message)
            assert not verifies(name, x, y, r, s, message + b"\0")
            checked += 1
    assert checked == 3


def test_the_vendors_signatures_hold_by_hand_made_ecdsa():
    for name in ("sr_A_csk0.bin", "INTELDOC_cancel_sr_csk1.bin"):
        for signature in signatures_of((VECTORS / name).read_bytes()):
            assert verifies(*signature)


@BY_CURVE
def test_signatures_hold_by_the_openssl_command(curve, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command here; the check by hand-made ECDSA above has run instead")
    checked = 0
    for image in images_to_check(curve):
        for name, x, y, r, s, message in signatures_of(image):
            library_curve = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1()}[name]
            public = ec.EllipticCurvePublicNumbers(x, y, library_curve).public_key()
            (tmp_path / "key.pem").write_bytes(
                public.public_bytes(
                    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
                )
            )
            (tmp_path / "signature").write_bytes(encode_dss_signature(r, s))
            (tmp_path / "message").write_bytes(message)
            digest = {"P-256": "-sha256", "P-384": "-sha384"}[name]
            command = ["openssl", "dgst", digest, "-verify", "key.pem", "-signature", "signature", "message"]
            run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert (run.returncode, run.stdout.strip()) == (0, "Verified OK"), run.stderr
            checked += 1
    assert checked == 3


# RFC 6979, A.2.5 and A.2.6, message "sample"
RFC_6979 = {
    "P-256": (
        0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721,
        "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716",
        "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
    ),
    "P-384": (
        0x6B9D3DAD2E1B8C1C05B19875B6659F4DE23C3B667BF297BA9AA47740787137D896D5724E4C70A825F872C9EA60D2EDF5,
        "94edbb92a5ecb8aad4736e56c691916b3f88140666ce9fa73d64c4ea95ad133c81a648152e44acf96e36dd1e80fabe46",
        "99ef4aeb15f178cea1fe40db2603138f130e740a19624526203b6351d0a3a94fa329c145786e679e7b82c71a38628ac8",
    ),
}


@pytest.mark.parametrize("name", RFC_6979)
def test_nonces_are_those_of_rfc_6979(name):
    number, r, s = RFC_6979[name]
    curve = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1()}[name]
    signed = load_private_key(
        ec.derive_private_key(number, curve).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    ).sign(b"sample")
    assert tuple(value.hex() for value in signed) == (r, s)

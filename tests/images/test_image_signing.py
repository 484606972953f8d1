"""Signing: byte for byte the vendor's layout, signatures that others accept, the same bytes every time."""

import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from harness.errors import ConfigurationError
from harness.images import layout
from harness.images.keys import key_from_seed, load_private_key, load_public_key
from harness.images.parse import parse
from harness.images.payload import reverse_bits
from harness.images.sign import cancellation_image, root_key_image, sign
from harness.images.verify import verify

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
ROOTS = json.loads((VECTORS / "manifest.json").read_text())["roots"]
PAYLOAD = (VECTORS / "payload_16k.raw").read_bytes()
CURVES = pytest.mark.parametrize("curve", layout.CURVES, ids=lambda curve: curve.name)


def pem(number, curve):
    key = ec.derive_private_key(number, curve)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def differing_fields(left, right):
    return {
        field.name for field in layout.fields_of(parse(left).cert_type) if field.of(left) != field.of(right)
    }


# -- the vendor's bytes ---------------------------------------------------------------------------


def test_unsigned_image_equals_the_vendors():
    assert sign(PAYLOAD) == (VECTORS / "sr_unsigned.bin").read_bytes()


def test_unsigned_bmc_image_equals_the_vendors():
    vendors = (VECTORS / "bmc_unsigned.bin").read_bytes()
    assert sign(vendors[1024:], "BMC") == vendors


def test_root_key_image_equals_the_vendors():
    key = load_public_key((VECTORS / "keys" / "keyA_fim_root_public_256.pem").read_bytes())
    assert root_key_image(key) == (VECTORS / "rkh_sr_A_256.bin").read_bytes()


def test_signed_image_differs_from_the_vendors_in_keys_and_signatures_only():
    vendors = (VECTORS / "sr_A_csk1.bin").read_bytes()
    ours = sign(PAYLOAD, root=key_from_seed("r"), csk=key_from_seed("c"), csk_id=1)
    assert ours[1024:] == vendors[1024:]
    assert differing_fields(ours, vendors) == {
        *("root_x", "root_y", "csk_x", "csk_y", "csk_signature_r", "csk_signature_s"),
        *("block0_signature_r", "block0_signature_s"),
    }


def test_cancellation_differs_from_the_vendors_in_key_and_signature_only():
    vendors = (VECTORS / "cancel_sr_A_csk1.bin").read_bytes()
    ours = cancellation_image(1, key_from_seed("r"))
    assert ours[1024:] == vendors[1024:]
    assert differing_fields(ours, vendors) == {
        *("root_x", "root_y", "block0_signature_r", "block0_signature_s"),
    }


# -- what each form is ----------------------------------------------------------------------------


@CURVES
@pytest.mark.parametrize(
    ("has_root", "has_csk", "states", "unsigned", "ok"),
    [
        (True, True, ("valid", "valid"), False, True),
        (True, False, ("valid", "absent"), False, False),
        (False, True, ("absent", "valid"), True, False),
        (False, False, ("absent", "absent"), True, False),
    ],
    ids=["signed", "root only", "csk only", "unsigned"],
)
def test_signed_half_signed_and_unsigned(curve, has_root, has_csk, states, unsigned, ok):
    root = key_from_seed("root", curve) if has_root else None
    csk = key_from_seed("csk", curve) if has_csk else None
    verification = verify(sign(PAYLOAD, root=root, csk=csk, csk_id=7))
    assert (verification.csk.value, verification.block0.value) == states
    assert verification.image.unsigned == unsigned
    assert verification.image.csk_id == 7
    assert verification.ok == ok
    assert verification.findings == ()


@CURVES
def test_certificates_verify(curve):
    root = key_from_seed("root", curve)
    cancellation = verify(cancellation_image(127, root, "BMC"))
    assert cancellation.ok
    assert cancellation.image.cancel_id == 127
    assert cancellation.image.content_type == "BMC"
    root_key = verify(root_key_image(root.public))
    assert root_key.ok
    assert root_key.image.cert_type == {"P-256": "RK_256", "P-384": "RK_384"}[curve.name]
    assert root_key.image.programs_root == root.public.root_entry_hash()


def test_root_key_image_for_pr_carries_the_hash_of_the_bare_key_as_well():
    key = key_from_seed("root").public
    image = root_key_image(key, "PR")
    assert image[1024 + 48 :] == hashlib.sha256(key.x + key.y).digest() + bytes(48)
    assert verify(image).ok


def test_hash_of_the_empty_root_entry_is_the_documents():
    assert parse(sign(PAYLOAD)).root_entry_hash == ROOTS["unsigned_marker"]
    assert ROOTS["unsigned_marker"] == layout.UNSIGNED_ROOT_ENTRY_HASH


def test_version_and_slot_are_in_block_0():
    image = parse(sign(PAYLOAD, version="build 7", slot=15))
    assert (image.version, image.slot) == ("build 7", 15)


# -- payloads -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("content_type", "is_reversed"), [("SR", True), ("BMC", False), ("PR", False)])
def test_only_sr_payloads_are_bit_reversed(content_type, is_reversed):
    content = sign(b"\x01\x80\xf0" + bytes(125), content_type)[1024:]
    assert content[:3] == (b"\x80\x01\x0f" if is_reversed else b"\x01\x80\xf0")


def test_payload_is_padded_with_zeros_to_128():
    image = sign(b"\xff" * 129)
    assert image[1024:] == b"\xff" * 129 + bytes(127)
    assert parse(image).content_length == 256


def test_signing_again_keeps_the_payload_and_changes_the_keys():
    first = sign(PAYLOAD, root=key_from_seed("r"), csk=key_from_seed("c"))
    again = sign(first, root=key_from_seed("other r"), csk=key_from_seed("other c"), csk_id=3)
    assert again[1024:] == first[1024:] == reverse_bits(PAYLOAD)
    verification = verify(again)
    assert verification.ok
    assert verification.image.csk_id == 3
    assert verification.image.root_entry_hash == key_from_seed("other r").public.root_entry_hash()


def test_signing_the_vendors_unsigned_image_equals_signing_its_payload():
    keys = {"root": key_from_seed("r"), "csk": key_from_seed("c")}
    assert sign((VECTORS / "sr_unsigned.bin").read_bytes(), **keys) == sign(PAYLOAD, **keys)


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("CSK id 128 is not 0 to 127", lambda: sign(PAYLOAD, csk_id=128)),
        ("CSK id -1 is not 0 to 127", lambda: sign(PAYLOAD, csk_id=-1)),
        ("id to cancel 128 is not 0 to 127", lambda: cancellation_image(128, key_from_seed("r"))),
        (
            "different curves",
            lambda: sign(PAYLOAD, root=key_from_seed("r", layout.P384), csk=key_from_seed("c")),
        ),
        ("no content type 'FIM'", lambda: sign(PAYLOAD, "FIM")),
        ("Slot 16", lambda: sign(PAYLOAD, slot=16)),
        ("longer than 32 bytes", lambda: sign(PAYLOAD, version="v" * 33)),
        ("input is empty", lambda: sign(b"")),
        ("staging area", lambda: sign(bytes(layout.STAGING_SIZE - 1023))),
        ("type SR already, not BMC", lambda: sign(sign(PAYLOAD), "BMC")),
        ("certificate type CANCEL", lambda: sign(cancellation_image(0, key_from_seed("r")))),
    ],
)
def test_refused_with_what_is_wrong(words, call):
    with pytest.raises(ConfigurationError, match=words):
        call()


def test_the_largest_image_fills_the_staging_area():
    assert len(sign(bytes(layout.STAGING_SIZE - 1024), "BMC")) == 58_720_256


# -- keys -----------------------------------------------------------------------------------------


def test_seeds_give_distinct_keys_on_each_curve():
    keys = {key_from_seed(seed, curve).public.x for seed in ("a", "b") for curve in layout.CURVES}
    assert len(keys) == 4


def test_a_private_key_is_not_shown():
    number = 0xC0FFEE
    shown = repr(load_private_key(pem(number, ec.SECP256R1())))
    assert f"{number:x}" not in shown.lower()
    assert "object at" not in shown


def test_a_key_on_another_curve_is_refused_by_name():
    with pytest.raises(ConfigurationError, match=r"root\.pem is a key of the kind secp256k1"):
        load_private_key(pem(5, ec.SECP256K1()), "root.pem")


def test_a_public_key_cannot_sign():
    public = (VECTORS / "keys" / "keyA_fim_root_public_256.pem").read_bytes()
    with pytest.raises(ConfigurationError, match=r"root\.pem is a public key"):
        load_private_key(public, "root.pem")


def test_an_encrypted_key_needs_its_password():
    key = ec.derive_private_key(9, ec.SECP256R1())
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"open sesame"),
    )
    plain = load_private_key(pem(9, ec.SECP256R1()))
    assert load_private_key(locked, password=b"open sesame").public == plain.public
    with pytest.raises(ConfigurationError, match="encrypted"):
        load_private_key(locked)
    with pytest.raises(ConfigurationError, match="password is another one"):
        load_private_key(locked, password=b"wrong")

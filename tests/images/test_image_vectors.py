"""Images made with the vendor's tool parse and verify as their manifest says."""

import hashlib
import json
from pathlib import Path

import pytest

from harness.errors import NotAnImage
from harness.images.keys import load_public_key
from harness.images.parse import looks_like_image, parse
from harness.images.verify import verify

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
MANIFEST = json.loads((VECTORS / "manifest.json").read_text())
IMAGES = [entry for entry in MANIFEST["files"] if "error" not in entry["structure"]]
OTHERS = [entry for entry in MANIFEST["files"] if "error" in entry["structure"]]
#: The manifest's words for a signature (null: the certificate type has none), and ours.
STATE = {"ok": "valid", "BAD": "invalid", "no-key": "absent", None: "absent"}


def name_of(entry):
    return entry["file"]


def content_of(entry):
    data = (VECTORS / entry["file"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == entry["sha256"], "the copy is not the vector"
    return data


def test_the_manifest_names_every_vector():
    assert len(IMAGES) == 14
    assert len(OTHERS) == 2
    on_disk = {str(path.relative_to(VECTORS)) for path in VECTORS.rglob("*.bin")}
    assert on_disk | {"payload_16k.raw"} == {entry["file"] for entry in MANIFEST["files"]}


@pytest.mark.parametrize("entry", IMAGES, ids=name_of)
def test_fields_are_those_of_the_manifest(entry):
    said = entry["structure"]
    image = parse(content_of(entry))
    assert image.content_type == said["content_type"]
    assert image.cert_type == said["cert_type"]
    assert image.content_length == said["content_len"]
    assert image.payload is not None
    assert len(image.payload) == said["payload_len"]
    assert image.slot == said["slot"]
    assert image.version == said["version"]
    assert image.block1_magic_ok == said["b1_magic_ok"]
    assert image.cancel_id == said.get("cancel_id")
    assert image.programs_root == said.get("root_hash_payload")


@pytest.mark.parametrize("entry", IMAGES, ids=name_of)
def test_entries_are_those_of_the_manifest(entry):
    image = parse(content_of(entry))
    root, csk = entry["structure"]["root_entry"], entry["structure"]["csk"]
    assert (image.root_entry is None) == (root is None)
    if root and image.root_entry:
        assert f"0x{image.root_entry.curve_magic:08x}" == root["curve"]
        assert f"0x{image.root_entry.permissions:08x}" == root["perm"]
        assert f"0x{image.root_entry.key_id:08x}" == root["key_id"]
        assert image.root_entry_hash == root["hash"]
        assert image.unsigned == (root["hash"] == MANIFEST["roots"]["unsigned_marker"])
    assert (image.csk_entry is None) == (csk is None)
    if csk and image.csk_entry:
        assert f"0x{image.csk_entry.curve_magic:08x}" == csk["curve"]
        assert f"0x{image.csk_entry.permissions:08x}" == csk["perm"]
        assert image.csk_id == csk["key_id"]


@pytest.mark.parametrize("entry", IMAGES, ids=name_of)
def test_signatures_and_hashes_hold_as_the_manifest_says(entry):
    said = entry["structure"]
    verification = verify(content_of(entry))
    assert verification.csk.value == STATE[(said["csk"] or {}).get("sig")]
    assert verification.block0.value == STATE[said["b0_entry"]]
    assert verification.payload_sha256_ok == said["sha256_ok"]
    assert verification.payload_sha384_ok == said["sha384_ok"]


#: What the makers of the derived vectors broke; every other vector breaks nothing.
BROKEN = {
    "derived/r_cancel_id_128.bin": {(0x400, "cancel-id")},
    "derived/t_b0_sha256_bit.bin": {(0x10, "payload-sha256"), (0x204, "b0-signature")},
    "derived/t_csk_r_bit.bin": {(0x19C, "csk-signature")},
    "derived/t_payload_first_bit.bin": {(0x10, "payload-sha256"), (0x30, "payload-sha384")},
}


@pytest.mark.parametrize("entry", IMAGES, ids=name_of)
def test_findings_are_what_was_broken_and_nothing_else(entry):
    found = {(finding.offset, finding.rule) for finding in verify(content_of(entry)).findings}
    assert found == BROKEN.get(entry["file"], set())


@pytest.mark.parametrize("entry", OTHERS, ids=name_of)
def test_what_is_no_image_is_named_as_such(entry):
    data = content_of(entry)
    assert not looks_like_image(data)
    with pytest.raises(NotAnImage, match=r"1151 bytes" if len(data) < 1152 else r"0xa38d686d"):
        parse(data)


def test_root_entry_hash_of_a_public_key_is_the_one_in_the_images():
    key = load_public_key((VECTORS / "keys" / "keyA_fim_root_public_256.pem").read_bytes())
    assert key.root_entry_hash() == MANIFEST["roots"]["SR_A"]

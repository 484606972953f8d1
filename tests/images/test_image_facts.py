"""What an image is, and what of it cannot be undone, is decided from its bytes; doubt counts as both."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.images.damage import DAMAGES
from harness.images.facts import image_facts
from harness.images.keys import key_from_seed
from harness.images.payload import BmcIdentity, PayloadIdentity, build_payload, load_payload_table
from harness.images.sign import cancellation_image, root_key_image, sign
from harness.judgement.values import Unknown

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
TABLE = load_payload_table((VECTORS / "payloads.yaml").read_text())
ROOT, CSK = key_from_seed("root"), key_from_seed("csk")
IDENTITY = PayloadIdentity(0x23000410010310, "a5d72a3c-c8b0-4939-912c-f715e5dc10ca", 7)
USER = sign(build_payload(IDENTITY, 1000, "facts"), root=ROOT, csk=CSK, csk_id=2)
BOTH = {"root-key", "key-cancellation"}


def vector(name):
    return (VECTORS / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "effect", "irreversible"),
    [
        ("sr_A_csk0.bin", "user-image", set()),
        ("sr_unsigned.bin", "user-image", set()),
        ("bmc_unsigned.bin", "bmc-image", set()),
        ("rkh_sr_A_256.bin", "root-key", {"root-key"}),
        ("cancel_sr_A_csk1.bin", "key-cancellation", {"key-cancellation"}),
        ("INTELDOC_cancel_sr_csk1.bin", "key-cancellation", {"key-cancellation"}),
        ("derived/t_csk_r_bit.bin", "user-image", set()),
        ("derived/t_trunc_1151.bin", "unparsed", BOTH),
        ("payload_16k.raw", "unparsed", BOTH),
    ],
)
def test_effect_of_a_vector(name, effect, irreversible):
    facts = image_facts(vector(name), name)
    assert (facts.effect, facts.irreversible) == (effect, irreversible)
    assert facts.sha256 == hashlib.sha256(vector(name)).hexdigest()
    assert facts.size == len(vector(name))


def test_facts_of_a_user_image():
    facts = image_facts(USER, "mine")
    assert facts.name == "mine"
    assert facts.section == "SR"
    assert facts.root_entry_hash == ROOT.public.root_entry_hash()
    assert facts.csk_id == 2
    assert not facts.unsigned
    assert facts.bitstream_id == 0x23000410010310
    assert facts.interface_id == "a5d72a3c-c8b0-4939-912c-f715e5dc10ca"
    assert facts.bitstream_metadata == 7
    assert isinstance(facts.bmc_version, Unknown)


def test_facts_of_a_bmc_image_use_the_words_of_the_tools():
    facts = image_facts(sign(build_payload(BmcIdentity(0x44020014, 0x44020007), 512, "facts"), "BMC"))
    assert (facts.effect, facts.section) == ("bmc-image", "BMC")
    assert (facts.bmcfw_version, facts.bmc_version) == ("D.2.0.20", "D.2.0.7")
    assert isinstance(facts.bitstream_id, Unknown)


def test_facts_of_certificates():
    assert image_facts(root_key_image(ROOT.public)).programs_root == ROOT.public.root_entry_hash()
    cancellation = image_facts(cancellation_image(9, ROOT, "BMC"))
    assert (cancellation.cancel_id, cancellation.section) == (9, "BMC")


def test_a_payload_without_a_descriptor_is_looked_up_or_unknown():
    assert isinstance(image_facts(vector("sr_A_csk0.bin")).bitstream_id, Unknown)
    assert image_facts(vector("sr_A_csk0.bin"), "", TABLE.sr).bitstream_id == 0x23000410010309
    assert image_facts(vector("bmc_unsigned.bin"), "", TABLE.sr, TABLE.bmc).bmcfw_version == "D.2.0.19"


def test_a_tampered_payload_says_what_it_claims_to_be():
    assert image_facts(DAMAGES["payload-bit"].apply(USER)).bitstream_id == 0x23000410010310


def test_what_the_card_would_not_know_is_irreversible_in_doubt():
    """An unknown content or certificate type could be anything."""
    for name in ("content-type", "cert-type"):
        facts = image_facts(DAMAGES[name].apply(USER, root=ROOT, csk=CSK))
        assert (facts.effect, facts.irreversible) == ("unparsed", BOTH)
        assert facts.note


@settings(max_examples=300)
@given(
    st.sampled_from([USER, root_key_image(ROOT.public), cancellation_image(1, ROOT)]),
    st.lists(st.tuples(st.integers(0, 1151), st.integers(0, 255)), max_size=6),
    st.integers(0, 3000),
)
def test_no_edit_hides_an_irreversible_image(image, edits, size):
    """Certificate type 0 is the only one that is neither; everything else needs a permit."""
    data = bytearray(image)
    for offset, value in edits:
        data[offset] = value
    data = bytes(data[:size])
    facts = image_facts(data)
    harmless = len(data) >= 1152 and data[:4] == USER[:4] and data[9] == 0 and data[8] <= 2
    assert (facts.irreversible == set()) == harmless
    json.dumps(facts.to_json())


def test_json_says_why_a_value_is_unknown():
    said = json.loads(json.dumps(image_facts(b"nothing", "x").to_json()))
    assert said["bitstream_id"] == {"unknown": "the image could not be parsed"}
    assert said["irreversible"] == ["key-cancellation", "root-key"]
    assert said["effect"] == "unparsed"
    assert "7 bytes" in said["note"]

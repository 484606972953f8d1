"""The descriptor of emulated payloads: what it says comes back, and a half-written page is recognised."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.images.payload import (
    BmcIdentity,
    PayloadIdentity,
    build_payload,
    load_payload_table,
    peek_bmc_descriptor,
    peek_descriptor,
    read_bmc_descriptor,
    read_descriptor,
    reverse_bits,
    version_text,
)

INTERFACE = "a5d72a3c-c8b0-4939-912c-f715e5dc10ca"
SR = PayloadIdentity(0x23000410010310, INTERFACE, 0x2010906205)
BMC = BmcIdentity(0x44020014, 0x44020006)


@given(st.binary(max_size=64))
def test_reversing_bits_twice_changes_nothing(data):
    assert reverse_bits(reverse_bits(data)) == data


def test_reversed_bits_of_known_bytes():
    assert reverse_bits(bytes([0x00, 0x01, 0x12, 0xF0, 0xFF])) == bytes([0x00, 0x80, 0x48, 0x0F, 0xFF])


@given(
    st.builds(
        PayloadIdentity,
        st.integers(0, 2**64 - 1),
        st.uuids().map(str),
        st.integers(0, 2**64 - 1),
    ),
    st.integers(128, 2000),
)
def test_an_sr_payload_says_what_it_is(identity, size):
    payload = build_payload(identity, size, "seed")
    assert len(payload) == size
    assert read_descriptor(payload) == peek_descriptor(payload[:128]) == identity
    assert read_descriptor(payload + bytes(-size % 128)) == identity, "padding is no part of it"
    assert read_bmc_descriptor(payload) is None


def test_a_bmc_payload_says_what_it_is():
    payload = build_payload(BMC, 1024, "seed")
    assert read_bmc_descriptor(payload) == peek_bmc_descriptor(payload[:128]) == BMC
    assert read_descriptor(payload) is None


@pytest.mark.parametrize("written", [0, 64, 127, 128, 129, 1000, 1023])
@pytest.mark.parametrize("rest", ["erased", "older content"])
def test_a_half_written_page_is_recognised(written, rest):
    new, old = build_payload(SR, 1024, "new"), build_payload(SR, 1024, "old")
    page = new[:written] + (b"\xff" * 1024 if rest == "erased" else old)[written:]
    whole = read_descriptor(page)
    assert whole == (SR if page == old else None)


@given(st.integers(0, 1023), st.integers(1, 255))
def test_a_changed_byte_makes_a_payload_no_whole_one(offset, change):
    payload = bytearray(build_payload(SR, 1024, "seed"))
    payload[offset] ^= change
    assert read_descriptor(bytes(payload)) is None


@given(st.binary(max_size=400))
def test_noise_is_no_payload(data):
    assert read_descriptor(data) is None
    assert read_bmc_descriptor(data) is None
    assert read_descriptor(b"HILPAYLD" + data) is None


@pytest.mark.parametrize("length", [0, 127, 1024])
def test_a_length_that_the_page_cannot_have_makes_it_no_whole_one(length):
    """Even where the hash fits what little there is."""
    stated = bytearray(build_payload(SR, 128, "seed")[:96])
    stated[0x0C:0x10] = length.to_bytes(4, "little")
    assert read_descriptor(bytes(stated) + hashlib.sha256(stated).digest()) is None


def test_seed_and_identity_decide_the_bytes():
    assert build_payload(SR, 512, "a") == build_payload(SR, 512, "a")
    assert build_payload(SR, 512, "a") != build_payload(SR, 512, "b")


@pytest.mark.parametrize("size", [0, 127])
def test_a_size_that_holds_no_descriptor_is_refused(size):
    with pytest.raises(ConfigurationError, match=f"payload of {size} bytes"):
        build_payload(SR, size, "seed")


@pytest.mark.parametrize("text", ["", "a5d72a3c", INTERFACE + "00", "zzzzzzzz" * 4])
def test_a_wrong_interface_id_is_refused(text):
    with pytest.raises(ConfigurationError, match="no interface id"):
        build_payload(PayloadIdentity(1, text), 256, "seed")


@pytest.mark.parametrize(
    ("word", "text"), [(0x44020014, "D.2.0.20"), (0x44020013, "D.2.0.19"), (0x44020006, "D.2.0.6")]
)
def test_version_words_read_as_the_tools_show_them(word, text):
    assert version_text(word) == text


# -- table of payloads without a descriptor ---------------------------------------------------------


def test_the_table_of_the_vectors_loads():
    vectors = Path(__file__).parents[2] / "fixtures" / "vectors"
    table = load_payload_table((vectors / "payloads.yaml").read_text())
    shared = table.sr["8bca3ef86e4307fab99fb50180cab89e8360ca7dea32ea14e2c83e58e5c8c6f3"]
    assert shared.interface_id == INTERFACE
    assert len({identity.bitstream_id for identity in table.sr.values()}) == len(table.sr) == 2
    assert len(table.bmc) == 1


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{section: SR, bitstream_id: 1}", "interface_id"),
        ("{section: BMC, bmc_version: 1}", "bmcfw_version"),
        ("{section: SDM}", "'SDM' is neither SR nor BMC"),
        (f"{{section: SR, bitstream_id: many, interface_id: {INTERFACE}}}", "many"),
        ("12", "not a mapping"),
    ],
)
def test_a_wrong_entry_of_the_table_is_named(entry, words):
    with pytest.raises(ConfigurationError, match=f"Payload abc: .*{words}"):
        load_payload_table(f"payloads:\n  abc: {entry}\n")


@pytest.mark.parametrize("text", ["payloads: [1, 2]", "- a", "payloads: {a: ["])
def test_a_file_that_is_no_table_is_refused(text):
    with pytest.raises(ConfigurationError, match="payload table"):
        load_payload_table(text)

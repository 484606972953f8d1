"""Every damage breaks exactly the rules it names, in the bytes it names."""

import pytest

from harness.errors import ConfigurationError, NotAnImage
from harness.images import layout
from harness.images.damage import DAMAGES
from harness.images.keys import key_from_seed
from harness.images.payload import PayloadIdentity, build_payload
from harness.images.sign import cancellation_image, root_key_image, sign
from harness.images.verify import verify

ROOT, CSK = key_from_seed("root"), key_from_seed("csk")
KEYS = {"root": ROOT, "csk": CSK}
IDENTITY = PayloadIdentity(0x23000410010311, "a5d72a3c-c8b0-4939-912c-f715e5dc10ca")
WHOLE = {
    "UPDATE": sign(build_payload(IDENTITY, 2048, "damage"), root=ROOT, csk=CSK, csk_id=4),
    "CANCEL": cancellation_image(4, ROOT),
    "RK_256": root_key_image(ROOT.public),
    "RK_384": root_key_image(key_from_seed("root", layout.P384).public),
}
CASES = [(name, cert_type) for name, damage in DAMAGES.items() for cert_type in sorted(damage.cert_types)]

#: Codes of DPDK's table of authentication results, and what they are about.
CODES = {
    "0x02": {"content-length"},
    "0x03": {"content-type"},
    "0x04": {"b1-magic"},
    "0x05": {"root-magic"},
    "0x06": {"root-curve"},
    "0x07": {"root-permission"},
    "0x08": {"root-key-id"},
    "0x09": {"csk-magic"},
    "0x0A": {"csk-curve"},
    "0x0B": {"csk-permission"},
    "0x0D": {"csk-signature-magic"},
    "0x0E": {"b0-entry-magic"},
    "0x0F": {"b0-entry-signature-magic"},
    "0x12": {"csk-signature"},
    "0x13": {"b0-signature"},
    "0x14": {"csk-id"},
    "0x16": {"payload-sha256", "payload-sha384", "truncated"},
    "0x17": {"payload-sha256", "payload-sha384"},
    "0x18": {"payload-sha256", "payload-sha384"},
    "0x19": {"cancel-id"},
}


def rules_broken_by(data):
    try:
        return {finding.rule for finding in verify(data).findings}
    except NotAnImage:
        return {"not-an-image"}


@pytest.mark.parametrize("cert_type", WHOLE)
def test_what_is_damaged_was_whole(cert_type):
    assert verify(WHOLE[cert_type]).ok


@pytest.mark.parametrize(("name", "cert_type"), CASES)
def test_breaks_exactly_the_rules_it_names(name, cert_type):
    damaged = DAMAGES[name].apply(WHOLE[cert_type], **KEYS)
    assert rules_broken_by(damaged) == set(DAMAGES[name].rules)


@pytest.mark.parametrize(("name", "cert_type"), CASES)
def test_touches_the_bytes_it_names_and_the_signatures_it_makes_again(name, cert_type):
    whole, damage = WHOLE[cert_type], DAMAGES[name]
    damaged = damage.apply(whole, **KEYS)
    field = damage.where(cert_type, len(whole))
    signatures = {
        "csk": range(0x19C, 0x1FC),
        "block0": range(0x204, 0x264) if cert_type == "UPDATE" else range(0x11C, 0x17C),
    }
    allowed = {*range(field.offset, field.end)}.union(*(signatures[seal] for seal in damage.seals))
    if name in ("content-length", "cancel-id"):  # their hashes fit the content, as the damage says
        allowed |= {*range(0x10, 0x60)}
    touched = {
        offset
        for offset in range(max(len(whole), len(damaged)))
        if whole[offset : offset + 1] != damaged[offset : offset + 1]
    }
    if name in ("content-length", "truncated-short"):  # they cut the tail off
        touched = {offset for offset in touched if offset < len(damaged)}
    assert touched <= allowed
    assert damaged != whole


@pytest.mark.parametrize("name", [name for name, damage in DAMAGES.items() if damage.code])
def test_code_is_the_documents_code_for_the_rule(name):
    assert set(DAMAGES[name].rules) <= CODES[DAMAGES[name].code]


def test_there_is_a_damage_for_every_code_that_a_single_damage_can_cause():
    assert {damage.code for damage in DAMAGES.values()} - {""} == set(CODES)


@pytest.mark.parametrize(
    ("name", "missing"), [("csk-permission", "root"), ("payload-hash", "csk"), ("content-type", "csk")]
)
def test_names_the_key_that_is_missing(name, missing):
    keys = {key: value for key, value in KEYS.items() if key != missing}
    with pytest.raises(ConfigurationError, match=f"with the {missing} key"):
        DAMAGES[name].apply(WHOLE["UPDATE"], **keys)


def test_an_unsigned_image_stays_unsigned():
    damaged = DAMAGES["payload-hash"].apply(sign(bytes(256)))
    verification = verify(damaged)
    assert (verification.csk.value, verification.block0.value) == ("absent", "absent")
    assert {finding.rule for finding in verification.findings} == {"payload-sha256", "payload-sha384"}


def test_refuses_an_image_that_it_is_not_for():
    with pytest.raises(ConfigurationError, match=r"'csk-magic' is for UPDATE images; this one is CANCEL"):
        DAMAGES["csk-magic"].apply(WHOLE["CANCEL"])
    with pytest.raises(NotAnImage):
        DAMAGES["csk-magic"].apply(bytes(2000))


@pytest.mark.parametrize("name", [name for name, damage in DAMAGES.items() if "UPDATE" in damage.cert_types])
def test_damages_on_an_image_damaged_already_do_not_crash(name):
    for first in ("content-length-huge", "truncated", "trailing", "cert-type", "content-type"):
        broken = DAMAGES[first].apply(WHOLE["UPDATE"], **KEYS)
        try:
            DAMAGES[name].apply(broken, **KEYS)
        except ConfigurationError as error:
            assert "this one is 0x04" in error.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("payload-hash", "0x0010-0x005f"),
        ("payload-bit", "end-1..end-1"),
        ("truncated", "end-128..end-1"),
        ("trailing", "end+0..end+127"),
    ],
)
def test_byte_range_is_readable(name, text):
    assert DAMAGES[name].byte_range == text

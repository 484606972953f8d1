"""The parser takes any bytes; verification says the same of bytes, of a file and of a slow pipe."""

import io
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import NotAnImage
from harness.images import layout
from harness.images.keys import key_from_seed
from harness.images.parse import looks_like_image, parse
from harness.images.sign import cancellation_image, root_key_image, sign
from harness.images.verify import verify, verify_stream

ROOT, CSK = key_from_seed("root"), key_from_seed("csk")
PAYLOAD = bytes(range(256)) * 2
IMAGES = {
    "update": sign(PAYLOAD, root=ROOT, csk=CSK, csk_id=3),
    "unsigned": sign(PAYLOAD),
    "cancel": cancellation_image(3, ROOT),
    "root-key": root_key_image(ROOT.public),
}
MAGIC = bytes.fromhex("19fdeab6")


def taken(data):
    """Everything the readers say of ``data``, or the error they are allowed to raise."""
    try:
        verification = verify(data)
    except NotAnImage as error:
        assert not looks_like_image(data)
        return type(error)
    assert looks_like_image(data)
    assert list(verification.findings) == sorted(verification.findings)
    for finding in verification.findings:
        assert 0 <= finding.offset <= len(data)
        assert finding.message
    return verification.to_json()


@settings(max_examples=300)
@given(st.binary(max_size=1400) | st.binary(max_size=1500).map(MAGIC.__add__))
def test_any_bytes_are_an_image_or_named_as_none(data):
    taken(data)


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(IMAGES)),
    st.lists(st.tuples(st.integers(4, 1151), st.integers(0, 255)), max_size=12),
    st.integers(1100, 1600),
)
def test_any_header_behind_the_magic_is_parsed(name, edits, size):
    data = bytearray(IMAGES[name])
    for offset, value in edits:
        data[offset] = value
    data = bytes(data[:size].ljust(min(size, 1600), b"\x5a"))
    said = taken(data)
    if len(data) >= 1152:
        assert said["content_length"] == int.from_bytes(data[4:8], "little")


@pytest.mark.parametrize("name", IMAGES)
def test_every_single_changed_byte_of_a_header_is_found(name):
    """Whatever byte of a whole image changes, something no longer holds or reads otherwise."""
    whole = IMAGES[name]
    said = taken(whole)
    silent = [offset for offset in range(1152) if taken(_flipped(whole, offset)) == said]
    # more permissions than the content type needs are nothing wrong where no signature covers them
    assert silent == ([0x11C, 0x11D, 0x11E, 0x11F] if name == "unsigned" else [])


def _flipped(data, offset):
    return data[:offset] + bytes([data[offset] ^ 0x10]) + data[offset + 1 :]


@pytest.mark.parametrize("offset", [0xA0, 0x124, 0x118, 0x120, 0x60, 0x08])
def test_signed_fields_are_covered_by_their_signature(offset):
    verification = verify(_flipped(IMAGES["update"], offset))
    assert "invalid" in (verification.csk.value, verification.block0.value)


def test_a_signature_by_another_key_is_invalid_and_the_other_one_is_told_apart():
    other = sign(PAYLOAD, root=key_from_seed("other"), csk=CSK, csk_id=3)
    patched = bytearray(IMAGES["update"])
    patched[0x19C:0x1FC] = other[0x19C:0x1FC]
    verification = verify(bytes(patched))
    assert (verification.csk.value, verification.block0.value) == ("invalid", "valid")
    assert [(f.offset, f.rule) for f in verification.findings] == [(0x19C, "csk-signature")]


def test_a_zeroed_signature_beside_a_key_is_absent_and_a_finding():
    patched = bytearray(IMAGES["update"])
    patched[0x204:0x264] = bytes(0x60)
    verification = verify(bytes(patched))
    assert verification.block0.value == "absent"
    assert [finding.rule for finding in verification.findings] == ["b0-signature"]
    assert not verification.ok


def test_the_mirrored_signature_is_as_valid():
    """n - s verifies wherever s does: no low-S rule is known of the card."""
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    patched = bytearray(IMAGES["update"])
    s = int.from_bytes(patched[0x234:0x254], "big")
    patched[0x234:0x254] = (order - s).to_bytes(32, "big")
    assert verify(bytes(patched)).ok


@pytest.mark.parametrize(
    ("size", "rules"),
    [
        (len(IMAGES["update"]) - 1, ["payload-sha256", "payload-sha384", "truncated"]),
        (len(IMAGES["update"]) + 1, ["trailing"]),
    ],
)
def test_size_against_the_stated_length(size, rules):
    data = (IMAGES["update"] + b"\0")[:size]
    findings = verify(data).findings
    assert [finding.rule for finding in findings] == rules
    assert findings[-1].offset == min(size, len(IMAGES["update"]))


def test_a_file_beyond_the_staging_area_is_found():
    assert "file-size" in [f.rule for f in parse(IMAGES["update"] + bytes(layout.STAGING_SIZE)).findings]


def test_fields_carry_their_offsets_and_bytes():
    fields = {field.name: (field.offset, value) for field, value in parse(IMAGES["update"]).fields()}
    assert fields["csk_key_id"] == (0x120, b"\x03\0\0\0")
    assert fields["magic"] == (0, MAGIC)


# -- streams --------------------------------------------------------------------------------------


class Dripping(io.RawIOBase):
    """A pipe that gives at most ``step`` bytes at a time."""

    def __init__(self, data, step):
        self._data = io.BytesIO(data)
        self._step = step

    def readinto(self, buffer):
        return self._data.readinto(memoryview(buffer)[: self._step])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(IMAGES)), st.integers(1, 2000), st.integers(-400, 400), st.integers(0, 1151))
def test_a_stream_is_verified_like_its_bytes(name, step, change, flipped):
    data = _flipped(IMAGES[name], flipped)
    data = data[:change] if change < 0 else data + bytes(change)
    try:
        expected = verify(data)
    except NotAnImage:
        with pytest.raises(NotAnImage):
            verify_stream(Dripping(data, step))
        return
    streamed = verify_stream(Dripping(data, step))
    assert streamed.to_json() == expected.to_json()
    assert streamed.image.size == len(data)


@pytest.mark.parametrize("tail", [b"", b"trailing"])
@pytest.mark.parametrize("flip", [False, True])
def test_a_large_image_is_verified_in_two_threads_alike(tail, flip):
    data = sign(PAYLOAD * 5000, "BMC", root=ROOT, csk=CSK) + tail
    if flip:
        data = _flipped(data, 2_000_000)
    expected = verify(data)
    assert expected.payload_sha256_ok is expected.payload_sha384_ok is not flip
    assert verify_stream(io.BytesIO(data)).to_json() == expected.to_json()


def test_a_stream_takes_bounded_memory():
    data = sign(bytes(40_000_000), "BMC", root=ROOT, csk=CSK)
    verify_stream(io.BytesIO(data))  # imports and caches are not what is measured
    tracemalloc.start()
    try:
        assert verify_stream(io.BytesIO(data)).ok
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


def test_an_error_while_reading_comes_through_and_leaves_no_thread():
    class Broken(io.RawIOBase):
        def __init__(self):
            self._data = io.BytesIO(IMAGES["update"])

        def readinto(self, buffer):
            count = self._data.readinto(buffer)
            if not count:
                raise OSError("the disk went away")
            return count

    with pytest.raises(OSError, match="the disk went away"):
        verify_stream(Broken())

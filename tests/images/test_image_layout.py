"""The field table against the offsets that PACSign's reader.py and the Intel guide give."""

import pytest

from harness.images import layout

# name -> offset, size; restated from the documents, not from the code
UPDATE_FIELDS = {
    "magic": (0x00, 4),
    "content_length": (0x04, 4),
    "content_type": (0x08, 1),
    "cert_type": (0x09, 1),
    "slot": (0x0A, 1),
    "payload_sha256": (0x10, 32),
    "payload_sha384": (0x30, 48),
    "version": (0x60, 32),
    "block1_magic": (0x80, 4),
    "root_magic": (0x90, 4),
    "root_curve": (0x94, 4),
    "root_x": (0xA0, 48),
    "root_y": (0xD0, 48),
    "csk_magic": (0x114, 4),
    "csk_curve": (0x118, 4),
    "csk_signature_magic": (0x198, 4),
    "csk_signature_r": (0x19C, 48),
    "csk_signature_s": (0x1CC, 48),
    "block0_entry_magic": (0x1FC, 4),
    "block0_signature_r": (0x1FC + 0x08, 48),
    "block0_signature_s": (0x1FC + 0x38, 48),
}


def test_fields_of_an_update_lie_where_the_documents_say():
    fields = {field.name: (field.offset, field.size) for field in layout.fields_of("UPDATE")}
    assert {name: fields[name] for name in UPDATE_FIELDS} == UPDATE_FIELDS


def test_the_block_0_entry_of_a_cancellation_moves_up():
    fields = {field.name: field.offset for field in layout.fields_of("CANCEL")}
    assert fields["block0_entry_magic"] == 0x114
    assert "csk_magic" not in fields


@pytest.mark.parametrize("cert_type", ["UPDATE", "CANCEL", "RK_256", "RK_384", "0x7f"])
def test_fields_cover_the_header_without_gap_or_overlap(cert_type):
    position = 0
    for field in layout.fields_of(cert_type):
        assert field.offset == position, field
        position = field.end
    assert position == 1024


def test_hashed_and_signed_bodies_leave_the_magic_out():
    assert (layout.ROOT_ENTRY.body.offset, layout.ROOT_ENTRY.body.end) == (0x94, 0x114)
    assert (layout.CSK_ENTRY.body.offset, layout.CSK_ENTRY.body.end) == (0x118, 0x198)

"""Image lists of a field report that lost their form: rows are recovered, or the line is named.

The texts restate the form of the report of devices out of sync: rulers of dashes, tabs, escaped braces.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.controlplane.mangled import parse_mangled_images
from harness.errors import TableError

A, B = "cbe0f5f7-f1d6-4b1b-8153-28951991d4ee", "ee659fb7-d433-4937-bb5b-f213185b07b5"
RULER = "-" * 80 + "+"
LABELS = "[\\{u'subcloud': u'abc'}, \\{u'subcloud4': u'4'}]"
WRAPPED = f"""\
On the system controller, there are 2 images applied:

system device-image-list
{RULER}

uuid\tbitstream_t\tpci_ven\tpci_dev\tbitstream_\tkey_signat\trevoke_\tname\tdescription\timage_ve\tapplied\tapplied_labels
 \type\tdor\tice\tid\ture\tkey_id\t \t \trsion\t \t 
{RULER}

{A}\tfunctional\t8086\t0b30\t11\tNone\tNone\tNone\tNone\tNone\tTrue\t{LABELS}
{B}\tfunctional\t8086\t0b30\t2\tNone\tNone\tNone\tNone\tNone\tTrue\t{LABELS}
{RULER}
"""  # noqa: W291
NARROW = f"""\
{RULER}
uuid\tbitstream_t\tpci_ven\tpci_devic\tbitstream_id\tkey_signature\trevoke_key_id\tname\tdescription\timage_version\tapplied\tapplied_labels
 \type\tdor\te\t \t \t \t \t \t \t \t 
{RULER}
{A}\tfunctional\t8086\t0b30\t11\tNone\tNone\tNone\tNone\tNone\tFalse\tNone
{RULER}
"""  # noqa: W291
ROW = {
    "uuid": A, "bitstream_type": "functional", "pci_vendor": "8086", "pci_device": "0b30",
    "bitstream_id": "11", "key_signature": "None", "revoke_key_id": "None", "name": "None",
    "description": "None", "image_version": "None", "applied": "True",
    "applied_labels": "[{u'subcloud': u'abc'}, {u'subcloud4': u'4'}]",
}  # fmt: skip
EXPECTED = [ROW, ROW | {"uuid": B, "bitstream_id": "2"}]


def test_tables_of_the_report() -> None:
    first, second = parse_mangled_images(f"{WRAPPED}\nOn subcloud4, there is only 1:\n{NARROW}\nIn summary,")
    assert [dict(row) for row in first.rows] == EXPECTED
    assert [dict(row) for row in second.rows] == [ROW | {"applied": "False", "applied_labels": "None"}]


@pytest.mark.parametrize("between", [" ", "   ", " | "])
def test_blanks_where_tabs_were(between: str) -> None:
    (table,) = parse_mangled_images(WRAPPED.replace("\t", between))
    assert [dict(row) for row in table.rows] == EXPECTED


def test_lines_that_were_joined() -> None:
    flat = " ".join(WRAPPED.partition(f"{RULER}\n")[2].replace("\t", " ").split("\n"))
    (table,) = parse_mangled_images(flat)
    assert [dict(row) for row in table.rows] == EXPECTED


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (f"{B}\tfunctional\t8086", f"{B}\tfunctional", "Line 11 has 11 words for 12 columns"),
        (f"{B}\tfunctional\t8086", f"{B}\tfunctional8086\t0", "Line 11 are not those of an image"),
        ("\timage_ve\t", "\tversion\t", "Line 6 is no header"),
        ("0b30\t2\tNone\tNone", "0b30\t2\tTwo words\tNone", None),
    ],
)
def test_what_cannot_be_told_names_its_line(old: str, new: str, said: str | None) -> None:
    text = WRAPPED.replace(old, new)
    assert text != WRAPPED
    if said is None:  # tabs keep words together; blanks do not
        assert parse_mangled_images(text)[0].rows[1]["key_signature"] == "Two words"
        text, said = text.replace("\t", " "), "Line 11 has 13 words"
    with pytest.raises(TableError, match=f"(?i){said}"):
        parse_mangled_images(text)


def test_prose_is_no_table() -> None:
    assert parse_mangled_images("uuid of the image\nis missing\n" + RULER) == []


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_damage_is_tables_or_the_one_error(data: st.DataObject) -> None:
    text = WRAPPED.replace("\t", data.draw(st.sampled_from(["\t", " "])))
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 300))
    put = data.draw(st.text(st.sampled_from("\t \n-+[{'u"), max_size=5))
    with suppress(TableError):
        parse_mangled_images(text[:at] + put + text[at + cut :])

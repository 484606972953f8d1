"""Tables of the `system` command are read back as they were meant, or not at all.

The layouts restate what the real command printed (captured output of cgtsclient with prettytable 0.7.2 on
Python 2.7 and 3.18 on Python 3.11); rows of uuids are shortened to what the case needs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.controlplane.tables import only_table, parse_tables
from harness.errors import TableError
from harness.judgement.values import Unknown

A, B = "cbe0f5f7-f1d6-4b1b-8153-28951991d4ee", "ee659fb7-d433-4937-bb5b-f213185b07b5"

WRAPPED = f"""\
+--------------------------------------+-------------+----------+-----------+---------+-----------------------+
| uuid                                 | bitstream_t | image_ve | retimer_i | applied | applied_labels        |
|                                      | ype         | rsion    | ncluded   |         |                       |
+--------------------------------------+-------------+----------+-----------+---------+-----------------------+
| {A} | functional  | None     | False     | True    | [{{'subcloud': 'abc'}}, |
|                                      |             |          |           |         | {{'subcloud3': '3'}},   |
|                                      |             |          |           |         | {{'subcloud4': '4'}}]   |
|                                      |             |          |           |         |                       |
| {B} | functional  | None     | False     | True    | [{{'subcloud4': '4'}}]  |
+--------------------------------------+-------------+----------+-----------+---------+-----------------------+
"""  # noqa: E501
PYTHON2 = f"""\
+--------------------------------------+----------------+---------+------------------------+
| uuid                                 | bitstream_type | applied | applied_labels         |
+--------------------------------------+----------------+---------+------------------------+
| {A} | functional     | False   | None                   |
| {B} | functional     | True    | [{{u'subcloud4': u'4'}}] |
+--------------------------------------+----------------+---------+------------------------+
"""
STATES = f"""\
+--------------+--------------------+--------------------------------------+-----------+---------------------------+
| hostname     | PCI device address | Device image uuid                    | status    | updated_at                |
+--------------+--------------------+--------------------------------------+-----------+---------------------------+
| compute-0    | 0000:b2:00.0       | {A} | failed    | None                      |
| controller-0 | 0000:b4:00.0       | {B} | completed | 2020-08-05T14:41:55.      |
|              |                    |                                      |           | 684401+00:00              |
|              |                    |                                      |           |                           |
+--------------+--------------------+--------------------------------------+-----------+---------------------------+
"""  # noqa: E501
DEVICE = """\
+------------------+-------------------------+
| Property         | Value                   |
+------------------+-------------------------+
| name             | pci_0000_b2_00_0        |
| class name       | Processing accelerators |
| root_key         |                         |
| bitstream_id     | 0x23000410010310        |
+------------------+-------------------------+
"""


def render(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render as prettytable does, cells of several lines too; written for the tests alone."""
    lines = [[cell.split("\n") for cell in row] for row in (columns, *rows)]
    widths = [max(len(part) for row in lines for part in row[i]) for i in range(len(columns))]
    ruler = "+" + "".join("-" * (width + 2) + "+" for width in widths)
    out = [ruler]
    for number, row in enumerate(lines):
        for at in range(max(len(cell) for cell in row)):
            parts = [cell[at] if at < len(cell) else "" for cell in row]
            out.append("|" + "".join(f" {p.ljust(w)} |" for p, w in zip(parts, widths, strict=True)))
        if number == 0:
            out.append(ruler)
    return "\n".join([*out, ruler, ""])


def test_wrapped_headers_and_labels() -> None:
    table = only_table(WRAPPED)
    assert table.columns == (
        "uuid", "bitstream_type", "image_version", "retimer_included", "applied", "applied_labels"
    )  # fmt: skip
    assert [row["uuid"] for row in table.rows] == [A, B]
    assert table.rows[0]["applied_labels"] == "[{'subcloud': 'abc'}, {'subcloud3': '3'}, {'subcloud4': '4'}]"
    assert table.rows[1]["applied_labels"] == "[{'subcloud4': '4'}]"


def test_python2_without_wrapping() -> None:
    assert [row["applied_labels"] for row in only_table(PYTHON2).rows] == ["None", "[{u'subcloud4': u'4'}]"]


def test_wrapped_times_have_no_blank() -> None:
    table = only_table(STATES)
    assert [row["updated_at"] for row in table.rows] == ["None", "2020-08-05T14:41:55.684401+00:00"]
    assert [row["PCI device address"] for row in table.rows] == ["0000:b2:00.0", "0000:b4:00.0"]


def test_properties() -> None:
    assert only_table(DEVICE).properties() == {
        "name": "pci_0000_b2_00_0",
        "class name": "Processing accelerators",
        "root_key": "",
        "bitstream_id": "0x23000410010310",
    }


def test_several_tables_and_what_stands_around_them() -> None:
    text = f"[sysadmin@controller-0 ~(keystone_admin)]$ system x\n{DEVICE}a warning\n{PYTHON2}{DEVICE}\r\n"
    assert [len(table.rows) for table in parse_tables(text)] == [4, 2, 4]
    with pytest.raises(TableError, match="3 are there"):
        only_table(text)


def test_carriage_returns_of_a_terminal() -> None:
    assert parse_tables(STATES.replace("\n", "\r\n")) == parse_tables(STATES)


def test_wide_and_combining_characters() -> None:
    text = (
        "+------+-------+\n| name | label |\n+------+-------+\n"
        "| 標準 | e\u0301     |\n| ab   | c     |\n+------+-------+\n"
    )
    assert [dict(row) for row in only_table(text).rows] == [
        {"name": "標準", "label": "e\u0301"},
        {"name": "ab", "label": "c"},
    ]


def test_bars_within_a_cell() -> None:
    assert only_table(render(["a", "b"], [["x | y", "|"], ["+--+", "z"]])).rows[0] == {"a": "x | y", "b": "|"}


def test_break_that_may_have_held_a_blank_is_unknown() -> None:
    """'1.' and '2' may have been '1. 2' or '1.2'; 'one' and 'two', shorter than the column, had a blank."""
    rows = [[A, "1.\n2\n ", "one\ntwo\n "], [B, "x", "longer"]]
    first, _ = only_table(render(["uuid", "name", "description"], rows)).rows
    assert isinstance(first["name"], Unknown)
    assert "1. / 2" in first["name"].reason
    assert first["description"] == "one two"


def test_lines_of_a_cell_that_was_not_wrapped_are_unknown() -> None:
    first, _ = only_table(render(["uuid", "description"], [[A, "one\ntwo"], [B, "longer"]])).rows
    assert isinstance(first["description"], Unknown)


def test_rows_of_labels_without_wrapping() -> None:
    rows = [["", "", "k", "v"], ["controller-0", "pci_0000_b2_00_0", "k", "v"], ["", "", "k", "w"]]
    columns = ["hostname", "PCI device name", "label key", "label value"]
    assert [list(row.values()) for row in only_table(render(columns, rows)).rows] == rows


def test_wrapped_row_of_labels_that_cannot_be_told_from_floating_ones() -> None:
    columns = ["hostname", "PCI device name", "label key", "label value"]
    text = render(columns, [["controller-0", "pci", "k", "v"], ["", "", "a long\nkey\n ", "v"]])
    with pytest.raises(TableError, match="cannot be told"):
        parse_tables(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DEVICE.rpartition("\n+------------------+")[0], "line 1 does not end"),
        (DEVICE.partition("\n")[2], "Line 1 is part of a table that does not begin"),
        (DEVICE.replace("| root_key         |", "| root_key |"), "Line 6 does not fit"),
        (DEVICE.replace("| root_key         |", "|                  |"), "Line 6 is an empty row"),
        (DEVICE + "| more |\n", "Line 9 is part of a table"),
    ],
)
def test_damaged_table_names_its_line(text: str, said: str) -> None:
    with pytest.raises(TableError, match=said):
        parse_tables(text)


CELL = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12).map(str.rstrip)
FULL = CELL.filter(bool)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_is_rendered_without_wrapping_is_read_back(data: st.DataObject) -> None:
    columns = data.draw(
        st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=5, unique=True)
    )
    rows = data.draw(st.lists(st.tuples(*[CELL] * len(columns)).filter(any), min_size=1, max_size=5))
    rows = [(A, *row) for row in rows]
    text = render(["uuid", *columns], rows)
    assert [tuple(row.values()) for row in only_table(text).rows] == rows


WORDS = st.lists(st.from_regex(r"[a-z]{1,9}", fullmatch=True), min_size=1, max_size=8).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5), st.integers(10, 24))
@example([("a b", "c")], 10)
def test_what_is_wrapped_is_read_back_or_unknown(rows: list[tuple[str, str]], width: int) -> None:
    def cell(text: str) -> str:
        filled = textwrap.fill(text, width)
        return filled if filled == text else f"{filled}\n{' ' * (width - 1)}"

    text = render(["uuid", "name", "description"], [(A, cell(a), cell(b)) for a, b in rows])
    found = [(row["name"], row["description"]) for row in only_table(text).rows]
    assert len(found) == len(rows)
    for got, want in zip(found, rows, strict=True):
        assert all(isinstance(g, Unknown) or g == w for g, w in zip(got, want, strict=True))


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("+-| \n\tabPropertyValue標[]'{}:,"), max_size=200))
def test_any_text_is_tables_or_the_one_error(text: str) -> None:
    with suppress(TableError):
        parse_tables(text)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([WRAPPED, PYTHON2, STATES, DEVICE]), st.data())
def test_any_damage_is_tables_or_the_one_error(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 200))
    put = data.draw(st.text(st.sampled_from("+-| \n標"), max_size=5))
    with suppress(TableError):
        parse_tables(text[:at] + put + text[at + cut :])


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    """As prettytable prints it; a cell may begin with a mark."""
    text = (
        "+-------+----+\n| name  | id |\n+-------+----+\n"
        "| 画像  | 1  |\n| e\u0301te\u0301   | 2  |\n| \u0301e\u200d     | 3  |\n| plain | 4  |\n"
        "+-------+----+\n"
    )
    assert [row["name"] for row in only_table(text).rows] == [
        "画像",
        "e\u0301te\u0301",
        "\u0301e\u200d",
        "plain",
    ]


def test_beside_a_wide_cell_a_word_that_was_cut_is_none_with_a_blank() -> None:
    """The real command wraps by characters: eight of them here, and the column is sixteen wide."""
    wide = "一二三四五六七八"
    text = (
        f"+{'-' * 38}+{'-' * 18}+\n| {'uuid':36} | {'name':16} |\n+{'-' * 38}+{'-' * 18}+\n"
        f"| {A} | {wide} |\n| {B} | {'abcdefgh':16} |\n| {'':36} | {'ijkl':16} |\n| {'':36} | {'':16} |\n"
        f"+{'-' * 38}+{'-' * 18}+\n"
    )
    first, second = only_table(text).rows
    assert first["name"] == wide
    assert isinstance(second["name"], Unknown)

"""Tables that went through what folds blanks: rows are those that were printed, or the table is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.controlplane.columns import LABEL_COLUMNS, STATE_COLUMNS, SUBCLOUD_COLUMNS
from harness.controlplane.folded import bare_columns, parse_bare, parse_barred
from harness.controlplane.tables import only_table
from harness.emulator.distributed_cloud.cli_output import listed
from harness.emulator.starlingx.cli_tables import listing, properties
from harness.errors import TableError
from harness.judgement.values import Unknown

A, B = "cbe0f5f7-f1d6-4b1b-8153-28951991d4ee", "ee659fb7-d433-4937-bb5b-f213185b07b5"
STATES = (
    ("controller-0", "0000:b2:00.0", A, "in-progress", "2020-08-05T14:02:11.120394+00:00", "None"),
    ("compute-0", "0000:b4:00.0", B, "completed", "None", "2020-08-05T14:41:55.684401+00:00"),
)
FIELDS = ("hostname", "pciaddr", "image_uuid", "status", "update_start_time", "updated_at")


def folded(text: str, blank: str = " ") -> list[str]:
    """Return lines with each run of blanks folded, as a tracker does it."""
    return [blank.join(line.split()) for line in text.splitlines()]


def without_bars(text: str, between: str) -> list[str]:
    """Return lines whose corners and bars are lost."""
    rows = [line for line in text.splitlines() if not line.startswith("+")]
    return [between.join(cell.strip() for cell in line.strip("|").split("|")) for line in rows]


@pytest.mark.parametrize("terminal", [None, 200, 120])
def test_states_with_their_bars(terminal: int | None) -> None:
    printed = listing(STATE_COLUMNS, FIELDS, STATES, terminal)
    found = parse_barred(folded(printed))
    assert found == only_table(printed)
    assert [tuple(row.values()) for row in found.rows] == list(STATES)


def test_labels_that_were_wrapped_have_their_blanks_again() -> None:
    columns = ("uuid", "applied", "applied_labels")
    labels = "[{'subcloud': 'abc'}, {'subcloud3': '3'}, {'subcloud4': '4'}]"
    printed = listing(columns, columns, [(A, "True", labels), (B, "False", "None")], 80)
    assert printed.count("\n") > 8, "it is wrapped"
    assert [row["applied_labels"] for row in parse_barred(folded(printed)).rows] == [labels, "None"]


@pytest.mark.parametrize("between", [" ", "\t", "    "])
def test_states_without_bars(between: str) -> None:
    printed = listing(STATE_COLUMNS, FIELDS, STATES, None)
    assert parse_bare(without_bars(printed, between)) == only_table(printed)


def test_subclouds_of_an_older_release_without_bars() -> None:
    rows = [(1, "subcloud1", "managed", "online", "complete", "in-sync")]
    printed = listed(SUBCLOUD_COLUMNS[:6], rows, "table")
    assert [tuple(row.values()) for row in parse_bare(without_bars(printed, " ")).rows] == [
        ("1", *rows[0][1:])
    ]


def test_a_line_that_went_lost_leaves_the_rest() -> None:
    printed = folded(listing(STATE_COLUMNS, FIELDS, STATES, None))
    bare = [line for line in printed if not line.startswith("+")]
    assert [row["status"] for row in parse_barred(bare).rows] == ["in-progress", "completed"]


def test_properties_keep_values_with_blanks() -> None:
    printed = properties([("class name", "Processing accelerators"), ("root_key", "")])
    assert parse_barred(folded(printed)).properties() == only_table(printed).properties()


@pytest.mark.parametrize(
    "lines",
    [[], ["+----+"], ["| a | a |"], ["| a | b |", "| 1 |"], ["|  |"]],
    ids=["nothing", "ruler", "twice", "too few", "no name"],
)
def test_what_is_no_table_is_refused(lines: list[str]) -> None:
    with pytest.raises(TableError):
        parse_barred(lines)


def test_a_row_with_a_word_too_many_is_refused_not_shifted() -> None:
    with pytest.raises(TableError, match="5 words for 4 columns"):
        parse_bare([" ".join(LABEL_COLUMNS), "controller-0 pci_0000_b2_00_0 key the value"])
    with pytest.raises(TableError, match="none that are known"):
        parse_bare(["a b c", "1 2 3"])


def test_columns_that_are_known_without_bars() -> None:
    assert bare_columns("hostname  PCI device name\tlabel key label value") == LABEL_COLUMNS
    assert bare_columns("id name management availability deploy status") == SUBCLOUD_COLUMNS[:5]
    assert bare_columns("id name") is None
    assert bare_columns("the hostname of it") is None


_WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789_.-", min_size=1, max_size=12)


@given(st.lists(st.tuples(_WORD, _WORD, _WORD, _WORD), min_size=1, max_size=4), st.sampled_from([" ", "\t"]))
@settings(max_examples=60, deadline=None)
def test_what_was_printed_is_read_back_however_it_is_folded(rows: list[tuple[str, ...]], blank: str) -> None:
    printed = listing(LABEL_COLUMNS, ("hostname", "device", "key", "value"), rows, None)
    whole = only_table(printed)
    assert parse_barred(folded(printed, blank)) == whole
    assert parse_bare(without_bars(printed, blank)) == whole


@given(
    st.lists(st.tuples(*[_WORD] * 3, st.sampled_from([A, B])), min_size=1, max_size=3), st.integers(60, 140)
)
@settings(max_examples=60, deadline=None)
def test_a_wrapped_table_gives_the_same_cells_or_unknown_ones(
    rows: list[tuple[str, ...]], width: int
) -> None:
    columns, fields = ("status", "bitstream_id", "name", "uuid"), ("status", "bitstream_id", "name", "uuid")
    printed = listing(columns, fields, rows, width)
    for row, meant in zip(parse_barred(folded(printed)).rows, rows, strict=True):
        for cell, text in zip(row.values(), meant, strict=True):
            assert isinstance(cell, Unknown) or cell == text

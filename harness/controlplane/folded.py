"""Tables of `system`, `fm` and `dcmanager` whose blanks were folded: cells are told by bars, tabs, or words.

As trackers and chat programs leave them. :mod:`harness.controlplane.mangled` reads image lists without bars,
which have blanks within cells; of other tables without bars, each cell must be one word or the tabs be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from harness.controlplane.columns import (
    ALARM_COLUMNS,
    DEVICE_COLUMNS,
    EARLIER_IMAGE_COLUMNS,
    HOST_COLUMNS,
    IMAGE_COLUMNS,
    LABEL_COLUMNS,
    STATE_COLUMNS,
    STEP_COLUMNS,
    SUBCLOUD_COLUMNS,
    joined,
    known_header,
)
from harness.controlplane.tables import Cells, Row, Table
from harness.errors import TableError

_RULER: Final = re.compile(r"[-+=| ]*[-=]{4,}[-+=| ]*")
_KNOWN: Final = (
    IMAGE_COLUMNS, EARLIER_IMAGE_COLUMNS, STATE_COLUMNS, LABEL_COLUMNS, DEVICE_COLUMNS, HOST_COLUMNS,
    ALARM_COLUMNS, SUBCLOUD_COLUMNS, STEP_COLUMNS,
)  # fmt: skip
#: Columns that each row fills on its first line alone, as they are never wrapped.
_ANCHORS: Final = ("uuid", "Device image uuid", "UUID", "id", "stage")
#: Columns that lists of older releases have not.
_LATER: Final = ("sync", "backup status", "prestage status", "numa_node", "enabled")


def parse_barred(lines: Sequence[str]) -> Table:
    """Return the table in ``lines``, which have bars between cells, however many blanks are beside them.

    :raises TableError: it has no header, or a line has another number of cells.
    """
    parts: list[list[Cells]] = [[]]
    for number, line in enumerate(lines, 1):
        plain = line.strip()
        if not plain or _RULER.fullmatch(plain):
            if parts[-1]:
                parts.append([])
            continue
        cells = [cell.strip() for cell in plain.strip("|").split("|")]
        if parts[0] and len(cells) != len(parts[0][0]):
            raise TableError(
                f"Line {number} has {len(cells)} cells and not {len(parts[0][0])}: {line[:120]!r}."
            )
        parts[-1].append(cells)
    if not parts[0]:
        raise TableError("A table without a header was found.")
    head, body = parts[0], [cells for part in parts[1:] for cells in part]
    if len(parts) == 1:  # no ruler is left: the first line is the header
        head, body = parts[0][:1], parts[0][1:]
    columns = _columns(head)
    return Table(columns, tuple(_rows(columns, body)))


def parse_bare(lines: Sequence[str]) -> Table:
    """Return the table of known columns in ``lines``, which have no bars any more.

    :raises TableError: its columns are none that are known, or a row is not to be told.
    """
    kept = [line.strip(" ") for line in lines if line.strip() and not _RULER.fullmatch(line.strip())]
    if not kept:
        raise TableError("A table without a header was found.")
    columns = bare_columns(kept[0])
    if columns is None:
        raise TableError(f"The columns are none that are known: {kept[0][:120]!r}.")
    rows: list[Row] = []
    for line in kept[1:]:
        cells = [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()
        if len(cells) != len(columns):
            raise TableError(f"There are {len(cells)} words for {len(columns)} columns: {line[:120]!r}.")
        row: Row = {}
        row.update(zip(columns, cells, strict=True))
        rows.append(row)
    return Table(columns, tuple(rows))


def bare_columns(line: str) -> tuple[str, ...] | None:
    """Return the columns that a header without bars names; None where it is none that is known."""
    squeezed = re.sub(r"\s", "", line)
    for columns in _KNOWN:
        for last in range(len(columns), 1, -1):
            if squeezed == "".join(columns[:last]).replace(" ", ""):
                return columns[:last]
            if columns[last - 1] not in _LATER:
                break
    return None


def _columns(head: Sequence[Cells]) -> tuple[str, ...]:
    pieces = [[cells[at] for cells in head] for at in range(len(head[0]))]
    columns = tuple(known_header(each, max(map(len, each))) for each in pieces)
    if columns == ("Field", "Value"):
        columns = ("Property", "Value")
    if len(set(columns)) != len(columns) or not all(columns):
        raise TableError(f"Columns of a table without a name, or with the same: {str(columns)[:120]}.")
    return columns


def _rows(columns: tuple[str, ...], body: Sequence[Cells]) -> Iterator[Row]:
    anchor = 0 if columns == ("Property", "Value") else _anchor(columns)
    groups: list[list[Cells]] = []
    ended = True
    for cells in body:
        if not any(cells):
            ended = True
            continue
        begins = bool(cells[anchor]) if anchor is not None else ended or all(cells)
        if begins or not groups:
            groups.append([])
        groups[-1].append(cells)
        ended = anchor is None and not begins and ended
    for group in groups:
        pieces = [[cells[at] for cells in group] for at in range(len(columns))]
        yield {
            column: joined(cell, max(map(len, cell)), wrapped=len(group) > 1)
            for column, cell in zip(columns, pieces, strict=True)
        }


def _anchor(columns: Sequence[str]) -> int | None:
    return next((at for at, name in enumerate(columns) if name in _ANCHORS), None)

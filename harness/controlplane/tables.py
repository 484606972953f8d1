"""The tables that `system` prints, read back: every width, wrapped or not, several in one output.

A list wraps cells and headers at the width of the terminal (fact sheet of StarlingX, section 2.7). Whether a
wrap has swallowed a blank cannot always be told: such a cell is Unknown; several blanks there count as one.
Rows that cannot be told from one another are an error. `--nowrap` spares all that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from harness.controlplane.columns import joined, known_header
from harness.display_width import char_width, display_width
from harness.errors import TableError
from harness.judgement.values import Value

_BORDER: Final = re.compile(r"\+(?:-+\+)+")
Row = dict[str, Value[str]]
#: The pieces of each column on one line.
Cells = list[str]
#: The lines of one row, and whether it was wrapped.
Group = tuple[list[Cells], bool]


@dataclass(frozen=True, slots=True)
class Table:
    """One table. ``columns``: its headers in order; ``rows``: header -> cell, without the padding."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def is_properties(self) -> bool:
        """Whether it is a table of one object: Property and Value."""
        return self.columns == ("Property", "Value")

    def properties(self) -> Row:
        """Return property -> value. :raises TableError: it is no such table, or one property is twice."""
        if not self.is_properties:
            raise TableError(f"A table of properties was expected, and its columns are {self.columns}.")
        found: Row = {}
        for row in self.rows:
            name = str(row["Property"])
            if name in found:
                raise TableError(f"The property {name!r} is twice in one table.")
            found[name] = row["Value"]
        return found


def parse_tables(text: str) -> list[Table]:
    """Return the tables in what a command printed; text around them is passed over.

    :raises TableError: a table is cut off or damaged; the message has the line.
    """
    lines = text.split("\n")
    tables: list[Table] = []
    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        if _BORDER.fullmatch(line):
            table, at = _table(lines, at)
            tables.append(table)
        elif line.startswith(("|", "+--")):
            raise TableError(f"Line {at + 1} is part of a table that does not begin: {line[:120]!r}.")
        else:
            at += 1
    return tables


def only_table(text: str) -> Table:
    """Return the one table in what a command printed; a table without rows is not printed at all.

    :raises TableError: there is none, or another one.
    """
    tables = parse_tables(text)
    if len(tables) != 1:
        raise TableError(f"One table was expected, and {len(tables)} are there: {text[:120]!r}.")
    return tables[0]


def _table(lines: Sequence[str], start: int) -> tuple[Table, int]:
    """Read the table whose upper border is line ``start``; return it and the line after it."""
    border = lines[start].rstrip()
    places = [index for index, char in enumerate(border) if char == "+"]
    parts: list[list[tuple[int, Cells]]] = [[]]
    at = start + 1
    while len(parts) < 3:
        if at >= len(lines):
            raise TableError(f"The table that begins in line {start + 1} does not end.")
        line = lines[at].rstrip("\r")
        if line.rstrip() == border:
            parts.append([])
        else:
            parts[-1].append((at + 1, _cells(line, places, at + 1)))
        at += 1
    head, body, _ = parts
    if not head:
        raise TableError(f"The table that begins in line {start + 1} has no header.")
    widths = [
        _characters([cells[index] for _, cells in (*head, *body)], after - before - 3)
        for index, (before, after) in enumerate(pairwise(places))
    ]
    columns = tuple(
        known_header([cells[index].strip() for _, cells in head], width) for index, width in enumerate(widths)
    )
    if columns == ("Field", "Value"):  # as commands of OpenStack's kind say it
        columns = ("Property", "Value")
    if len(set(columns)) != len(columns):
        raise TableError(f"Two columns of the table in line {start + 1} have the same name: {columns}.")
    return Table(columns, tuple(_rows(columns, body, widths))), at


def _characters(pieces: Sequence[str], width: int) -> int:
    """Return how many characters the longest line of a column has that is ``width`` wide.

    The real command wraps by characters, and a wide one takes two columns.
    """
    as_wide = all(display_width(piece) == len(piece) for piece in pieces)
    return width if as_wide else max(map(len, pieces))


def _cells(line: str, places: Sequence[int], number: int) -> Cells:
    """Cut a line at the bars under the border's corners, by the columns of a terminal."""
    shown: list[str] = []
    for char in line:
        width = char_width(char)
        if not width and shown:
            shown[-1] += char
        else:
            shown += [char, ""] if width == 2 else [char]
    if len(shown) < places[-1] + 1 or any(shown[place] != "|" for place in places):
        raise TableError(f"Line {number} does not fit its table: {line[:120]!r}.")
    if "".join(shown[places[-1] + 1 :]).strip():
        raise TableError(f"Line {number} goes on after its table: {line[:120]!r}.")
    return ["".join(shown[a + 1 : b - 1])[1:].rstrip() for a, b in pairwise(places)]


def _rows(
    columns: tuple[str, ...], body: Sequence[tuple[int, Cells]], widths: Sequence[int]
) -> Iterator[Row]:
    properties = columns == ("Property", "Value")
    for group, wrapped in _groups(columns, body):
        pieces = [[cells[index] for cells in group] for index in range(len(columns))]
        if properties:  # never wrapped: what has several lines has them by itself
            name, *rest = pieces[0]
            if any(rest):
                raise TableError(f"A property has a name of several lines: {name!r}.")
            yield {"Property": name, "Value": "\n".join(pieces[1])}
        else:
            cells = zip(columns, pieces, widths, strict=True)
            yield {column: joined(cell, width, wrapped=wrapped) for column, cell, width in cells}


def _groups(columns: tuple[str, ...], body: Sequence[tuple[int, Cells]]) -> Iterator[Group]:
    """Yield the lines of each row: those of a wrapped one end with a line of blanks."""
    properties = columns[0] == "Property"
    anchor = 0 if properties else _anchor(columns)
    segment: list[tuple[int, Cells]] = []
    for number, cells in body:
        if any(cells):
            segment.append((number, cells))
        elif properties:
            raise TableError(f"Line {number} is an empty row of a table of properties.")
        elif not segment:
            raise TableError(f"Line {number} ends a row that was not begun.")
        else:
            yield from _of_segment(segment, anchor, wrapped=True)
            segment = []
    yield from _of_segment(segment, anchor, wrapped=False)


def _of_segment(
    segment: Sequence[tuple[int, Cells]], anchor: int | None, *, wrapped: bool
) -> Iterator[Group]:
    """Part lines into rows. ``wrapped``: the last row is. ``anchor``: a column that each row begins with."""
    if anchor is None:
        starts = list(range(_last_start(segment) + 1 if wrapped else len(segment)))
    else:
        starts = [index for index, (_, cells) in enumerate(segment) if cells[anchor]]
        if segment and starts[:1] != [0]:
            raise TableError(f"Line {segment[0][0]} goes on with a row that was not begun.")
    for start, end in pairwise([*starts, len(segment)]):
        yield [cells for _, cells in segment[start:end]], wrapped and end == len(segment)


def _last_start(segment: Sequence[tuple[int, Cells]]) -> int:
    """Return where the wrapped row begins: at the last line that fills every column.

    :raises TableError: there is none, or one after it may be a row of its own (of a floating label).
    """
    last = max((index for index, (_, cells) in enumerate(segment) if all(cells)), default=-1)
    if last in (-1, len(segment) - 1) or any(cells[-1] and cells[-2] for _, cells in segment[last + 1 :]):
        raise TableError(
            f"Where the wrapped row begins that ends in line {segment[-1][0]} cannot be told.",
            hint="Ask again with --nowrap.",
        )
    return last


def _anchor(columns: tuple[str, ...]) -> int | None:
    """Return a column that each row fills on its first line alone, as it is never wrapped.

    One of uuids is never narrower than these; an id, or the stage of a step, is shorter than any column.
    """
    for index, name in enumerate(columns):
        if name.lower().endswith("uuid") or name in ("id", "stage"):
            return index
    return None

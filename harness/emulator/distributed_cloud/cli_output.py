"""The forms in which the command `dcmanager` prints: those of cliff, the library behind it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from harness.display_width import display_width, padded

#: What ``-f`` may be, of cliff's forms.
FORMATS: Final = ("json", "table", "value")
Row = Sequence[Any]


def listed(columns: Sequence[str], rows: Sequence[Row], form: str) -> str:
    """Return several things, a line for each."""
    if form == "json":
        return json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=2) + "\n"
    if form == "value":
        return "".join(" ".join(map(str, row)) + "\n" for row in rows)
    numbers = [bool(rows) and type(value) in (int, float) for value in rows[0]]
    return _table(columns, rows, numbers)


def shown(columns: Sequence[str], values: Row, form: str) -> str:
    """Return one thing, a line for each of its fields."""
    if form == "json":
        return json.dumps(dict(zip(columns, values, strict=True)), indent=2) + "\n"
    if form == "value":
        return "".join(f"{value}\n" for value in values)
    return _table(("Field", "Value"), list(zip(columns, values, strict=True)), (False, False))


def _table(columns: Sequence[str], rows: Sequence[Row], numbers: Sequence[bool]) -> str:
    """Return a table. ``numbers``: whether a column is one of numbers, which stand at its right."""
    cells = [[str(cell).replace("\r\n", "\n").replace("\r", " ").split("\n") for cell in row] for row in rows]
    heads = [[column] for column in columns]
    widths = [
        max(display_width(line) for row in (heads, *cells) for line in row[at]) for at in range(len(columns))
    ]
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"

    def lines(row: Sequence[Sequence[str]]) -> str:
        found = ""
        for line in range(max(map(len, row))):
            for cell, width, number in zip(row, widths, numbers, strict=True):
                text = cell[line] if line < len(cell) else ""
                found += f"| {padded(text, width, right=number)} "
            found += "|\n"
        return found

    return border + lines(heads) + border + "".join(map(lines, cells)) + border

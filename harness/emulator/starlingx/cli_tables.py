"""The tables of the `system` command: how columns get their widths, how cells wrap, prettytable's look."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from harness.display_width import display_width, padded

_UUID_WIDTH: Final = 36
#: What the widest word of a column is looked for between. The range is the real command's slip: it holds the
#: capital letters as well.
_BETWEEN_WORDS: Final = re.compile(r"[.:,;!?\\ =-_]")


class _Wrapper(textwrap.TextWrapper):
    """Breaks where the real command does: at blanks, and around some punctuation."""

    wordsep_re = re.compile(
        r"(\s+|,|=|\.|:|[^\s\w]*\w+[^0-9\W]-(?=\w+[^0-9\W])|(?<=[\w!\"'&.,?])-{2,}(?=\w))"
    )


def table(labels: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a row for each of ``rows``; nothing but an end of line where there is none.

    Cells and labels may have several lines. Columns are padded by what is seen, as prettytable does it.
    """
    cells = [[cell.split("\n") for cell in row] for row in (labels, *rows)]
    if len(cells) == 1:
        return "\n"
    widths = [
        max(display_width(line) for row in cells for line in row[column]) for column in range(len(labels))
    ]
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"
    shown = [
        "".join(
            "".join(
                f"| {padded(cell[line] if line < len(cell) else '', width)} "
                for cell, width in zip(row, widths, strict=True)
            )
            + "|\n"
            for line in range(max(map(len, row)))
        )
        for row in cells
    ]
    return border + shown[0] + border + "".join(shown[1:]) + border


def listing(
    labels: Sequence[str], fields: Sequence[str], rows: Sequence[Sequence[str]], terminal: int | None
) -> str:
    """Return a table whose columns share a ``terminal`` of so many characters; None: without wrapping.

    ``fields``: names behind the columns; that of a UUID is never narrower than one.
    """
    plain = table(labels, rows)
    if terminal is None or not rows:
        return plain
    widths = _widths(labels, fields, rows, terminal)
    heads = [_fill(label, width) for label, width in zip(labels, widths, strict=True)]
    cells = [[_cell(cell, width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    wrapped = table(heads, cells)
    return wrapped if wrapped.index("\n") <= terminal else plain


def _widths(
    labels: Sequence[str], fields: Sequence[str], rows: Sequence[Sequence[str]], terminal: int
) -> list[int]:
    """Return the columns' widths: shares by their average, but no less than the widest word needs."""
    columns = list(zip(*rows, strict=True))
    uuids = [field.lower() == "uuid" or field.endswith("uuid") for field in fields]
    average = [
        0.0 if uuid else sum(0 if cell == "None" else len(cell) for cell in column) / len(column)
        for column, uuid in zip(columns, uuids, strict=True)
    ]
    room = terminal - 3 * len(labels) - 1
    least, wanted = [], []
    for label, column, uuid, mean in zip(labels, columns, uuids, average, strict=True):
        words = [max(_BETWEEN_WORDS.split(text), key=len) for text in (*column, label)]
        least.append(_UUID_WIDTH if uuid else max(map(len, words)) + 1)
        share = int(room * mean / sum(average)) if sum(average) else 0
        wanted.append(max(least[-1], share, 0 if uuid else len(label)))
    found = list(wanted)  # each is settled in turn, with what the others take by then
    for index, low in enumerate(least):
        left = room - sum(found) + found[index]
        if found[index] > left >= low:
            found[index] = left
        if sum(found) > room:
            found[index] = low
    return found


def _fill(text: str, width: int) -> str:
    return _Wrapper(width).fill(text)


def _cell(text: str, width: int) -> str:
    """Return a cell; one that was wrapped has a blank line below it, which takes its part of the width."""
    filled = _fill(text, width)
    return filled if filled == text else f"{filled}\n{' ' * (width - 1)}"


def properties(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a table of properties and their values, which is never wrapped."""
    return table(("Property", "Value"), list(pairs))


def text_of(value: Any, *, python2: bool) -> str:
    """Return ``value`` as Python's ``str`` shows it; ``python2``: with ``u`` before the text in a list."""
    if isinstance(value, list):
        return "[" + ", ".join(_pairs(entry, "u" if python2 else "") for entry in value) + "]"
    return str(value)


def _pairs(entry: Mapping[str, str], mark: str) -> str:
    return "{" + ", ".join(f"{mark}{key!r}: {mark}{value!r}" for key, value in entry.items()) + "}"

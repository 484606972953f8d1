"""Image lists that went through a tracker: bars and corners lost, blanks or tabs between cells, lines joined.

As in the field report of devices out of sync: rulers of dashes, cells apart by tabs, ``\\{`` for ``{``. What
is left is read word by word: a row begins with a uuid and has a word for each column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from harness.controlplane.columns import EARLIER_IMAGE_COLUMNS, IMAGE_COLUMNS
from harness.controlplane.tables import Table
from harness.errors import TableError

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RULER: Final = re.compile(r"[+-]{20,}")
#: A Python list on one line, quotes respected; else a word.
_LITERAL: Final = re.compile(r"""\[(?:[^\]'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*\]""")
_WORD: Final = re.compile(rf"{_LITERAL.pattern}|\S+")


def parse_mangled_images(text: str) -> list[Table]:
    """Return the tables of `device-image-list` in a text that lost their form.

    :raises TableError: a row is not to be told from another, or has not a word for each column; the message
        has its line.
    """
    tables: list[Table] = []
    lines = [line.replace("\\{", "{").replace("\\}", "}") for line in text.splitlines()]
    at = 0
    while at < len(lines):
        if not begins_images(lines[at]):
            at += 1
            continue
        end = at + 1
        while end < len(lines) and goes_on(lines[at:end], lines[end]):
            end += 1
        tables.append(_table(lines[at:end], at + 1))
        at = end
    return tables


def begins_images(line: str) -> bool:
    """Return whether a line may be the header of an image list."""
    words = _RULER.sub(" ", line).replace("|", " ").split()
    return words[:1] == ["uuid"] and len(words) > 1 and "bitstream_type".startswith(words[1])


def goes_on(begun: Sequence[str], line: str) -> bool:
    """Return whether ``line`` may belong to the list that began with the lines ``begun``."""
    return _is_row(line) or _is_rest(begun)


def _is_row(line: str) -> bool:
    bare = line.replace("|", " ").strip()
    return _UUID.match(bare) is not None or _RULER.match(bare) is not None or not bare


def _is_rest(begun: Sequence[str]) -> bool:
    """Whether the line after these may be the second one of the header."""
    return not any(_UUID.search(line) for line in begun) and not any(
        _RULER.search(line) for line in begun[1:]
    )


def _table(lines: Sequence[str], first: int) -> Table:
    head: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, first):
        for word in _words(line, number):
            if _UUID.fullmatch(word):
                rows.append((number, []))
            (rows[-1][1] if rows else head).append(word)
    columns = _columns(head, first)
    for number, row in rows:
        if len(row) != len(columns):
            raise TableError(
                f"Line {number} has {len(row)} words for {len(columns)} columns: {' '.join(row)[:120]!r}."
            )
        _check(dict(zip(columns, row, strict=True)), number)
    return Table(columns, tuple(dict(zip(columns, row, strict=True)) for _, row in rows))


def _words(line: str, number: int) -> list[str]:
    """Return the cells of a line. Blanks within one are kept where tabs part them."""
    bare = _RULER.sub(" ", line).strip(" ")
    if "\t" in bare:
        return [cell for part in bare.split("\t") if (cell := part.strip())]
    words = _WORD.findall(bare.replace("|", " "))
    if any(word.startswith("[") and not _LITERAL.fullmatch(word) for word in words):
        raise TableError(f"A list of labels in line {number} does not end: {line[:120]!r}.")
    return words


def _columns(head: Sequence[str], first: int) -> tuple[str, ...]:
    """Return which columns the pieces of a header are of: the beginnings of all, then the rest of some."""
    for columns in (EARLIER_IMAGE_COLUMNS, IMAGE_COLUMNS):
        begun, rest = head[: len(columns)], head[len(columns) :]
        if len(begun) < len(columns):
            continue
        pairs = list(zip(columns, begun, strict=True))
        if not all(name.startswith(piece) for name, piece in pairs):
            continue
        if [name.removeprefix(piece) for name, piece in pairs if name != piece] == list(rest):
            return columns
    raise TableError(f"Line {first} is no header of an image list: {' '.join(head)[:120]!r}.")


def _check(row: dict[str, str], number: int) -> None:
    """See that each word is of the column that it was counted into. :raises TableError: one is not."""
    fits = (
        row["bitstream_type"] in ("functional", "root-key", "key-revocation")
        and row["applied"] in ("True", "False")
        and (row["applied_labels"] == "None" or row["applied_labels"].startswith("["))
        and all(row.get(name, "None") in ("True", "False", "None") for name in ("bmc", "retimer_included"))
    )
    if not fits:
        raise TableError(f"The words of line {number} are not those of an image: {' '.join(row.values())!r}.")

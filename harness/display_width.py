"""How many columns text takes on a terminal, which tables are padded by (the rule of wcwidth)."""

from __future__ import annotations

import unicodedata
from itertools import accumulate
from typing import Final

#: Categories of characters that stand on the one before: marks, and what only says how others are shown.
_NO_COLUMN: Final = ("Mn", "Me", "Cf")
_SOFT_HYPHEN: Final = "\u00ad"


def char_width(char: str) -> int:
    """Return the columns of one character: 2 of a wide one, 0 of one that stands on the one before."""
    if char.isascii() or char == _SOFT_HYPHEN:
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in _NO_COLUMN:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def display_width(text: str) -> int:
    """Return the columns of a line."""
    return len(text) if text.isascii() else sum(map(char_width, text))


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a line filled up with blanks to ``width`` columns; ``right``: the blanks stand before it."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


def cut(text: str, width: int) -> str:
    """Return the beginning of a line that fits into ``width`` columns."""
    taken = accumulate(map(char_width, text))
    return "".join(char for char, end in zip(text, taken, strict=True) if end <= width)

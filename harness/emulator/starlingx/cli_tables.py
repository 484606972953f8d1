"""The tables of the `system` command: prettytable's look, left-aligned, never wrapped.

A table that is wider than its terminal is not wrapped by the real one either; one that would fit once it is
wrapped is, which is not emulated: what is here is what `--nowrap` prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(labels: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a line for each row; nothing but its end of line where there is no row."""
    lines = [list(labels), *map(list, rows)]
    if len(lines) == 1:
        return "\n"
    widths = [max(len(line[column]) for line in lines) for column in range(len(labels))]
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    shown = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    return "\n".join([border, shown[0], border, *shown[1:], border]) + "\n"


def properties(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a table of properties and their values."""
    return table(("Property", "Value"), list(pairs))


def text_of(value: Any, *, python2: bool) -> str:
    """Return ``value`` as Python's ``str`` shows it; ``python2``: with ``u`` before the text in a list."""
    if isinstance(value, list):
        return "[" + ", ".join(_pairs(entry, "u" if python2 else "") for entry in value) + "]"
    return str(value)


def _pairs(entry: Mapping[str, str], mark: str) -> str:
    return "{" + ", ".join(f"{mark}{key!r}: {mark}{value!r}" for key, value in entry.items()) + "}"

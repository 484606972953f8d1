"""How `hil status` shows its rows: a table, what diverges beneath it; drawn in place on a terminal."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from harness.cli.form import Form
from harness.display_width import cut, display_width, padded

if TYPE_CHECKING:
    from harness.judgement.side_by_side import Row

_HEADS: Final = ("DEVICE", "WHAT", "THE SYSTEM SAYS", "THE CARD HOLDS", "VERDICT")
_CLOUD_HEADS: Final = ("DEVICE", "THE CONTROLLER SAYS", "THE SUBCLOUD SAYS", "THE CARD HOLDS", "VERDICT")
#: From the upper left corner on: each line to its end, and what is left of the screen.
_HOME, _LINE_END, _SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"


def show(rows: Sequence[Row], output: Form, *, live: bool) -> None:
    """Print rows; ``live``, where they are looked at again and again: in place on a terminal."""
    if output is Form.JSON:
        typer.echo(json.dumps([_plain(row) for row in rows]))
    elif live and sys.stdout.isatty():
        _draw([f"{time.strftime('%H:%M:%S')}  {_counted(rows)}", "", *_lines(rows)])
    else:
        for line in _lines(rows):
            typer.echo(line)


def _plain(row: Row) -> dict[str, Any]:
    """Return a row as data (docs/distributed-cloud.md has its fields)."""
    return {
        "device": row.device,
        "what": row.what,
        "controller": row.controller,
        "said": row.said,
        "truth": row.truth,
        "verdict": row.verdict.value,
    }


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield all rows as one table; of a cloud a table of its cards, and what diverges beneath it."""
    from harness.judgement.side_by_side import FIRMWARE

    cards = [row for row in rows if row.what == FIRMWARE]
    if not cards:
        yield from _table(_HEADS, [(r.device, r.what, r.said, r.truth, r.verdict.value) for r in rows])
        return
    cells = [(r.device, r.controller, r.said, r.truth, r.verdict.value) for r in cards]
    yield from _table(_CLOUD_HEADS, cells)
    for row in rows:
        if row.what != FIRMWARE and row.verdict.value != "MATCH":
            yield ""
            yield f"{row.verdict.value}  {row.device}  {row.what}"
            told = (("controller says", row.controller), ("system says", row.said), ("true is", row.truth))
            yield from (f"  {who:<16} {text}" for who, text in told if text)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    table = [heads, *rows]
    widths = [max(display_width(cells[column]) for cells in table) for column in range(len(heads))]
    for cells in table:
        yield "  ".join(padded(cell, width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _counted(rows: Sequence[Row]) -> str:
    bad = sum(row.diverges for row in rows)
    return f"{len({row.device for row in rows})} devices and systems, {bad} of {len(rows)} statements diverge"


def _draw(lines: Sequence[str]) -> None:
    """Draw what fits on the screen, over what was there."""
    width, height = shutil.get_terminal_size()
    shown = list(lines[: height - 1])
    if len(lines) > len(shown):
        shown[-1] = f"... {len(lines) - len(shown) + 1} more lines: hil status without --every has all"
    sys.stdout.write(_HOME + "".join(f"{cut(line, width)}{_LINE_END}\n" for line in shown) + _SCREEN_END)
    sys.stdout.flush()

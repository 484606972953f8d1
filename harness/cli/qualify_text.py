"""A kill matrix for people: each defect with what detected it, then what was missed, and false alarms."""

from __future__ import annotations

import io
from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.report.printable import printable
from harness.scenarios.kill_matrix import KillMatrix, Row, Status

_STYLES: dict[Status, str] = {"detected": "", "missed": "bold red", "blocked": "yellow"}


def render(matrix: KillMatrix, *, colour: bool, width: int = 120) -> str:
    """Return the table of a qualification, and what there is to say of it."""
    written = io.StringIO()
    console = Console(
        file=written, width=width, force_terminal=colour, no_color=not colour, highlight=False, emoji=False
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("defect", "kind", "predicted", "detected by"):
        table.add_column(title, overflow="fold", no_wrap=title != "detected by")
    for row in matrix.rows:
        if row.status == "not-tried":
            continue
        cells = map(Text, (row.name, row.kind, row.predicts, printable(_by(row))))
        table.add_row(*cells, style=_STYLES[row.status])
    console.print(table)
    for line in _closing(matrix):
        console.print(printable(line), markup=False)
    return "\n".join(line.rstrip() for line in written.getvalue().rstrip().splitlines())


def _by(row: Row) -> str:
    if row.detected_by:
        more = len(row.detected_by) - 1
        return row.detected_by[0].rpartition("::")[2] + (f" and {more} more" if more else "")
    if row.status == "blocked":
        why = row.trial.trouble if row.trial is not None else ""
        return f"BLOCKED: {(why or 'scenarios gave no result').splitlines()[0][:200]}"
    found = Counter(word for each in (row.trial.seen if row.trial else ()) for word in each.unstated)
    others = ", ".join(f"{word} {count}" for word, count in found.items())
    return "MISSED" + (f" (found instead: {others})" if others else "")


def _closing(matrix: KillMatrix) -> list[str]:
    lines = [""]
    counts = Counter(row.status for row in matrix.rows)
    told = ", ".join(f"{counts[status]} {status}" for status in _STYLES)
    if counts["not-tried"]:
        told += f", {counts['not-tried']} not tried yet"
    tried = sum(len(trial.seen) for trial in matrix.corrected)
    for alarm in matrix.false_alarms:
        lines.append(f"FALSE ALARM {alarm.scenario}: {'; '.join(alarm.reasons)}")
    for each in matrix.without_result:
        lines.append(f"{each.state} {each.scenario}: {'; '.join(each.reasons)}")
    lines += [f"NOT RUN: {trouble}" for trouble in matrix.troubles]
    lines.append(
        f"{_counted(len(matrix.rows), 'defect')}: {told}. Without any, {_counted(tried, 'scenario')}: "
        f"{_counted(len(matrix.false_alarms), 'false alarm')}. {matrix.seconds:.0f} s."
    )
    if matrix.interrupted:
        lines.append("Interrupted: the same command goes on with what is missing.")
    return lines


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"

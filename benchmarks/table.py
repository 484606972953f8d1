"""The table of `make bench`, for people and as JSON."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, Samples

#: A process that gets less of a core than this has others beside it.
_QUIET = 0.9
_HEAD = ("goal", "result", "lowest..highest", "peer or limit in the same run", "ratio", "wanted", "")


def machine() -> dict[str, Any]:
    """Return what the numbers depend on: processor, Python, and how busy the machine is."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "load": [round(load, 2) for load in os.getloadavg()],
        "share": round(_share(), 2),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def _share(seconds: float = 0.3) -> float:
    """Return how much of a core one process gets now: 1 where nobody else wants it."""
    began, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        pass
    return (time.process_time() - used) / (time.perf_counter() - began)


def as_text(rows: Sequence[Row], before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return the table and what it was measured on."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEAD))]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"{row.goal}: {row.what}{'; ' + row.note if row.note else ''}" for row in rows]
    met = sum(row.met for row in rows)
    return "\n".join(
        [
            *(line.rstrip() for line in lines),
            "",
            *notes,
            "",
            f"{met} of {len(rows)} goals met, {before['time']}, {before['cores']} cores ({before['cpu']}), "
            f"Python {before['python']}, load {before['load'][0]:g} before and {after['load'][0]:g} after.",
            f"One process got {before['share']:.0%} of a core before and {after['share']:.0%} after"
            + (
                "."
                if min(before["share"], after["share"]) >= _QUIET
                else ": times are those of a busy machine."
            ),
            "Results are medians, ratios are taken within a round; who else is busy shows in the spread.",
        ]
    )


def _cells(row: Row) -> tuple[str, ...]:
    ratio = row.ratio
    peer = f"{row.peer}: {_number(row.peer_result.median)} {row.unit}" if row.peer_result else row.peer
    return (
        row.goal,
        f"{_number(row.result.median)} {row.unit}",
        _spread(row.result),
        peer,
        f"{ratio.median:.2f}" if ratio else "",
        row.limit_text,
        _met(row),
    )


def _met(row: Row) -> str:
    if row.met:
        return "met"
    # On a busy machine the run that others disturbed least may be the only one that says something.
    return "NOT MET, lowest is" if row.judged.lowest <= row.limit else "NOT MET"


def _spread(samples: Samples) -> str:
    if len(samples.values) == 1:
        return "one run"
    return f"{_number(samples.lowest)}..{_number(samples.highest)} ({len(samples.values)})"


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"

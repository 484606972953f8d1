"""What it costs to keep evidence: an operation's records on the disk, beside the disk's own fsync."""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.judging import history
from benchmarks.rows import Row, Samples, seconds_of
from harness.judgement.records import Intent, Record
from harness.record.history import SYNCED, History

_OPERATIONS = 200
_LINE = b"x" * 1000 + b"\n"
#: Milliseconds that an operation's evidence may take beyond the slowest usual fsync.
_OVER = 0.5


def measure(rounds: int) -> list[Row]:
    """Return the row: milliseconds of one operation over the p95 of a line written and synced alone."""
    records = [r for r in history(_OPERATIONS) if not isinstance(r, SYNCED) or isinstance(r, Intent)]
    with tempfile.TemporaryDirectory(prefix="hil-evidence-", dir=Path.cwd()) as name:
        taken = [_round(Path(name), number, records) for number in range(rounds)]
    kept, synced = (Samples(tuple(values)) for values in zip(*taken, strict=True))
    return [
        Row(
            "evidence",
            f"the records of an operation ({len(records) / _OPERATIONS:.1f} lines, one of them synced)",
            "ms",
            kept.minus(synced),
            _OVER,
            peer="p95 of a line that is written and synced",
            peer_result=synced,
            note=f"an operation whole: {kept.median:.2f} ms",
        )
    ]


def _round(folder: Path, number: int, records: list[Record]) -> tuple[float, float]:
    """Return the milliseconds of an operation, and the p95 of a synced line, taken in turn."""
    written = History(folder / f"history{number}.jsonl")
    fresh = [replace(record, seq=0, time=0.0) for record in records]
    synced: list[float] = []
    descriptor = os.open(folder / f"lines{number}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    spent = 0.0
    for record in fresh:
        if isinstance(record, Intent):
            synced.append(seconds_of(lambda: _write(descriptor)))
        spent += seconds_of(lambda record=record: written.add(record))  # type: ignore[misc]
    os.close(descriptor)
    written.close()
    p95 = statistics.quantiles(synced, n=20)[-1]
    return spent / _OPERATIONS * 1000, p95 * 1000


def _write(descriptor: int) -> None:
    os.write(descriptor, _LINE)
    os.fsync(descriptor)

"""What a lease costs: taken durably, and checked before a write, beside a bare durable insert of SQLite."""

from __future__ import annotations

import sqlite3
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.rows import Row, Samples, in_turn
from harness.leases.owner import this_process
from harness.leases.store import LeaseStore

#: One act of each kind is too short to be timed alone.
_TIMES = 20


def measure(rounds: int) -> list[Row]:
    """Return the rows; both databases are in one folder."""
    with TemporaryDirectory() as folder, LeaseStore(f"sqlite:///{folder}/leases.sqlite") as store:
        bare = sqlite3.connect(Path(folder, "bare.sqlite"), isolation_level=None)
        for words in ("journal_mode = WAL", "synchronous = FULL"):
            bare.execute(f"PRAGMA {words}")
        bare.execute("CREATE TABLE leases (card TEXT PRIMARY KEY, token INTEGER)")
        owner, cards = this_process("benchmark"), count()

        def acquire() -> None:
            for number in range(_TIMES):
                store.acquire(f"card{next(cards)}", f"one/card{number}", owner, "benchmark", 60)

        held = store.acquire("held", "one/held", owner, "benchmark", 60)

        def check() -> None:
            for _ in range(_TIMES):
                store.renew(held)

        def write() -> None:
            for _ in range(_TIMES):
                bare.execute("INSERT INTO leases VALUES (?, 1)", (f"card{next(cards)}",))

        acquired, checked, written = in_turn((acquire, check, write), rounds, warm_up=1)
        bare.close()
    peer = _each(written)
    return [
        _row("lease, taken", "a lease of a card, durable in SQLite", acquired, 5, peer),
        _row("lease, check", "its token before a write, which renews it", checked, 3, peer),
    ]


def _row(goal: str, what: str, result: Samples, limit: float, peer: Samples) -> Row:
    return Row(goal, what, "ms", _each(result), limit, peer="a bare durable insert", peer_result=peer)


def _each(samples: Samples) -> Samples:
    return samples.scaled(1 / _TIMES)

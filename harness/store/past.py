"""Asks the index: which runs there were, and how a scenario went on a device, run after run."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, delete, func, select

from harness.record.runs import is_held
from harness.store.asking import asked
from harness.store.tables import RUNS, SCENARIOS

_DAY: Final = 86_400.0
#: So many courses are shown where nothing narrows them.
COURSES: Final = 200
#: What says something about the subject: a lab that failed is no result of a scenario.
_RESULTS: Final = ("as-stated", "not-as-stated")


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run. ``state``: running, finished or interrupted. ``states``: state -> how many scenarios."""

    id: int
    run: str
    machine: str
    folder: str
    lab: str
    state: str
    began: float
    ended: float | None
    states: dict[str, int]


@dataclass(frozen=True, slots=True)
class PastResult:
    """How a scenario ended in one run."""

    run: str
    machine: str
    began: float
    state: str
    outcome: str
    worst: str
    reason: str


@dataclass(frozen=True, slots=True)
class Course:
    """How one scenario went on one device of a lab, the latest first."""

    scenario: str
    device: str
    lab: str
    results: tuple[PastResult, ...]

    @property
    def flaky(self) -> bool:
        """Whether it went both ways among these runs; what gave no result does not count."""
        return len({result.state for result in self.results if result.state in _RESULTS}) > 1


def past_runs(engine: Engine, limit: int = 20) -> list[PastRun]:
    """Return the latest runs, the latest first. :raises InfrastructureError: the index does not answer."""

    def read(connection: Any) -> list[PastRun]:
        rows = connection.execute(select(RUNS).order_by(RUNS.c.began.desc(), RUNS.c.id.desc()).limit(limit))
        found = rows.mappings().all()
        counted = (
            select(SCENARIOS.c.run_id, SCENARIOS.c.state, func.count())
            .where(SCENARIOS.c.run_id.in_([row["id"] for row in found]))
            .group_by(SCENARIOS.c.run_id, SCENARIOS.c.state)
            .order_by(SCENARIOS.c.state)
        )
        states: dict[int, dict[str, int]] = {}
        for run, state, count in connection.execute(counted):
            states.setdefault(run, {})[state] = count
        return [_run(row, states.get(row["id"], {})) for row in found]

    return asked(engine, read)


def _run(row: Any, states: dict[str, int]) -> PastRun:
    state, folder = row["state"], Path(row["folder"])
    own = row["machine"] == socket.gethostname()
    if state == "running" and own and (not folder.exists() or not is_held(folder)):
        state = "interrupted"  # who recorded it was killed
    kept = {name: row[name] for name in ("id", "run", "machine", "folder", "lab", "began", "ended")}
    return PastRun(**kept, state=state, states=states)


def courses(
    engine: Engine, words: Sequence[str] = (), *, device: str = "", last: int = 10, limit: int = COURSES
) -> list[Course]:
    """Return how scenarios went, those first that ran last.

    :param words: parts that a scenario's name must have. :param device: only on this card; empty: on all.
    :param last: results of each. :param limit: so many scenarios at most.
    :raises InfrastructureError: the index does not answer.
    """

    def read(connection: Any) -> list[Course]:
        order = (SCENARIOS.c.began.desc(), SCENARIOS.c.id.desc())
        key = (SCENARIOS.c.scenario, SCENARIOS.c.device, RUNS.c.lab)
        number = func.row_number().over(partition_by=key, order_by=order).label("number")
        wanted = select(SCENARIOS, RUNS.c.run, RUNS.c.machine, RUNS.c.lab, number).join(RUNS)
        for word in words:
            wanted = wanted.where(SCENARIOS.c.scenario.contains(word, autoescape=True))
        if device:
            wanted = wanted.where(SCENARIOS.c.device == device)
        ranked = wanted.subquery()
        latest = select(ranked).where(ranked.c.number <= last)
        latest = latest.order_by(ranked.c.began.desc(), ranked.c.id.desc())
        found: dict[tuple[str, str, str], list[PastResult]] = {}
        for row in connection.execute(latest).mappings():
            name = (row["scenario"], row["device"], row["lab"])
            if name in found or len(found) < limit:
                found.setdefault(name, []).append(_result(row))
        return [Course(*name, tuple(results)) for name, results in found.items()]

    return asked(engine, read)


def _result(row: Any) -> PastResult:
    return PastResult(
        row["run"],
        row["machine"],
        row["began"],
        row["state"],
        row["outcome"] or "",
        row["worst"] or "",
        row["reason"],
    )


def went_both_ways(engine: Engine, lab: str, days: float = 30.0) -> set[str]:
    """Return the scenarios of a lab that were as stated and not as stated within so many days.

    :raises InfrastructureError: the index does not answer.
    """

    def read(connection: Any) -> set[str]:
        since = (SCENARIOS.c.began > time.time() - days * _DAY) & (RUNS.c.lab == lab)
        wanted = (
            select(SCENARIOS.c.scenario)
            .join(RUNS)
            .where(since & SCENARIOS.c.state.in_(_RESULTS))
            .group_by(SCENARIOS.c.scenario, SCENARIOS.c.device)
            .having(func.count(SCENARIOS.c.state.distinct()) > 1)
        )
        return set(connection.scalars(wanted))

    return asked(engine, read)


def older_than(engine: Engine, days: float) -> list[PastRun]:
    """Return the runs that began more than so many days ago, and are over; the oldest first."""
    runs = past_runs(engine, limit=1_000_000)
    before = time.time() - days * _DAY
    return [run for run in reversed(runs) if run.began < before and run.state != "running"]


def forget(engine: Engine, runs: Sequence[PastRun]) -> None:
    """Take runs out of the index, with all that belongs to them."""

    def drop(connection: Any) -> None:
        connection.execute(delete(RUNS).where(RUNS.c.id.in_([run.id for run in runs])))

    asked(engine, drop)

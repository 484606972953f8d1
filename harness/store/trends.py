"""Asks the index what is new: how devices fare, which reports diverged, how days went."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Engine, func, select

from harness.store.asking import asked
from harness.store.tables import RUNS, SCENARIOS, VERDICTS

_DAY: Final = 86_400.0
_COURSE: Final = 20
#: Ends of a scenario after which nobody knows what state its card is in.
_SUSPECT: Final = ("INFRA", "BUG", "interrupted")


@dataclass(frozen=True, slots=True)
class Device:
    """A card, and the states of its latest scenarios, the latest last.

    ``health``: as it is kept; where it is not, as its last scenario left it: good, suspect (the lab failed,
    or the run was cut off) or quarantined. ``reason``: why it is not good.
    """

    device: str
    lab: str
    course: tuple[str, ...]
    health: str
    reason: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """One report that did not match, with when its scenario began."""

    began: float
    run: str
    scenario: str
    device: str
    kind: str
    reporter: str
    claimed: str
    truth: str
    as_stated: bool


@dataclass(frozen=True, slots=True)
class Day:
    """How many scenarios of a day ended how. ``day``: as in 2026-11-30, by this machine's time."""

    day: str
    states: dict[str, int]


def devices_of(engine: Engine, kept: Mapping[tuple[str, str], tuple[str, str]] | None = None) -> list[Device]:
    """Return the devices that the index knows, by name.

    :param kept: lab and device -> the health that is kept of it, and why it is not good.
    :raises InfrastructureError: it does not answer.
    """
    known = kept or {}

    def read(connection: Any) -> list[Device]:
        order = (SCENARIOS.c.began.desc(), SCENARIOS.c.id.desc())
        number = func.row_number().over(partition_by=(RUNS.c.lab, SCENARIOS.c.device), order_by=order)
        ranked = (
            select(
                RUNS.c.lab, SCENARIOS.c.device, SCENARIOS.c.state, SCENARIOS.c.reason, number.label("number")
            )
            .join(RUNS)
            .where(SCENARIOS.c.device != "")
            .subquery()
        )
        latest = select(ranked).where(ranked.c.number <= _COURSE)
        found: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for row in connection.execute(latest.order_by(ranked.c.device, ranked.c.lab, ranked.c.number.desc())):
            found[row.device, row.lab].append((row.state, row.reason))
        return [
            Device(
                device,
                lab,
                tuple(state for state, _ in ended),
                *(known.get((lab, device)) or _health(*ended[-1])),
            )
            for (device, lab), ended in found.items()
        ]

    return asked(engine, read)


def _health(state: str, reason: str) -> tuple[str, str]:
    """Return the health that the end of a scenario speaks of, and why it is not good."""
    why = reason.partition("\n")[0]
    if state == "BLOCKED" and "quarantined" in why:
        return "quarantined", why
    return ("suspect", why) if state in _SUSPECT else ("good", "")


def newest_divergences(engine: Engine, limit: int) -> list[Divergence]:
    """Return the latest divergences, the latest first. :raises InfrastructureError: no answer."""

    def read(connection: Any) -> list[Divergence]:
        wanted = (
            select(
                SCENARIOS.c.began,
                RUNS.c.run,
                SCENARIOS.c.scenario,
                SCENARIOS.c.device,
                *(VERDICTS.c[name] for name in ("kind", "reporter", "claimed", "truth", "as_stated")),
            )
            .select_from(VERDICTS)
            .join(SCENARIOS)
            .join(RUNS)
            .where(VERDICTS.c.kind != "MATCH")
            .order_by(SCENARIOS.c.began.desc(), VERDICTS.c.id.desc())
            .limit(limit)
        )
        return [Divergence(*row) for row in connection.execute(wanted)]

    return asked(engine, read)


def results_by_day(engine: Engine, days: int, now: float) -> list[Day]:
    """Return the last ``days`` on which anything ran, up to ``now``, the latest last."""

    def read(connection: Any) -> list[Day]:
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        wanted = select(SCENARIOS.c.began, SCENARIOS.c.state).where(SCENARIOS.c.began > now - days * _DAY)
        for began, state in connection.execute(wanted):
            counts[time.strftime("%Y-%m-%d", time.localtime(began))][state] += 1
        return [Day(day, dict(states)) for day, states in sorted(counts.items())]

    return asked(engine, read)

"""One goal, what was measured for it, and whether it is met: medians of repeated runs, ratios in one run."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Samples:
    """The results of repeated runs, in the order in which they were taken."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    @property
    def lowest(self) -> float:
        """The one that others on the machine disturbed least."""
        return min(self.values)

    @property
    def highest(self) -> float:
        """The worst one."""
        return max(self.values)

    def over(self, peer: Samples) -> Samples:
        """Return the ratios to ``peer``: round by round where both were taken in the same rounds."""
        if len(self.values) == len(peer.values):
            return Samples(tuple(a / b for a, b in zip(self.values, peer.values, strict=True)))
        return Samples((self.median / peer.median,))

    def minus(self, other: Samples) -> Samples:
        """Return the differences, round by round."""
        return Samples(tuple(a - b for a, b in zip(self.values, other.values, strict=True)))

    def scaled(self, factor: float) -> Samples:
        """Return the same in another unit."""
        return Samples(tuple(value * factor for value in self.values))

    def to_json(self) -> dict[str, Any]:
        """Return median, lowest, highest and every value."""
        return {
            "median": self.median,
            "lowest": self.lowest,
            "highest": self.highest,
            "values": list(self.values),
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    ``peer``: what the result is compared with, measured in the same run. ``limit`` holds for the median
    of ``result`` (in ``unit``) or, with ``of="ratio"``, of the ratio to the peer. ``note``: for people.
    """

    goal: str
    what: str
    unit: Literal["ms", "s", "MiB"]
    result: Samples
    limit: float
    of: Literal["result", "ratio"] = "result"
    peer: str = ""
    peer_result: Samples | None = None
    note: str = ""

    @property
    def ratio(self) -> Samples | None:
        """The result over the peer's; None where there is no peer."""
        return self.result.over(self.peer_result) if self.peer_result is not None else None

    @property
    def judged(self) -> Samples:
        """What the limit holds for."""
        ratio = self.ratio
        if self.of == "result":
            return self.result
        assert ratio is not None, f"{self.goal}: a limit on a ratio needs a peer"
        return ratio

    @property
    def met(self) -> bool:
        """Whether the median keeps the limit."""
        return self.judged.median <= self.limit

    @property
    def limit_text(self) -> str:
        """The limit as people read it, such as ``<= 20 ms`` or ``<= 1.1 x``."""
        return f"<= {self.limit:g} {self.unit if self.of == 'result' else 'x'}"

    def to_json(self) -> dict[str, Any]:
        """Return everything that the table shows, and every single value."""
        return {
            "goal": self.goal,
            "what": self.what,
            "unit": self.unit,
            "result": self.result.to_json(),
            "peer": self.peer,
            "peer_result": self.peer_result.to_json() if self.peer_result else None,
            "ratio": self.ratio.to_json() if self.ratio else None,
            "limit": self.limit_text,
            "met": self.met,
            "note": self.note,
        }


def seconds_of(act: Callable[[], object]) -> float:
    """Return the seconds that ``act`` takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def processor_note(act: Callable[[], object], times: int = 3) -> str:
    """Say how much processor time ``act`` and its processes take: what a busy machine changes least."""
    taken = []
    for _ in range(times):
        before = os.times()
        act()
        taken.append(sum(os.times()[:4]) - sum(before[:4]))
    return f"processor time {min(taken) * 1000:.0f} ms"


def in_turn(acts: Sequence[Callable[[], object]], rounds: int, *, warm_up: int = 1) -> list[Samples]:
    """Time several acts one after the other, again and again; return the milliseconds of each.

    In turn, so that what else goes on on the machine disturbs all of them alike.
    """
    for _ in range(warm_up):
        for act in acts:
            act()
    taken: list[list[float]] = [[] for _ in acts]
    for _ in range(rounds):
        for times, act in zip(taken, acts, strict=True):
            times.append(seconds_of(act) * 1000)
    return [Samples(tuple(times)) for times in taken]

"""Finds where along a row a change lies, from runs that may be flaky: a Bayesian binary search. Pure.

Runs before the change show what is looked for at one rate, those from it on at another one. Neither rate is
known, only that the second is higher: both ends are measured first, and every run since tells of the rates
too. For each place that the change may have, the rates are integrated over (with Jeffreys' prior), so that no
rate is taken for more certain than its runs make it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import Final

#: The ends must be told apart with this probability before anything between them is looked at.
APART: Final = 0.99
#: The normal quantile of a two-sided interval of 95 %.
_Z95: Final = 1.959964
#: Rates at which evidence is summed up, so placed that each stands for as much of Jeffreys' prior: most
#: things happen nearly always, or nearly never.
_GRID: Final = 128
_RATES: Final = tuple(math.sin((at + 0.5) / _GRID * math.pi / 2) ** 2 for at in range(_GRID))
_LOGS: Final = tuple((math.log(rate), math.log1p(-rate)) for rate in _RATES)


@dataclass(slots=True)
class Count:
    """Runs of one point: ``shown`` of ``runs`` showed what is looked for."""

    shown: int = 0
    runs: int = 0

    def add(self, shown: bool) -> None:
        """Count one more run."""
        self.shown += shown
        self.runs += 1

    @property
    def interval(self) -> tuple[float, float]:
        """The rate's 95 % interval (Wilson's score)."""
        if not self.runs:
            return 0.0, 1.0
        rate, n, zz = self.shown / self.runs, self.runs, _Z95**2
        middle = (rate + zz / (2 * n)) / (1 + zz / n)
        half = _Z95 / (1 + zz / n) * math.sqrt(rate * (1 - rate) / n + zz / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)


def certainly_more(bad: Count, good: Count) -> float:
    """Return the probability that what is looked for shows more often at the bad end than at the good one."""
    together = _evidence(good) + _evidence(bad)
    return math.exp(_ordered_evidence(good, bad) + math.log(0.5) - together)


@dataclass
class Search:
    """A search along ``size`` points, the first good and the last bad. ``counts``: runs of each point.

    ``untestable``: points whose runs say nothing.
    """

    size: int
    counts: list[Count] = field(default_factory=list)
    untestable: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.counts = self.counts or [Count() for _ in range(self.size)]

    def probabilities(self) -> list[float]:
        """Return for each point how probably it is the first bad one; the first point never is."""
        logs = [_ordered_evidence(*self._split(at)) for at in range(1, self.size)]
        most = max(logs)
        weights = [math.exp(each - most) for each in logs]
        total = sum(weights)
        return [0.0, *(each / total for each in weights)]

    def _split(self, at: int) -> tuple[Count, Count]:
        """Return the runs of all points before ``at``, and of it and those behind it."""
        parts = self.counts[:at], self.counts[at:]
        low, high = (Count(sum(c.shown for c in part), sum(c.runs for c in part)) for part in parts)
        return low, high

    def likeliest(self) -> tuple[int, float]:
        """Return the point that is most probably the first bad one, and how probable that is."""
        found = self.probabilities()
        at = max(range(self.size), key=found.__getitem__)
        return at, found[at]

    def next_point(self) -> int | None:
        """Return the point whose next run tells most of where the change is.

        None: there is none between the ends that can be tried.
        """
        low, high = ((each.shown + 0.5) / (each.runs + 1) for each in self._split(self.likeliest()[0]))
        before, most, found = 0.0, -1.0, None
        for at, each in enumerate(self.probabilities()[:-1]):
            before += each  # the probability that the point is bad
            chance = before * high + (1 - before) * low
            told = _entropy(chance) - before * _entropy(high) - (1 - before) * _entropy(low)
            if at and at not in self.untestable and told > most:
                most, found = told, at
        return found

    def range_of(self, confidence: float) -> list[int]:
        """Return the fewest points among which the first bad one is with that probability, in order."""
        found = self.probabilities()
        chosen: list[int] = []
        for at in sorted(range(1, self.size), key=lambda at: -found[at]):
            chosen.append(at)
            if sum(found[each] for each in chosen) >= confidence:
                break
        return sorted(chosen)


@lru_cache(maxsize=4096)
def _likelihoods(shown: int, failed: int) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Return the likelihood of runs at each rate, below each rate, and the logarithm of their scale."""
    logs = [shown * log + failed * other for log, other in _LOGS]
    most = max(logs)
    values = tuple(math.exp(each - most) for each in logs)
    lower = accumulate(values, initial=0.0)
    return values, tuple(below + one / 2 for below, one in zip(lower, values, strict=False)), most


@lru_cache(maxsize=65536)
def _ordered(low_shown: int, low_failed: int, high_shown: int, high_failed: int) -> float:
    _, below, scale = _likelihoods(low_shown, low_failed)
    values, _, other = _likelihoods(high_shown, high_failed)
    return math.log(sum(map(mul, values, below)) * 2 / _GRID**2) + scale + other


def _evidence(count: Count) -> float:
    """Return the logarithm of the probability of the runs of one rate, whatever it is."""
    values, _, scale = _likelihoods(count.shown, count.runs - count.shown)
    return math.log(sum(values) / _GRID) + scale


def _ordered_evidence(low: Count, high: Count) -> float:
    """Return the same of the runs of two rates of which the second is the higher one."""
    return _ordered(low.shown, low.runs - low.shown, high.shown, high.runs - high.shown)


def _entropy(chance: float) -> float:
    return sum(-each * math.log(each) for each in (chance, 1 - chance) if each > 0)


@dataclass(frozen=True, slots=True)
class Step:
    """One run of a search: what it showed (None: nothing), and what is most probable since."""

    point: int
    shown: bool | None
    likeliest: int
    probability: float


def measure_ends(search: Search, look: Callable[[int], bool | None], runs: int) -> Iterator[Step]:
    """Run both ends ``runs`` times each, and up to eight times as often while they cannot be told apart."""
    good, bad = 0, search.size - 1
    for number in range(8 * runs):
        apart = certainly_more(search.counts[bad], search.counts[good]) >= APART
        if number >= runs and apart:
            return
        for point in (good, bad):
            shown = look(point)
            if shown is not None:
                search.counts[point].add(shown)
            yield Step(point, shown, *search.likeliest())


def bisect(
    search: Search, look: Callable[[int], bool | None], *, confidence: float, runs: int
) -> Iterator[Step]:
    """Run points between the ends until one is the first bad one with the probability ``confidence``.

    It ends before that where ``runs`` are used up, or no point is left that can be tried.

    :param look: runs a point once: whether it shows what is looked for; None where it says nothing.
    """
    for _ in range(runs):
        point = search.next_point()
        if search.likeliest()[1] >= confidence or point is None:
            return
        shown = look(point)
        if shown is None:
            search.untestable.add(point)
        else:
            search.counts[point].add(shown)
        yield Step(point, shown, *search.likeliest())

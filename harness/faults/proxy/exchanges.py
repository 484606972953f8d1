"""What went through a proxy: every request, its answer, and what was done to it; the newest are kept."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from harness.faults.proxy.gate import Request
from harness.faults.registry_points import Step

_KEPT = 20_000
_LONGEST_TARGET = 1024


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer.

    ``status``: 0 where none came. ``received`` and ``sent``: bytes of the request's body that were passed
    on, and of the answer's. ``started``, ``ended``: seconds since the epoch; ``ended`` is None while it goes
    on. ``done``: what was done to it, and what went wrong with it; empty where it simply passed.
    """

    number: int
    connection: int
    method: str
    target: str
    step: Step
    repository: str
    started: float
    status: int = 0
    received: int = 0
    sent: int = 0
    ended: float | None = None
    done: str = ""


class ExchangeLog:
    """The exchanges of one proxy, from all of its threads."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._lock = threading.Lock()
        self._kept = kept
        self._exchanges: dict[int, Exchange] = {}

    def begin(self, request: Request) -> None:
        """Note that ``request`` has come."""
        begun = Exchange(
            request.number,
            request.connection,
            request.method,
            request.target[:_LONGEST_TARGET],
            request.step,
            request.repository,
            time.time(),
        )
        with self._lock:
            self._exchanges[request.number] = begun
            while len(self._exchanges) > self._kept:
                del self._exchanges[next(iter(self._exchanges))]

    def note(self, number: int, *, done: str = "", **changes: Any) -> None:
        """Change an exchange; ``done`` is added to what was done to it before."""
        with self._lock:
            if (found := self._exchanges.get(number)) is not None:
                together = "; ".join(filter(None, (found.done, done)))
                self._exchanges[number] = replace(found, done=together, **changes)

    def since(self, number: int) -> tuple[Exchange, ...]:
        """Return what is kept of the exchanges after the ``number``-th, in the order in which they came."""
        with self._lock:
            return tuple(exchange for exchange in self._exchanges.values() if exchange.number > number)

    def steps(self, number: int) -> Counter[Step]:
        """Return how often each step came after the ``number``-th exchange, in order of the first time."""
        return Counter(exchange.step for exchange in self.since(number))

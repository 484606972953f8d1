"""Something to be explored by processes that tests start: sums, which say that they are at most so much."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import ConfigurationError, InfrastructureError
from harness.scenarios.exploration import Disagreement, Explorable

#: Numbers at which a sum does something else than to add.
FAILS, ENDS, STAYS = 13, 14, 15
NO_LIMIT = 1 << 60


@dataclass(frozen=True)
class Add:
    """Adds to a sum. ``wear``: what it costs."""

    number: int
    wear: int = 0


@dataclass
class Sum:
    """Says that it is at most ``limit``, and writes down what is added."""

    limit: int
    log: Path
    steps: list[Add] = field(default_factory=list)
    updates: int = 0

    def do(self, step: Add) -> None:
        """Add; or fail; or end the process; or do nothing else any more until there is a signal."""
        if step.number == FAILS:
            raise InfrastructureError("the lab is gone", hint="look for it")
        if step.number == ENDS:
            os.write(2, b"these are its last words\n")
            os._exit(9)
        self.steps.append(step)
        self.updates += step.wear
        with self.log.open("a") as file:
            file.write(f"{step.number}\n")
        if step.number == STAYS:
            signal.pause()
        if sum(each.number for each in self.steps) > self.limit:
            raise Disagreement(f"the sum is more than {self.limit}")

    def close(self) -> None:
        """Do nothing more."""


@contextmanager
def opened(
    logs: Path, *, limit: int = NO_LIMIT, only_one: bool = False, number: int = 2
) -> Iterator[Explorable[Add]]:
    """Give sums; what is added in one process is in the file ``logs/PID``.

    :param only_one: only one of several processes has the limit. :param number: is added as well.
    :raises ConfigurationError: there is no folder ``logs``.
    """
    if not logs.is_dir():
        raise ConfigurationError(f"there is no {logs.name}", hint="make it")
    if only_one:
        try:
            (logs / "first").touch(exist_ok=False)
        except FileExistsError:
            limit = NO_LIMIT
    log = logs / str(os.getpid())
    rules = ((Add(1), Add(number)), (Add(3, wear=1),))
    yield Explorable(lambda: Sum(limit, log), None, rules, length=20)

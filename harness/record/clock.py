"""The harness's time: the wall clock's when the process first used it, and steady from there on."""

from __future__ import annotations

import time
from typing import Final

#: Goes on while the machine sleeps, where there is such a clock.
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SteadyClock:
    """Returns seconds since the epoch that never go back nor jump.

    Somebody may set the wall clock amid a run: how long something lasted, and how late a report was, is what
    lies between two times.
    """

    def __init__(self) -> None:
        steady = time.clock_gettime(_STEADY)
        self._ahead = time.time() - steady

    def __call__(self) -> float:
        """Return the time."""
        return time.clock_gettime(_STEADY) + self._ahead


#: One for all histories of the process, so that their records can be put in order.
HARNESS_TIME: Final = SteadyClock()

"""Remembers which hosts let us wait in vain, so that a silent one costs its timeout only once."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

from harness.errors import UnreachableError
from harness.hosts.access import Access

#: A failure that took longer than this was silence; a refusal comes at once.
_SILENCE: Final = 5.0
#: Seconds before a silent host is asked again, for as long as it was silent once; twice as many each time.
_AGAIN: Final = 30.0
#: Seconds that a host which was silent may take to answer at all when it is asked again.
PROBE: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Silent:
    """Why a host was not reached; when it is asked again (monotonic), and for how long it rests then."""

    error: UnreachableError
    again: float
    rest: float


class Silence:
    """The silent hosts of this process; used by several threads."""

    def __init__(self) -> None:
        self._known: dict[Access, _Silent] = {}
        self._lock = threading.Lock()

    def patience(self, access: Access, deadline: float) -> float:
        """Return the seconds that a host may take to answer: less than ``deadline`` where it was silent.

        :raises UnreachableError: it was silent a moment ago; it is not asked.
        """
        with self._lock:
            silent = self._known.get(access)
        if silent is None:
            return deadline
        left = silent.again - time.monotonic()
        if left > 0:
            raise UnreachableError(
                f"{silent.error.message} It is not asked again before {left:.0f} s have passed.",
                hint=silent.error.hint,
            )
        return min(PROBE, deadline)

    def note(self, access: Access, error: UnreachableError, seconds: float) -> None:
        """Remember that a host was not reached after ``seconds``; nothing where that was no silence."""
        with self._lock:
            silent = self._known.get(access)
            if silent is not None or seconds >= _SILENCE:
                rest = 2 * silent.rest if silent is not None else _AGAIN
                first = silent.error if silent is not None else error
                self._known[access] = _Silent(first, time.monotonic() + rest, rest)

    def forget(self, access: Access) -> None:
        """The host has answered."""
        with self._lock:
            self._known.pop(access, None)

"""One of several explorations at once, in a process of its own.

``python -m harness.scenarios.exploring_process``, with a socket as its standard input:
:mod:`harness.scenarios.explored_at_once` is at the other end.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Final

from harness.errors import EXIT_INTERRUPTED, HarnessError
from harness.interruption import stopped_is_interrupted
from harness.scenarios.exploration import Interrupted

_APART_SECONDS: Final = 0.1


class _Interruption:
    """Takes SIGINT: the first one raises KeyboardInterrupt.

    Where memory is collected just then, Python drops that; ``came`` says it once more.
    """

    came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Take it."""
        if not self.came:
            self.came = True
            raise KeyboardInterrupt


class _Progress:
    """Sends how many steps were made, and not so often that nobody can follow."""

    def __init__(self, asks: Connection, interruption: _Interruption) -> None:
        self._asks = asks
        self._interruption = interruption
        self._last = time.monotonic()

    def __call__(self, steps: int) -> None:
        """Send it, unless that was done just now. :raises KeyboardInterrupt: it was to end before."""
        if self._interruption.came:
            raise KeyboardInterrupt
        if time.monotonic() - self._last >= _APART_SECONDS:
            self._last = time.monotonic()
            self._asks.send(steps)


def serve(asks: Connection, interruption: _Interruption) -> None:
    """Open what is to be explored, say 0 steps, and explore it within each budget that is sent.

    How many steps were made is sent meanwhile, and what it came to in the end. :raises HarnessError: as
    what is explored does. :raises KeyboardInterrupt: by a signal, once that was sent as well.
    """
    with asks.recv()() as explorable:
        asks.send(0)
        while (asked := asks.recv()) is not None:
            budget, seed = asked
            try:
                asks.send(explorable.explored(budget, seed=seed, told=_Progress(asks, interruption)))
            except Interrupted as end:
                asks.send(end.found)
                raise


def main() -> int:
    """Serve; return the exit code."""
    asks = Connection(os.dup(0))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # what is started from here must not keep the socket open
    interruption = _Interruption()
    signal.signal(signal.SIGINT, interruption)
    try:
        with stopped_is_interrupted():
            serve(asks, interruption)
    except HarnessError as error:
        asks.send(error)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())

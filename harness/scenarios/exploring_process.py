"""One of several explorations at once, in a process of its own.

``python -m harness.scenarios.exploring_process``, with a socket as its standard input:
:mod:`harness.scenarios.explored_at_once` is at the other end.
"""

from __future__ import annotations

import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from harness.errors import EXIT_INTERRUPTED, HarnessError
from harness.interruption import obey_once, stopped_is_interrupted
from harness.scenarios.exploration import Interrupted

_APART_SECONDS: Final = 0.1


def serve(asks: Connection) -> None:
    """Open what is to be explored, say 0 steps, and explore it within each budget that is sent.

    How many steps were made is sent meanwhile, and what it came to in the end. :raises HarnessError: as
    what is explored does. :raises KeyboardInterrupt: by a signal, once that was sent as well.
    """
    with asks.recv()() as explorable:
        asks.send(0)
        while (asked := asks.recv()) is not None:
            budget, seed = asked
            try:
                asks.send(explorable.explored(budget, seed=seed, told=_Progress(asks)))
            except Interrupted as end:
                asks.send(end.found)
                raise


class _Progress:
    """Sends how many steps were made, and not so often that nobody can follow."""

    def __init__(self, asks: Connection) -> None:
        self._asks = asks
        self._last = time.monotonic()

    def __call__(self, steps: int) -> None:
        """Send it, unless that was done just now."""
        if time.monotonic() - self._last >= _APART_SECONDS:
            self._last = time.monotonic()
            self._asks.send(steps)


def main() -> int:
    """Serve; return the exit code."""
    asks = Connection(os.dup(0))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # what is started from here must not keep the socket open
    obey_once()
    try:
        with stopped_is_interrupted():
            serve(asks)
    except HarnessError as error:
        asks.send(error)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())

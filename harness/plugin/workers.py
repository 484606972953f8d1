"""The workers of xdist, as the controlling process sees them: told of an interruption, and waited for."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Any

#: Longer than any undo may take: xdist itself kills a worker 10 s after it was told to end.
_PATIENCE = 330.0
_POLL_SECONDS = 0.02


class Workers:
    """The nodes of a run; empty where it has none."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []

    def add(self, node: Any) -> None:
        """Know a worker that is ready."""
        self._nodes.append(node)

    def end(self) -> None:
        """Interrupt all workers, and wait until each has undone what it did and has closed its history.

        A signal to the controlling process alone would else leave them working until they are killed.
        """
        for node in self._working():
            # execnet does not tell the process of a worker; one on another machine has none here.
            process = getattr(getattr(node.gateway, "_io", None), "popen", None)
            if process is not None:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGINT)
        end = time.monotonic() + _PATIENCE
        # Their last message is taken by a thread of execnet; nobody can be told of it.
        while self._working() and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)

    def _working(self) -> list[Any]:
        return [n for n in self._nodes if not hasattr(n, "workeroutput") and not n.channel.isclosed()]

"""Calls that nobody waits for (RPC casts): carried out in order, in a thread, while lab time stands still."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from harness.emulator.clock import LabClock

_LOG = logging.getLogger(__name__)


def start_actor(clock: LabClock, body: Callable[[], None], name: str) -> None:
    """Run ``body`` in a thread of its own, as an actor of ``clock`` from before this returns."""
    begun = threading.Event()

    def run() -> None:
        with clock.actor():
            begun.set()
            body()

    threading.Thread(target=run, name=name, daemon=True).start()
    begun.wait()


class Mailbox:
    """What one service is asked to do, one call at a time. Safe to use from any thread.

    Calls to a service that is down are lost, as they are with a socket that nobody listens on (inferred).
    """

    def __init__(
        self, clock: LabClock, name: str, guard: AbstractContextManager[object] | None = None
    ) -> None:
        """``guard``: entered for every call."""
        self._clock = clock
        self._name = name
        self._guard = guard or nullcontext()
        self._calls: deque[Callable[[], None]] = deque()
        self._idle = threading.Condition()
        self._working = False
        self.up = True
        #: How many calls it has taken.
        self.taken = 0

    def cast(self, call: Callable[[], None]) -> None:
        """Have ``call`` carried out after all that was asked before; an error in it is logged."""
        with self._idle:
            if not self.up:
                return
            self._calls.append(call)
            self.taken += 1
            if self._working:
                return
            self._working = True
        start_actor(self._clock, self._work, self._name)

    def stop(self) -> None:
        """Forget what waits, and take nothing more until :meth:`start`."""
        with self._idle:
            self.up = False
            self._calls.clear()

    def start(self) -> None:
        """Take calls again."""
        with self._idle:
            self.up = True

    def settle(self, seconds: float) -> bool:
        """Wait, real time, until all that was asked is done; return whether it is."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._working, seconds)

    def _work(self) -> None:
        while True:
            with self._idle:
                if not self._calls:
                    self._working = False
                    self._idle.notify_all()
                    return
                call = self._calls.popleft()
            try:
                with self._guard:
                    call()
            except Exception as error:  # noqa: BLE001 -- a service goes on after a call that failed
                _LOG.warning("%s: %s", self._name, error)

"""Calls at later lab times that one service carries out: all of them are gone with the service."""

from __future__ import annotations

import threading
from collections.abc import Callable

from harness.emulator.clock import Event, LabClock
from harness.emulator.starlingx.mailbox import Mailbox


class Timers:
    """What a service will do later. Safe to use from any thread."""

    def __init__(self, clock: LabClock, service: Mailbox) -> None:
        self._clock = clock
        self._service = service
        self._events: set[Event] = set()
        self._lock = threading.Lock()

    def after(self, seconds: float, call: Callable[[], None], *, background: bool = False) -> None:
        """Have the service do ``call`` in ``seconds`` of lab time; one in the background draws no time."""

        def due() -> None:
            with self._lock:
                self._events.discard(event)
            self._service.cast(call)

        with self._lock:  # an event that is due at once waits for it to be known
            event = self._clock.at(self._clock.now() + seconds, due, background=background)
            self._events.add(event)

    def drop(self) -> None:
        """Take back all that was not due yet."""
        with self._lock:
            events, self._events = self._events, set()
        for event in events:
            event.cancel()

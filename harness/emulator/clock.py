"""Virtual lab time: it stands still while anybody acts and jumps to the next event when all wait."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.errors import HarnessBug


@dataclass(eq=False, slots=True)
class Event:
    """Something that happens at a lab time; made by :meth:`LabClock.at`.

    A *background* event happens when its time comes, but does not draw time towards itself: with only
    such events left, instant lab time stands still.
    """

    clock: LabClock = field(repr=False)
    when: float
    callback: Callable[[], None] | None
    background: bool = False
    pending: bool = True
    withheld: bool = False

    def cancel(self) -> None:
        """Take the event back (nothing happens where it is over); a withheld one no longer stops time."""
        self.clock._cancel(self)


class Alarm:
    """Ends one actor's sleep early, such as a signal to an emulated program. Stays rung once rung."""

    __slots__ = ("_sleeper", "rung")

    def __init__(self) -> None:
        self.rung = False
        self._sleeper: _Sleeper | None = None


@dataclass(eq=False, slots=True)
class _Sleeper:
    event: Event
    wake: threading.Condition
    is_actor: bool
    asleep: bool = True


class LabClock:
    """The time of one emulated lab, in seconds; safe to use from any thread.

    ``scale`` None is *instant* time: while any actor (:meth:`actor`) runs, time stands still; when all of
    them sleep, it jumps to the next event. A number is *scaled* time: so many lab seconds pass in a real
    second, whoever acts. ``start`` is the lab time at the beginning.

    Callbacks run one at a time, without a lock of the clock held, in a thread of the clock's choice; they
    may schedule and cancel, but not sleep.
    """

    def __init__(self, *, scale: float | None = None, start: float = 0.0) -> None:
        self._lock = threading.Lock()
        self._idle_thread = threading.Condition(self._lock)
        self._scale = scale
        self._now = start
        self._real_base = time.monotonic()
        self._heap: list[tuple[float, int, Event]] = []
        self._sleepers: dict[Event, _Sleeper] = {}
        self._order = itertools.count()
        self._drawing = 0  # pending events that are not background
        self._running = 0  # actors that neither sleep nor wait
        self._driving = False  # somebody moves time right now
        self._local = threading.local()
        self._thread: threading.Thread | None = None
        self._closed = False

    def now(self) -> float:
        """Return the lab time in seconds."""
        if self._scale is None:
            return self._now
        with self._lock:
            return self._read()

    def at(
        self, when: float, callback: Callable[[], None], *, background: bool = False, withheld: bool = False
    ) -> Event:
        """Have ``callback`` called at lab time ``when`` (at once where that is over); see :class:`Event`.

        ``withheld``: from the start, as by :meth:`freeze_before`.
        """
        with self._lock:
            event = self._push(when, callback, background)
            event.withheld = withheld
            self._kick()
        return event

    def sleep(
        self,
        seconds: float,
        alarm: Alarm | None = None,
        *,
        background: bool = False,
        before_waiting: Callable[[], None] | None = None,
    ) -> bool:
        """Let ``seconds`` of lab time pass for the caller. Return False where ``alarm`` cut it short.

        ``background``: as for an event, this sleep alone does not draw time (a daemon's loop).
        ``before_waiting``: called where the caller's thread really waits, because time cannot jump.
        """
        if getattr(self._local, "in_callback", False):
            raise HarnessBug("A callback of the lab clock must not sleep.")
        with self._lock:
            if alarm is not None and alarm.rung:
                return False
            is_actor = self._actor_depth() > 0
            event = self._push(self._read() + max(seconds, 0.0), None, background)
            sleeper = _Sleeper(event, threading.Condition(self._lock), is_actor)
            self._sleepers[event] = sleeper
            if alarm is not None:
                alarm._sleeper = sleeper
            if is_actor:
                self._running -= 1
            try:
                if self._scale is None:
                    self._drive(until=sleeper)  # saves two thread switches for each sleep of a lone actor
                else:
                    self._kick()
                if before_waiting is not None and sleeper.asleep:
                    self._call_outside(before_waiting)
                while sleeper.asleep and not self._closed:
                    sleeper.wake.wait()
            finally:
                if sleeper.asleep:
                    self._wake(sleeper)
                if alarm is not None:
                    alarm._sleeper = None
                self._kick()
            return not (alarm is not None and alarm.rung)

    def ring(self, alarm: Alarm) -> None:
        """Ring ``alarm``: its sleeper wakes now; a later sleep with it returns at once."""
        with self._lock:
            alarm.rung = True
            if alarm._sleeper is not None and alarm._sleeper.asleep:
                self._wake(alarm._sleeper)

    @contextmanager
    def actor(self) -> Iterator[None]:
        """Keep instant time still for the calling thread's acts; may be nested."""
        depth = self._actor_depth()
        self._local.depth = depth + 1
        if depth == 0:
            with self._lock:
                self._running += 1
        try:
            yield
        finally:
            self._local.depth = depth
            if depth == 0:
                with self._lock:
                    self._running -= 1
                    self._kick()

    @property
    def acting(self) -> bool:
        """Whether the calling thread is an actor."""
        return self._actor_depth() > 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let time pass while the calling actor waits for something else than time (a lock, its input)."""
        if self._actor_depth() == 0:
            yield
            return
        with self._lock:
            self._running -= 1
            self._kick()
        try:
            yield
        finally:
            with self._lock:
                self._running += 1

    def freeze_before(self, event: Event) -> None:
        """Withhold ``event``: lab time does not pass it until :meth:`thaw`, or until it is cancelled."""
        with self._lock:
            event.withheld = True

    def stands_before(self, event: Event) -> bool:
        """Return whether all is over before a withheld ``event``: it is the next one, and no actor runs."""
        with self._lock:
            self._read()
            return event.withheld and self._first() is event and not self._running and not self._driving

    def thaw(self, event: Event) -> None:
        """Let time go on past a withheld ``event``."""
        with self._lock:
            if event.withheld:
                self._read()
                event.withheld = False
                self._kick()

    def close(self) -> None:
        """Stop time for good and end the clock's thread; sleepers return."""
        with self._lock:
            self._closed = True
            self._idle_thread.notify_all()
            for sleeper in list(self._sleepers.values()):
                sleeper.wake.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # What follows is called with the lock held.

    def _actor_depth(self) -> int:
        return int(getattr(self._local, "depth", 0))

    def _read(self) -> float:
        if self._scale is None:
            return self._now
        real = time.monotonic()
        passed = self._now + (real - self._real_base) * self._scale
        first = self._first()
        if first is not None and first.withheld:
            passed = min(passed, max(first.when, self._now))
        self._now, self._real_base = passed, real
        return passed

    def _push(self, when: float, callback: Callable[[], None] | None, background: bool) -> Event:
        event = Event(self, max(when, self._read()), callback, background)
        heapq.heappush(self._heap, (event.when, next(self._order), event))
        if not background:
            self._drawing += 1
        return event

    def _cancel(self, event: Event) -> None:
        with self._lock:
            if event.pending:
                self._read()
                self._retire(event)
                self._kick()

    def _retire(self, event: Event) -> None:
        event.pending = event.withheld = False
        if not event.background:
            self._drawing -= 1

    def _wake(self, sleeper: _Sleeper) -> None:
        sleeper.asleep = False
        del self._sleepers[sleeper.event]
        if sleeper.event.pending:
            self._retire(sleeper.event)
        if sleeper.is_actor:
            self._running += 1
        sleeper.wake.notify()

    def _first(self) -> Event | None:
        heap = self._heap
        while heap and not heap[0][2].pending:
            heapq.heappop(heap)
        return heap[0][2] if heap else None

    def _due(self) -> Event | None:
        """Return the event that time may go to now."""
        if self._closed or (self._scale is None and (self._running or not self._drawing)):
            return None
        first = self._first()
        if first is None or first.withheld or (self._scale is not None and first.when > self._read()):
            return None
        return first

    def _drive(self, until: _Sleeper | None = None) -> None:
        """Let due events happen, until ``until`` is woken or nothing is due."""
        if self._driving:
            return
        self._driving = True
        try:
            while (until is None or until.asleep) and (event := self._due()) is not None:
                if self._scale is None:
                    self._now = event.when
                self._retire(event)
                if event.callback is None:
                    self._wake(self._sleepers[event])
                else:
                    self._call(event.callback)
        finally:
            self._driving = False

    def _call(self, callback: Callable[[], None]) -> None:
        self._local.in_callback = True
        try:
            self._call_outside(callback)
        finally:
            self._local.in_callback = False

    def _call_outside(self, callback: Callable[[], None]) -> None:
        self._lock.release()
        try:
            callback()
        finally:
            self._lock.acquire()

    def _kick(self) -> None:
        """Have the clock's thread move time, where nobody else does."""
        if self._closed or self._driving:
            return
        if self._scale is None and self._due() is None:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="lab-clock", daemon=True)
            self._thread.start()
        else:
            self._idle_thread.notify()

    def _run(self) -> None:
        with self._lock:
            try:
                while not self._closed:
                    self._drive()
                    if not self._driving and self._due() is not None:
                        continue
                    if not self._closed:
                        self._idle_thread.wait(self._real_seconds_to_next())
            finally:
                self._thread = None

    def _real_seconds_to_next(self) -> float | None:
        first = self._first()
        if self._scale is None or self._driving or first is None or first.withheld:
            return None
        return max(first.when - self._read(), 0.0) / self._scale

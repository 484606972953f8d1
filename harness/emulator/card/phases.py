"""The phase that a card is in, and how its end is withheld so that a fault can strike within it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, get_args

from harness.emulator.card.guard import Guard
from harness.emulator.clock import Event, LabClock
from harness.errors import ConfigurationError

Phase = Literal["preparing", "transferring", "authenticating", "copying", "keys"]
#: What can be withheld. ``programming`` is the first part of that status, authenticating: nothing is
#: decided yet. ``keys`` is the programming of a root entry hash or of a cancellation.
HoldPoint = Literal["preparing", "transferring", "programming", "authenticating", "copying", "keys"]
_POINTS: Final[dict[str, HoldPoint]] = {point: point for point in get_args(HoldPoint)}


class Phases:
    """At most one phase runs, and ends by an event. Callers hold the card's guard."""

    def __init__(self, clock: LabClock, guard: Guard) -> None:
        self._clock = clock
        self._guard = guard
        self._end: Event | None = None
        self._last = True
        self._hold: HoldPoint | None = None
        self.current: Phase | None = None

    def begin(self, phase: Phase, seconds: float, end: Callable[[], None], *, last: bool = True) -> None:
        """Be in ``phase`` for ``seconds``, then call ``end`` with the guard held.

        ``last``: ``end`` ends the phase; False for a step within it, which no hold withholds.
        """
        self.stop()
        self.current, self._last = phase, last
        self._schedule(seconds, end)

    def stop(self) -> None:
        """Leave the phase without its end."""
        if self._end is not None:
            self._end.cancel()
        self._end, self.current = None, None

    def hold(self, point: str) -> None:
        """Withhold the end of the phase ``point``, now or when it comes; one point at a time.

        :raises ConfigurationError: there is no such point.
        """
        if point not in _POINTS:
            raise ConfigurationError(
                f"An emulated card has no phase {point!r}.", hint=f"Phases: {', '.join(_POINTS)}."
            )
        self.release()
        self._hold = _POINTS[point]
        if self._end is not None and self._withheld():
            self._clock.freeze_before(self._end)

    def release(self) -> None:
        """Withhold nothing any more."""
        self._hold = None
        if self._end is not None:
            self._clock.thaw(self._end)

    def held(self) -> HoldPoint | None:
        """Return the point whose phase has begun and whose end is withheld."""
        return self._hold if self._in_held_phase() else None

    def guarded(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Return ``callback`` as the clock may call it: with the guard held."""

        def call() -> None:
            with self._guard:
                callback()

        return call

    def _schedule(self, seconds: float, end: Callable[[], None]) -> None:
        def over() -> None:
            with self._guard:
                if self._end is not event:
                    return  # the clock had taken it off its queue when the phase was left
                if self._withheld():
                    self._schedule(0.0, end)  # held at the very moment of its end
                    return
                self._end, self.current = None, None
                end()

        event = self._clock.at(self._clock.now() + seconds, over, withheld=self._withheld())
        self._end = event

    def _in_held_phase(self) -> bool:
        wanted = "authenticating" if self._hold == "programming" else self._hold
        return wanted is not None and self.current == wanted

    def _withheld(self) -> bool:
        return self._last and self._in_held_phase()

"""Arms faults on one card's operations, fires them when their point is reached, and undoes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.errors import DeadlineError, HarnessError, NotOfferedError
from harness.faults.actions import Action, action
from harness.faults.points import CARD_PHASES, POINTS, announced_as, check_point
from harness.interruption import uninterrupted
from harness.judgement.records import Fault

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.lab.bench import Bench
    from harness.lab.running import RunningLab
    from harness.record.operations import Recording

State = Literal["armed", "fired", "undone", "not-reached"]


@dataclass
class Armed:
    """A fault that waits for its point, or has fired. ``tried``: its action was begun, so it is undone."""

    point: str
    name: str
    action: Action
    state: State = "armed"
    tried: bool = False


class Injector:
    """The faults of one scenario on one card. Its own acts are in the history."""

    def __init__(self, card: CardDriver, lab: RunningLab, history: Recording) -> None:
        self._card = card
        self._lab = lab
        self._history = history
        self._armed: list[Armed] = []

    def arm(self, point: str, name: str, made: Action | None = None) -> Armed:
        """Bind the action ``name`` to ``point`` of the next update or reset.

        At ``start`` it strikes at once. A later point is held by the bench that the card is on, so that
        the action strikes in it for certain; on a real card the phases are long enough.

        :param made: the action itself, where its name does not say all of it.
        :raises ConfigurationError: no such point or action, or the two make no sense together.
        :raises BlockedError: the lab lacks what it takes. :raises NotOfferedError: it can never have that.
        """
        armed = Armed(check_point(point), name, made or action(name))
        armed.action.check(point, self._card, self._lab)
        if point in CARD_PHASES and self._bench is None:
            raise NotOfferedError(
                f"Only a bench can tell the phase {point!r} of a card from {announced_as(point)!r}: "
                "that takes an emulated host."
            )
        self._armed.append(armed)
        self._record(armed, "armed")
        if point == "start":
            self._fire(armed)
        else:
            self._hold()
        return armed

    def cycle_power(self) -> None:
        """Switch the card's host off and on: no fault, but what only the lab can do; judged as a reset is.

        Errors as of :func:`harness.faults.power_cycle.cycle_power`.
        """
        from harness.faults.power_cycle import cycle_power

        cycle_power(self._card, self._lab, self._history)

    def reached(self, phase: str) -> None:
        """Fire what waits for ``phase``; called by the flashing driver as the tool announces it."""
        for point in POINTS:
            waiting = [armed for armed in self._waiting() if armed.point == point]
            if waiting and announced_as(point) == phase and self._is_held(point):
                for armed in waiting:
                    self._fire(armed)
                self._hold()

    @property
    def waits_for(self) -> str:
        """The first point at which a fault still waits; empty where none does."""
        points = [armed.point for armed in self._waiting()]
        return min(points, key=POINTS.index, default="")

    @property
    def cut_the_link(self) -> bool:
        """Whether a fault that has fired takes the host away from the harness."""
        return any(armed.state == "fired" and armed.action.cuts_the_link for armed in self._armed)

    def settle(self) -> None:
        """Record what never came as not reached; called before the scenario is judged."""
        for armed in self._waiting():
            armed.state = "not-reached"
            self._record(armed, "not-reached")

    def undo_all(self) -> None:
        """Undo every fault, newest first, and let go of what was held. Ctrl-C waits for it.

        :raises HarnessError: the first that could not be undone; each was tried.
        """
        with uninterrupted(f"undo the faults on {self._card.name}"):
            held = self._bench is not None and any(armed.point != "start" for armed in self._armed)
            self.settle()
            try:
                self._undo(self._armed)
            finally:
                if held and self._bench is not None:
                    self._bench.release(self._card.name)

    def undo(self) -> None:
        """Undo what has fired so far, so that the scenario can go on in an undisturbed lab.

        :raises HarnessError: as :meth:`undo_all`; what could not be undone is tried again at the end.
        """
        with uninterrupted(f"undo the faults on {self._card.name}"):
            self._undo([armed for armed in self._armed if armed.state == "fired"])

    def _undo(self, faults: Iterable[Armed]) -> None:
        errors: list[HarnessError] = []
        for armed in reversed(list(faults)):
            try:
                if armed.tried:
                    armed.action.undo(self._card, self._lab)
                self._armed.remove(armed)
                if armed.state == "fired":
                    self._record(armed, "undone")
            except HarnessError as error:
                error.add_note(f"while {armed.name} at {armed.point} was undone on {self._card.name}")
                errors.append(error)
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"and: {other.message}")
            raise errors[0]

    @property
    def _bench(self) -> Bench | None:
        """The bench that the card is on."""
        return self._lab.bench if self._lab.offers(self._card.host.name, "bench") else None

    def _waiting(self) -> list[Armed]:
        return [armed for armed in self._armed if armed.state == "armed" and armed.point != "start"]

    def _hold(self) -> None:
        """Have the first point that a fault waits for held, or nothing; a bench holds one at a time."""
        if self._bench is None:
            return
        if point := self.waits_for:
            self._bench.hold(self._card.name, point)
        else:
            self._bench.release(self._card.name)

    def _is_held(self, point: str) -> bool:
        """Wait until the card is held at ``point``. False where its update ended without coming to it."""
        if self._bench is None:
            return True
        try:
            self._bench.wait_held(self._card.name, point, while_updating=True)
        except DeadlineError:
            return False
        return True

    def _fire(self, armed: Armed) -> None:
        armed.tried = True
        detail = armed.action.fire(self._card, self._lab)
        armed.state = "fired"
        self._record(armed, "fired", detail)

    def _record(self, armed: Armed, state: State, detail: str = "") -> None:
        self._history.add(
            Fault(
                point=armed.point,
                action=armed.name,
                subject=self._card.subject,
                state=state,
                detail=detail,
            )
        )

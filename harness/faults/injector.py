"""Arms faults on one card's operations, fires them when their point is reached, and undoes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.faults.actions import Action, action
from harness.faults.points import CARD_PHASES, check_point
from harness.judgement.records import Fault

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.lab.running import RunningLab
    from harness.record.history import History


@dataclass
class Armed:
    """A fault that waits for its point, or has fired."""

    point: str
    name: str
    action: Action
    state: str = "armed"


class Injector:
    """The faults of one scenario on one card. Its own acts are in the history."""

    def __init__(self, card: CardDriver, lab: RunningLab, history: History) -> None:
        self._card = card
        self._lab = lab
        self._history = history
        self._armed: list[Armed] = []

    def arm(self, point: str, name: str) -> Armed:
        """Bind the action ``name`` to ``point`` of the next update or reset.

        A point after ``start`` is held by the lab's bench, where there is one, so that the action
        strikes in it for certain; on a real card the phases are long enough.

        :raises ConfigurationError: no such point or action.
        :raises BlockedError: the lab cannot do it.
        """
        armed = Armed(check_point(point), name, action(name))
        self._armed.append(armed)
        self._record(armed, "armed")
        if armed.action.lasting or point == "start":
            self._fire(armed)
        elif self._lab.bench is not None:
            self._lab.bench.hold(self._card.name, point)
        elif point in CARD_PHASES:
            from harness.errors import BlockedError

            raise BlockedError(
                f"Only a bench can tell the phase {point!r} of a card from {CARD_PHASES[point]!r}.",
                hint="Run this scenario on an emulated lab.",
            )
        return armed

    def reached(self, phase: str) -> None:
        """Fire what waits for ``phase``; called by the flashing driver as the tool announces it."""
        for armed in self._armed:
            if armed.state == "armed" and CARD_PHASES.get(armed.point, armed.point) == phase:
                if self._lab.bench is not None:
                    self._lab.bench.wait_held(self._card.name, armed.point)
                self._fire(armed)
                if self._lab.bench is not None:
                    self._lab.bench.release(self._card.name)

    @property
    def cut_the_link(self) -> bool:
        """Whether a fault that has fired takes the host away from the harness."""
        return any(armed.state == "fired" and armed.action.cuts_the_link for armed in self._armed)

    def settle(self) -> None:
        """Record what never came as not reached; called before the scenario is judged."""
        for armed in self._armed:
            if armed.state == "armed":
                armed.state = "not-reached"
                self._record(armed, "not-reached")

    def undo_all(self) -> None:
        """Undo every fault, newest first, and let go of what was held for it."""
        self.settle()
        while self._armed:
            armed = self._armed.pop()
            if armed.state == "not-reached" and self._lab.bench is not None:
                self._lab.bench.release(self._card.name)
            armed.action.undo(self._card, self._lab)
            if armed.state == "fired":
                self._record(armed, "undone")

    def undo(self) -> None:
        """Undo what has fired so far, so that the scenario can go on in an undisturbed lab."""
        for armed in [armed for armed in self._armed if armed.state == "fired"]:
            self._armed.remove(armed)
            armed.action.undo(self._card, self._lab)
            self._record(armed, "undone")

    def _fire(self, armed: Armed) -> None:
        detail = armed.action.fire(self._card, self._lab)
        armed.state = "fired"
        self._record(armed, "fired", detail)

    def _record(
        self, armed: Armed, state: Literal["armed", "fired", "undone", "not-reached"], detail: str = ""
    ) -> None:
        self._history.add(
            Fault(
                point=armed.point,
                action=armed.name,
                subject=self._card.subject,
                state=state,
                detail=detail,
            )
        )

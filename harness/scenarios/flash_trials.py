"""The trials of one card: an update or a reset, disturbed once, judged from what was recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Final, Literal, Protocol

from harness.errors import (
    BlockedError,
    ConfigurationError,
    HarnessError,
    NotOfferedError,
    RefusedError,
    UnreachableError,
)
from harness.faults.actions import action as action_of
from harness.faults.injector import Injector
from harness.faults.points import POINTS
from harness.judgement.records import Intent
from harness.scenarios.image_sweep import ImageLane
from harness.scenarios.prepare import prepare
from harness.scenarios.promised import FlashedState, Promised
from harness.scenarios.promises import ACTIVATED_BY_RESET, returns
from harness.scenarios.states import state_of
from harness.scenarios.sweep_results import Trial

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.images.facts import ImageFacts
    from harness.judgement.records import Promise
    from harness.lab.card_bench import CardBench
    from harness.record.history import History
    from harness.scenarios.sweep import Ledger
    from harness.scenarios.sweep_results import LaneResult

Operation = Literal["flash", "reset"]
#: The tool that reports of each operation.
REPORTERS: Final[Mapping[Operation, str]] = {"flash": "fpgasupdate", "reset": "rsu"}
#: An update that nobody sees ends within so many lab seconds (the kernel's 40 min and a margin).
_UNSEEN: Final = 3600.0
_RSU: Final = "OPAE rsu; Intel UG 683519"


class Image(Protocol):
    """An image ready to be flashed."""

    @property
    def name(self) -> str:
        """Its recipe."""

    @property
    def data(self) -> bytes:
        """Its bytes."""

    @property
    def facts(self) -> ImageFacts:
        """What they are."""


class Shelf(Protocol):
    """Images by recipe name."""

    def __getitem__(self, name: str) -> Image:
        """Return the image. :raises ConfigurationError: no such recipe."""


@dataclass(frozen=True, slots=True)
class FlashPlan:
    """What a sweep does with each card.

    ``points``: empty: all that the operation passes. ``root``: of the state in which an emulated card is
    before each trial; None: the one in which the image is taken. ``wear``: updates of each real card.
    """

    operation: Operation
    images: tuple[str, ...]
    actions: tuple[str, ...]
    points: tuple[str, ...] = ()
    repeat: int = 1
    root: str | None = None
    wear: int | None = None

    @property
    def trials(self) -> int:
        """How many there are of each image at most."""
        return len(self.actions) * len(self.points or POINTS) * self.repeat


class CardLane(ImageLane):
    """One card. :param promised: what documents promise of an image on a card in a state."""

    def __init__(
        self,
        bench: CardBench,
        history: History,
        plan: FlashPlan,
        shelf: Shelf,
        promised: Promised,
        *,
        name: str,
        ledger: Ledger,
        stop: Event,
    ) -> None:
        self._card: CardDriver = bench.driver(history)
        super().__init__(
            name,
            history,
            plan,
            operation=plan.operation,
            by=REPORTERS[plan.operation],
            subject=self._card.subject,
            ledger=ledger,
            stop=stop,
        )
        self._bench = bench
        self._plan: FlashPlan = plan
        self._shelf = shelf
        self._promised = promised
        self._left = 0
        self._excluded: list[str] = []

    def _permitted(self, of: str) -> bool:
        """Return whether what the image does may happen to this card; note it where it may not."""
        if self._plan.operation == "reset":
            return True
        missing = self._shelf[of].facts.irreversible - self._card.permitted
        if missing:
            self._excluded.append(f"{of}, not permitted {' and '.join(sorted(missing))}")
        return not missing

    def _passed(self, of: str) -> tuple[str, ...]:
        """Do it once with an image, undisturbed, and return the points that it passes."""
        state = self._begin(of)
        injector = Injector(self._card, self._bench.lab, self._history)
        armed = []
        for point in POINTS:
            with suppress(BlockedError):  # a real card does not tell it from another one
                armed.append(injector.arm(point, "note"))
        self._operate(of, state, injector)
        return tuple(each.point for each in armed if each.state == "fired")

    def result(self) -> LaneResult:
        """Return what was recorded so far, judged."""
        why = f"the budget of {self._plan.wear} updates is used up" if self._left else ""
        return replace(super().result(), left=self._left, left_why=why, excluded="; ".join(self._excluded))

    def _takes(self, of: str) -> bool:
        """Return whether an image may be tried: it is permitted, and there are updates left for it."""
        if not self._permitted(of):
            return False
        if not self._affordable():
            self._left += self._plan.trials
            return False
        return True

    def _makes_sense(self, action: str, point: str) -> bool:
        """Return whether an action is worth a trial at a point; one that this lab lacks is, too."""
        try:
            action_of(action).check(point, self._card, self._bench.lab)
        except (NotOfferedError, BlockedError):
            return True
        except ConfigurationError:
            return False
        return True

    # -- one trial ------------------------------------------------------------------------------------

    def _trial(self, trial: Trial) -> None:
        """Do it once, disturbed, and note what came of it; leave it out where it would cost too much."""
        if not self._affordable():
            self._left += 1
            return
        began = time.monotonic()
        intent: int | None = None
        with self._scenario(f"{self._title(trial.of)}, {trial.action} at {trial.point}") as ended:
            state = self._begin(trial.of)
            injector = Injector(self._card, self._bench.lab, self._history)
            try:
                armed = injector.arm(trial.point, trial.action)
            except (BlockedError, ConfigurationError, NotOfferedError) as error:
                trial = replace(trial, reason=error.message)
            else:
                try:
                    reported, intent = self._operate(trial.of, state, injector)
                    trial = replace(trial, reported=reported, truth=self._left_as(trial.of, state))
                except HarnessError as error:
                    ended.append(error)
                    word, reason = state_of(error)
                    trial = replace(trial, outcome=word, verdict=word, reason=reason)
                if armed.state == "not-reached":
                    trial, intent = replace(trial, reason="the operation ended before it came there"), None
        self._ledger.note(replace(trial, seconds=time.monotonic() - began), intent)

    # -- steps ----------------------------------------------------------------------------------------

    def _begin(self, of: str) -> FlashedState:
        """Bring the card into the state that a trial starts from: it runs another image of the user's."""
        bench = self._bench.bench
        if bench is not None:
            prepare(self._card, self._promised.given(of, self._plan.root), bench)
        state = self._promised.state(self._card.truth())
        if bench is None and self._plan.operation == "reset":
            return state  # a reset wears no card, and needs no other image
        before = self._shelf[self._promised.before(of, state)]
        if self._card.truth({"bitstream_id"}).bitstream_id != before.facts.bitstream_id:
            self._flash(before, self._promised.of(before.name, state))
            self._card.reset()
        return self._promised.state(self._card.truth())

    def _operate(self, of: str, before: FlashedState, injector: Injector) -> tuple[str, int]:
        """Do it once; undo what disturbed it; return what was reported, and the intent.

        :raises HarnessError: it could not be done, or the fault not be undone.
        """
        try:
            if self._plan.operation == "reset":
                reset = self._card.reset(promise=returns(_RSU))
                reported, intent = str(reset.statement.result), reset.intent
            else:
                promise = self._promised.of(of, before)
                reported, intent = self._flash(self._shelf[of], promise, injector)
            injector.settle()
        finally:
            injector.undo_all()
        if self._plan.operation == "flash" and self._shelf[of].facts.effect in ACTIVATED_BY_RESET:
            self._activate()
        return reported, intent

    def _flash(self, image: Image, promise: Promise, injector: Injector | None = None) -> tuple[str, int]:
        try:
            result = self._card.flash(
                image.data,
                image.name,
                promise,
                facts=image.facts,
                at_phase=injector.reached if injector is not None else None,
            )
        except UnreachableError:
            if injector is None or not injector.cut_the_link:
                raise
            injector.undo()
            self._card.observe("after", self._last_intent())
            return "nothing", self._last_intent()
        return result.statement.result, result.intent

    def _last_intent(self) -> int:
        records = reversed(self._history.records)
        return next(r.seq for r in records if isinstance(r, Intent) and r.operation == "flash")

    def _activate(self) -> None:
        """Reset the card; in a lab whose time can pass, once an update that nobody sees is over."""
        try:
            self._card.reset()
        except RefusedError:
            bench = self._bench.bench
            if bench is None:
                raise
            bench.pass_time(_UNSEEN)
            self._cycle_power()
            self._card.reset()

    def _cycle_power(self) -> None:
        self._bench.lab.power(self._card.host.name, "cycle")
        self._card.host.close()
        self._card.locate()

    def _left_as(self, of: str, before: FlashedState) -> str:
        """Return how the operation left the card: old, new, factory, mixed, or unknown."""
        truth = self._card.truth()
        if not truth.on_bus and self._bench.bench is not None:
            self._cycle_power()  # a reset lost it; what it holds shows once it is back
            truth = self._card.truth()
        after = before if self._plan.operation == "reset" else self._promised.after(of, before)
        return self._promised.state(truth).left_of(before, after)

    def _affordable(self) -> bool:
        """Reserve the updates of one trial of a real card; False where its budget does not have them."""
        if self._bench.bench is not None or self._plan.operation == "reset" or self._plan.wear is None:
            return True
        done = sum(isinstance(r, Intent) and r.operation == "flash" for r in self._history.records)
        # One that puts another image back first, and the trial's own.
        return done + 2 <= self._plan.wear

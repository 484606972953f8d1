"""The trials of one card: an update or a reset, disturbed once, judged from what was recorded."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
from harness.faults.actions import action
from harness.faults.injector import Injector
from harness.faults.points import POINTS
from harness.judgement.records import Fault, Intent, ScenarioEnded, ScenarioStarted
from harness.judgement.values import Unknown
from harness.scenarios.prepare import prepare
from harness.scenarios.promised import FlashedState, Promised
from harness.scenarios.promises import ACTIVATED_BY_RESET, returns
from harness.scenarios.states import state_of
from harness.scenarios.sweep_results import LaneResult, Trial

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.images.facts import ImageFacts
    from harness.judgement.records import Promise
    from harness.lab.card_bench import CardBench
    from harness.record.history import History
    from harness.scenarios.sweep import Ledger

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


class CardLane:
    """One card. :param promised: what documents promise of an image on a card in a state.

    :param stop: no further trial is begun once it is set.
    """

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
        self._name = name
        self._bench = bench
        self._history = history
        self._plan = plan
        self._shelf = shelf
        self._promised = promised
        self._ledger = ledger
        self._stop = stop
        self._card: CardDriver = bench.driver(history)
        self._points: dict[str, tuple[str, ...]] = {}
        self._seconds = 0.0
        self._left = 0
        self._excluded: list[str] = []

    def run(self) -> None:
        """Look for the points that the operation passes, then run all trials.

        :raises HarnessError: the lab failed; what was recorded until then is in the history.
        """
        for of in self._plan.images:
            cells: list[tuple[str, str]] = []
            if self._stop.is_set():
                return
            if not self._permitted(of):
                pass
            elif not self._affordable():
                self._left += self._plan.trials
            else:
                cells = list(self._cells(of, self.look_for_points(of)))
            self._ledger.spare(self._plan.trials - len(cells))
            for name, point in cells:
                if self._stop.is_set():
                    return
                if not self._ledger.is_done(of, point, name):
                    self._at(of, point, name)

    def _permitted(self, of: str) -> bool:
        """Return whether what the image does may happen to this card; note it where it may not."""
        if self._plan.operation == "reset":
            return True
        missing = self._shelf[of].facts.irreversible - self._card.permitted
        if missing:
            self._excluded.append(f"{of}, not permitted {' and '.join(sorted(missing))}")
        return not missing

    def look_for_points(self, of: str) -> tuple[str, ...]:
        """Return the points that an undisturbed operation passes, by such an operation."""
        began = time.monotonic()
        with self._scenario(f"{self._title(of)}, undisturbed"):
            state = self._begin(of)
            injector = Injector(self._card, self._bench.lab, self._history)
            armed = []
            for point in POINTS:
                try:
                    armed.append(injector.arm(point, "note"))
                except BlockedError:  # a real card does not tell it from another one
                    continue
            self._operate(of, state, injector)
            self._points[of] = tuple(each.point for each in armed if each.state == "fired")
        self._seconds = time.monotonic() - began
        return self._points[of]

    def let_go(self) -> None:
        """Nothing is held for long: an update under way comes to its end."""

    def result(self) -> LaneResult:
        """Return what was recorded so far, judged."""
        why = f"the budget of {self._plan.wear} updates is used up" if self._left else ""
        return LaneResult(
            self._name,
            self._ledger.trials(),
            push=self._seconds,
            points=self._points,
            left=self._left,
            left_why=why,
            excluded="; ".join(self._excluded),
        )

    def _cells(self, of: str, passed: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield what is tried: each action at the points that were named, or else where it makes sense."""
        for name in self._plan.actions:
            for point in self._plan.points or passed:
                if self._plan.points or self._makes_sense(name, point):
                    yield from [(name, point)] * self._plan.repeat

    def _makes_sense(self, name: str, point: str) -> bool:
        try:
            action(name).check(point, self._card, self._bench.lab)
        except NotOfferedError:  # elsewhere it would
            return True
        except ConfigurationError:
            return False
        except BlockedError:
            return True
        return True

    def _title(self, of: str) -> str:
        return f"sweep {self._plan.operation} {of}".rstrip()

    # -- one trial ------------------------------------------------------------------------------------

    def _at(self, of: str, point: str, name: str) -> None:
        if point not in self._points[of]:
            self._never(of, point, name, "an undisturbed operation on this card does not pass it")
        elif not self._affordable():
            self._left += 1
        else:
            self._trial(of, point, name)

    def _trial(self, of: str, point: str, name: str) -> None:
        began = time.monotonic()
        trial = Trial(self._name, point, name, of=of, by=REPORTERS[self._plan.operation], at=point)
        intent: int | None = None
        with self._scenario(f"{self._title(of)}, {name} at {point}") as ended:
            state = self._begin(of)
            injector = Injector(self._card, self._bench.lab, self._history)
            try:
                armed = injector.arm(point, name)
            except (BlockedError, ConfigurationError, NotOfferedError) as error:
                trial = replace(trial, reason=error.message)
            else:
                try:
                    reported, intent = self._operate(of, state, injector)
                    left = self._left_as(of, state)
                    trial = replace(trial, reported=reported, truth=left)
                except HarnessError as error:
                    ended.append(error)
                    word, reason = state_of(error)
                    trial = replace(trial, outcome=word, verdict=word, reason=reason)
                if armed.state == "not-reached":
                    trial, intent = replace(trial, reason="the operation ended before it came there"), None
        self._ledger.note(replace(trial, seconds=time.monotonic() - began), intent)

    def _never(self, of: str, point: str, name: str, why: str) -> None:
        """Note a point at which nothing is tried."""
        subject = self._card.subject
        self._history.add(Fault(point=point, action=name, subject=subject, state="not-reached", detail=why))
        by = REPORTERS[self._plan.operation]
        self._ledger.note(Trial(self._name, point, name, reason=why, of=of, by=by))

    @contextmanager
    def _scenario(self, name: str) -> Iterator[list[HarnessError]]:
        """Record the beginning and the end; what the block leaves in the list is what it ended with."""
        self._history.add(ScenarioStarted(scenario=name, subject=self._card.subject))
        errors: list[HarnessError] = []
        try:
            yield errors
        except HarnessError as error:
            state, reason = state_of(error)
            self._history.add(ScenarioEnded(scenario=name, state=state, reason=reason))
            raise
        state, reason = state_of(errors[0] if errors else None)
        self._history.add(ScenarioEnded(scenario=name, state=state, reason=reason))

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
        found = self._promised.state(truth)
        if isinstance(truth.bitstream_id, Unknown):
            return "unknown"
        wanted = before if self._plan.operation == "reset" else self._promised.after(of, before)
        if found == wanted and wanted != before:
            return "new"
        if found == before:
            return "old"
        if found == before.from_factory(found):
            return "factory"
        return "mixed"

    def _affordable(self) -> bool:
        """Reserve the updates of one trial of a real card; False where its budget does not have them."""
        if self._bench.bench is not None or self._plan.operation == "reset" or self._plan.wear is None:
            return True
        done = sum(isinstance(r, Intent) and r.operation == "flash" for r in self._history.records)
        # One that puts another image back first, and the trial's own.
        return done + 2 <= self._plan.wear

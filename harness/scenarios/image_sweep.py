"""What sweeps of cards and of systems share: an undisturbed operation shows the points, the trials follow."""

from __future__ import annotations

import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Protocol

from harness.errors import HarnessError
from harness.judgement.records import Fault, RunStarted, ScenarioEnded, ScenarioStarted
from harness.record.history import History
from harness.registry.folder import TemporaryFolder
from harness.scenarios.states import state_of
from harness.scenarios.sweep import Ledger, Swept, Untold
from harness.scenarios.sweep_journal import Journal
from harness.scenarios.sweep_results import LaneResult, Trial

if TYPE_CHECKING:
    from harness.inventory.model import Inventory
    from harness.judgement.records import Subject

_NOT_PASSED: Final = "an undisturbed operation does not pass it"


class ImagePlan(Protocol):
    """What a sweep does with each lane, image by image. ``points``: empty: all that are passed."""

    @property
    def images(self) -> tuple[str, ...]:
        """By recipe; an empty name: the operation is done with none."""

    @property
    def actions(self) -> tuple[str, ...]:
        """What strikes."""

    @property
    def points(self) -> tuple[str, ...]:
        """Where; empty: at all points that are passed."""

    @property
    def repeat(self) -> int:
        """How often each is tried."""

    @property
    def trials(self) -> int:
        """How many there are of each image at most."""


def cells(
    plan: ImagePlan, passed: Iterable[str], makes_sense: Callable[[str, str], bool]
) -> list[tuple[str, str]]:
    """Return what is tried, as action and point: each action at the points named, or where it makes sense."""
    return [
        (action, point)
        for action in plan.actions
        for point in plan.points or passed
        if plan.points or makes_sense(action, point)
        for _ in range(plan.repeat)
    ]


class ImageLane(ABC):
    """One card or system. :param operation: as in the titles of its trials. :param by: who reports of it.

    :param stop: no further trial is begun once it is set.
    """

    def __init__(
        self,
        name: str,
        history: History,
        plan: ImagePlan,
        *,
        operation: str,
        by: str,
        subject: Subject,
        ledger: Ledger,
        stop: Event,
    ) -> None:
        self._name = name
        self._history = history
        self._plan: ImagePlan = plan
        self._operation = operation
        self._by = by
        self._subject = subject
        self._ledger = ledger
        self._stop = stop
        self._points: dict[str, tuple[str, ...]] = {}
        self._seconds = 0.0

    def run(self) -> None:
        """Look for the points that the operation passes, then run all trials.

        :raises HarnessError: the lab failed; what was recorded until then is in the history.
        """
        for of in self._plan.images:
            if self._stop.is_set():
                return
            found = cells(self._plan, self.look_for_points(of), self._makes_sense) if self._takes(of) else []
            self._ledger.spare(self._plan.trials - len(found))
            for action, point in found:
                if self._stop.is_set():
                    return
                if not self._ledger.is_done(of, point, action):
                    self._at(Trial(self._name, point, action, of=of, by=self._by))

    def look_for_points(self, of: str) -> tuple[str, ...]:
        """Return the points that an undisturbed operation passes, by such an operation."""
        began = time.monotonic()
        with self._scenario(f"{self._title(of)}, undisturbed"):
            self._points[of] = self._passed(of)
        self._seconds = time.monotonic() - began
        return self._points[of]

    def let_go(self) -> None:  # noqa: B027 -- nothing is what is to be done
        """Nothing is held for long: an operation under way comes to its end."""

    def result(self) -> LaneResult:
        """Return what was recorded so far, judged."""
        return LaneResult(self._name, self._ledger.trials(), push=self._seconds, points=self._points)

    def _title(self, of: str) -> str:
        return f"sweep {self._operation} {of}".rstrip()

    def _at(self, trial: Trial) -> None:
        """Make a trial, unless it is known that its point does not come."""
        if trial.point in self._points[trial.of]:
            self._trial(replace(trial, at=trial.point))
            return
        self._history.add(
            Fault(
                point=trial.point,
                action=trial.action,
                subject=self._subject,
                state="not-reached",
                detail=_NOT_PASSED,
            )
        )
        self._ledger.note(replace(trial, reason=_NOT_PASSED))

    @contextmanager
    def _scenario(self, name: str) -> Iterator[list[HarnessError]]:
        """Record the beginning and the end; what the block leaves in the list is what it ended with."""
        self._history.add(ScenarioStarted(scenario=name, subject=self._subject))
        ended: list[HarnessError] = []
        try:
            yield ended
        except BaseException as error:
            self._ended(name, error)
            raise
        self._ended(name, ended[0] if ended else None)

    def _ended(self, name: str, error: BaseException | None) -> None:
        state, reason = state_of(error)
        self._history.add(ScenarioEnded(scenario=name, state=state, reason=reason))

    # -- what each kind of lane does ------------------------------------------------------------------

    @abstractmethod
    def _passed(self, of: str) -> tuple[str, ...]:
        """Do it once with an image, undisturbed, and return the points that it passes."""

    @abstractmethod
    def _makes_sense(self, action: str, point: str) -> bool:
        """Return whether an action is worth a trial at a point that nobody named."""

    @abstractmethod
    def _trial(self, trial: Trial) -> None:
        """Do it once, disturbed, and note what came of it."""

    def _takes(self, of: str) -> bool:
        """Return whether anything may be tried with an image."""
        return True


class ImageSweep(Swept):
    """The part of a sweep that does not depend on what its lanes are."""

    inventory: Inventory
    lab_name: str | None
    plan: ImagePlan

    @property
    @abstractmethod
    def lanes(self) -> Sequence[str]:
        """The lanes by name."""

    @abstractmethod
    def check(self) -> None:
        """Return if it can be done. :raises ConfigurationError: an option is wrong."""

    @abstractmethod
    def lane(self, name: str, bench: Any, history: History, ledger: Ledger, stop: Event) -> ImageLane:
        """Return the trials of one lane."""

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """Have nothing: the lanes share nothing."""
        self.check()
        yield

    def started(self, run: str, lane: str, bench: object) -> RunStarted:
        """Return the first record: with what is tried."""
        versions = {"python": platform.python_version()}
        lab = self.inventory.lab(self.lab_name).name
        return RunStarted(run=run, lab=lab, versions=versions, options={**self.options})

    @property
    def trials(self) -> int:
        """How many trials there will be at most; each lane says, once it knows its points."""
        return len(self.lanes) * len(self.plan.images) * self.plan.trials

    def passed(self) -> Iterator[tuple[str, dict[str, list[str]]]]:
        """Yield each lane with the points that the operation passes, by image.

        They are found by one undisturbed operation of each. :raises HarnessError: that failed.
        """
        with closing(TemporaryFolder("hil-sweep-")) as folder:
            journal = Journal(folder.path, self.kind.name, {})
            for name in self.lanes:
                path = folder.path / f"history-{name.replace('/', '+')}.jsonl"
                with self.bench(name) as bench, History(path) as history:
                    history.add(self.started(folder.path.name, name, bench))
                    lane = self.lane(name, bench, history, Ledger(history, journal, Untold()), Event())
                    yield name, {of: list(lane.look_for_points(of)) for of in self.plan.images}

"""The trials of one emulated system: its update of a card, disturbed once, judged from what was recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar

from harness.errors import ControlPlaneError, HarnessError, InfrastructureError
from harness.judgement.checkers.image_state import REPORTER
from harness.judgement.records import Fault, Subject
from harness.plugin.exploring.played import Run
from harness.plugin.systems import System
from harness.scenarios.image_sweep import ImageLane, cells
from harness.scenarios.prepare import prepare
from harness.scenarios.states import state_of
from harness.scenarios.update_actions import ACTIONS, BETWEEN, OF_CARD, POINTS, REPORTED, makes_sense

if TYPE_CHECKING:
    from harness.inventory.model import Inventory
    from harness.lab.system_bench import SystemBench, Way
    from harness.plugin.images import ImageShelf
    from harness.record.history import History
    from harness.scenarios.promised import FlashedState, Promised
    from harness.scenarios.sweep import Ledger
    from harness.scenarios.sweep_results import Trial

T = TypeVar("T")
#: Lab seconds after which the conductor's audit has taken as failed what it was told nothing of: it passes
#: each 300 s and waits 3,600 s for a functional image (fact sheet of StarlingX, section 4.7); and after which
#: a word that comes late has come, too.
_AUDITED: Final = 4000.0
_HEARD: Final = 600.0


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """What a sweep does with each system. ``points``: empty: all that the update passes."""

    images: tuple[str, ...]
    actions: tuple[str, ...]
    points: tuple[str, ...] = ()
    repeat: int = 1
    way: Way = "rest"

    @property
    def trials(self) -> int:
        """How many there are of each image at most."""
        return len(cells(self, POINTS, makes_sense))


class SystemLane(ImageLane):
    """One emulated system, started anew for each trial. ``inventory``: with the defects that it has."""

    def __init__(
        self,
        inventory: Inventory,
        system: str,
        history: History,
        plan: UpdatePlan,
        shelf: ImageShelf,
        promised: Promised,
        *,
        ledger: Ledger,
        stop: Event,
    ) -> None:
        super().__init__(
            system,
            history,
            plan,
            operation="update",
            by=REPORTER,
            subject=Subject("record", system),
            ledger=ledger,
            stop=stop,
        )
        self._inventory = inventory
        self._plan: UpdatePlan = plan
        self._shelf = shelf
        self._promised = promised
        self._count = 0

    def _passed(self, of: str) -> tuple[str, ...]:
        """Do it once with an image, undisturbed, and return the points that it passes."""
        first = len(self._history.records)
        with self._fresh(of) as system:
            for point in OF_CARD:
                system.faults.at(point, "note", lambda: None)
            self._update(system, of, lambda point: None)
        faults = [r for r in self._history.records[first:] if isinstance(r, Fault) and r.state == "fired"]
        passed = {*BETWEEN, *(fault.point for fault in faults)}
        return tuple(point for point in POINTS if point in passed)

    def _makes_sense(self, action: str, point: str) -> bool:
        """Return whether an action is worth a trial at a point."""
        return makes_sense(action, point)

    # -- one trial ------------------------------------------------------------------------------------

    def _trial(self, trial: Trial) -> None:
        """Do it once, disturbed, and note what came of it."""
        began = time.monotonic()
        self._count += 1
        title = f"{self._title(trial.of)}, {trial.action} at {trial.point}, trial {self._count}"
        first = len(self._history.records)
        with self._scenario(title) as ended:
            try:
                reported, left = self._tried(trial)
                trial = replace(trial, reported=reported, truth=left)
            except HarnessError as error:
                ended.append(error)
                word, reason = state_of(error)
                trial = replace(trial, outcome=word, verdict=word, reason=reason)
        records = self._history.records[first:]
        struck = any(isinstance(each, Fault) and each.state == "fired" for each in records)
        if not struck and not trial.reason:
            trial = replace(trial, reason="the update ended before it came there")
        judged = title if struck and not ended else ""
        self._ledger.note(replace(trial, seconds=time.monotonic() - began), scenario=judged)

    def _tried(self, trial: Trial) -> tuple[str, str]:
        """Return what the system says of the image in the end, and how the card is left."""
        with self._fresh(trial.of) as system:
            card = next(iter(system.bench.cards.values())).driver
            before = self._promised.state(card.truth())
            if trial.point in OF_CARD:
                self._strike(system, trial.action, trial.point)
            reported = "refused"
            with suppress(ControlPlaneError):  # judged from what was recorded, as all else
                uuid = self._update(
                    system,
                    trial.of,
                    lambda point: self._between(system, trial.action) if point == trial.point else None,
                    lambda: self._undo(system, trial.action),
                )
                reported = _reported(system.bench, uuid)
            return reported, self._left_as(system, trial.of, before)

    # -- steps ----------------------------------------------------------------------------------------

    @contextmanager
    def _fresh(self, of: str) -> Iterator[System]:
        """Start the system at its beginning, its first card such that it takes the image."""
        from harness.lab.running import start_lab
        from harness.lab.system_bench import SystemBench

        with (
            start_lab(self._inventory) as running,
            SystemBench(running, self._name, self._history, way=self._plan.way) as bench,
        ):
            card = next(iter(bench.cards.values())).driver
            prepare(card, self._promised.given(of, None), bench.bench)
            system = System(Run(running, self._history, self._shelf), bench, self._shelf)
            system.faults.one_image = True
            bench.look()
            yield system
            system.faults.settle()

    def _update(
        self,
        system: System,
        of: str,
        comes_to: Callable[[str], None],
        undo: Callable[[], None] = lambda: None,
    ) -> str:
        """Upload, apply and write an image, wait until it is told what became of it, and boot.

        Return the image's uuid.

        :param comes_to: told of each point between two acts. :param undo: ends what disturbs.
        """
        comes_to("before-upload")
        uuid = _asked(partial(system.upload, of))
        comes_to("before-apply")
        _asked(partial(system.apply, uuid))
        comes_to("before-update")
        _asked(system.update)
        comes_to(REPORTED)
        undo()
        if _reported(system.bench, uuid) == "in-progress":
            system.pass_time(_AUDITED)
            system.pass_time(_HEARD)
        self._boot(system)
        return uuid

    def _boot(self, system: System) -> None:
        """Boot the hosts, as a person does who finds them locked, or under way for ever (section 4.7)."""
        way, hostname = system.bench.way, next(iter(system.bench.cards.values())).hostname
        if way.host(hostname).administrative == "locked":  # a card that could not be reset when it booted
            system.attempt(system.unlock)
            return
        try:
            system.boot()
        except ControlPlaneError:
            system.attempt(system.abort)
            system.attempt(system.boot)

    def _strike(self, system: System, name: str, at: str) -> None:
        action = ACTIONS[name]
        for what, value in action.strikes:
            if what == "abort":
                system.faults.at(at, what, partial(system.attempt, system.abort))
            elif action.of_host:
                system.disturb_host(what, on=bool(value), at=at)
            else:
                system.disturb(what, value, at=at)

    def _between(self, system: System, name: str) -> None:
        """Strike between two acts, and look: a host that booted before the next one did not after it."""
        self._strike(system, name, "")
        if name != "api-away":  # the look would be what the API does not answer
            system.look()

    def _undo(self, system: System, name: str) -> None:
        action = ACTIONS[name]
        for what, value in action.undone:
            if action.of_host:
                system.disturb_host(what, on=bool(value))
            else:
                system.disturb(what, value)

    def _left_as(self, system: System, of: str, before: FlashedState) -> str:
        """Return how the update left the card: old, new, factory, mixed, or unknown."""
        truth = next(iter(system.bench.cards.values())).driver.truth()
        return self._promised.state(truth).left_of(before, self._promised.after(of, before))


def _asked(act: Callable[[], T]) -> T:
    """Do something; ask for it once more where the API did not answer, as a person does."""
    try:
        return act()
    except InfrastructureError:
        return act()


def _reported(bench: SystemBench, image: str) -> str:
    """Return what the system says of an image on its first card, or else on any."""
    said = [state.status for state in bench.way.states() if state.image_uuid == image]
    return str(said[0]) if said else "nothing"

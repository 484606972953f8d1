"""What goes wrong in an emulated system and on its hosts: between two acts, or in the middle of an update."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from harness.errors import DeadlineError
from harness.faults.actions import moved_address
from harness.faults.points import POINTS, check_point
from harness.judgement.records import Fault, Subject
from harness.scenarios.prepare import NotApplicable

if TYPE_CHECKING:
    from harness.lab.bench import Bench, PowerAct
    from harness.lab.system_bench import PlacedCard, SystemBench

Value = int | float | str | bool | None
#: Where a fault strikes that waits for nothing.
NOW: Final = "between-acts"
#: Real seconds within which a card comes to a phase; lab seconds of a boot: reset, agent and its reports.
_REACHED_SECONDS: Final = 30.0
_BOOT_SECONDS: Final = 300.0
_PAUSES: Final = (0.005, 0.1)
#: What boots a host: name -> what is done to its power.
POWER: Final[dict[str, PowerAct]] = {"reboot": "reboot", "power-cut": "cycle"}


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What is to be done at a phase of an update, and afterwards, once lab time passes again."""

    point: str
    name: str
    act: Callable[[], object]
    after: Callable[[], object] = lambda: None


@dataclass
class SystemFaults:
    """The faults of one system. The first card's next update comes to their points."""

    bench: SystemBench
    _waiting: list[_Waiting] = field(default_factory=list)
    #: Whether a phase is held, so that no lab time passes.
    held: bool = False
    #: Whether an update writes one image: what does not come until it ends does not come at all.
    one_image: bool = False

    # -- what can go wrong ----------------------------------------------------------------------------

    def disturb(self, name: str, value: Value, at: str) -> None:
        """Make something go wrong, or right again: now, or at a phase of the next update.

        :raises NotApplicable: the system is real. :raises ConfigurationError: no such point or trouble.
        """
        lab, placed = self._lab(name), self._first()
        after: Callable[[], object] = lambda: None  # noqa: E731
        if name in POWER:
            act: Callable[[], object] = partial(lab.power, placed.driver.host.name, POWER[name])
            after = partial(self._booted, placed.hostname)
        elif name in ("move", "boot-elsewhere"):
            move = lab.moves_to if name == "move" else lab.boots_at
            act = partial(move, placed.driver.name, moved_address(placed.driver.address))
        else:
            act = partial(lab.trouble, self.bench.name, name, value)
        self._strike(_Waiting(at, _told(name, value), act, after))

    def disturb_host(self, name: str, on: bool, at: str) -> None:
        """Bring a circumstance of the first card's host about, or end it; as :meth:`disturb`."""
        host = self._first().driver.host.name
        act = partial(self._lab(name).condition, host, name, on)
        self._strike(_Waiting(at, f"{name} of {host}: {'on' if on else 'off'}", act))

    def at(self, point: str, name: str, act: Callable[[], object]) -> None:
        """Do something that is named ``name`` at a phase of the next update."""
        self._lab(name)
        self._strike(_Waiting(point, name, act))

    def _strike(self, waiting: _Waiting) -> None:
        if not waiting.point:
            waiting.act()
            self._record(waiting, "fired")
            waiting.after()
            return
        check_point(waiting.point)
        self._waiting.append(waiting)
        self._record(waiting, "armed")

    def _booted(self, hostname: str) -> None:
        self.bench.pass_time(_BOOT_SECONDS)
        self.bench.reach_again(hostname)

    # -- the points of an update ----------------------------------------------------------------------

    @contextmanager
    def meeting(self) -> Iterator[None]:
        """Begin an update in here: what waits for one of its phases is done there, while lab time stands."""
        if not self._waiting:
            yield
            return
        lab, card = self._lab("a fault"), self._first().driver.name
        held = self._next_point()
        lab.hold(card, held)
        met = False
        try:
            yield
            while point := self._next_point():
                if point != held:
                    lab.hold(card, held := point)
                met = self._meet(lab, card, point, while_updating=met and self.one_image)
        finally:
            lab.release(card)
            self.held = False

    def _meet(self, lab: Bench, card: str, point: str, *, while_updating: bool) -> bool:
        """Wait until the card is in a phase, and do what waits for it; return whether it came there."""
        now = [waiting for waiting in self._waiting if waiting.point == point]
        self._waiting = [waiting for waiting in self._waiting if waiting.point != point]
        try:
            lab.wait_held(card, point, _REACHED_SECONDS, while_updating=while_updating)
        except DeadlineError as error:
            for waiting in now:
                self._record(waiting, "not-reached", error.message)
            return False
        self.held = True
        for waiting in now:
            waiting.act()
            self._record(waiting, "fired")
        if not self._next_point():
            lab.release(card)
            self.held = False
        for waiting in now:
            waiting.after()
        return True

    def _next_point(self) -> str:
        return min((waiting.point for waiting in self._waiting), key=POINTS.index, default="")

    def settle(self) -> None:
        """Record what nothing ever came to; called before the scenario is judged."""
        for waiting in self._waiting:
            self._record(waiting, "not-reached", "no update began after it")
        self._waiting.clear()

    # -- looking on -----------------------------------------------------------------------------------

    @contextmanager
    def watching(self, hostname: str) -> Iterator[None]:
        """Begin an update in here: the system is looked at whenever it begins to write a card.

        :raises DeadlineError: the update does not end.
        """
        lab = self._lab("watching an update")
        cards = [name for name, placed in self.bench.cards.items() if placed.hostname == hostname]
        for card in cards:
            lab.hold(card, "preparing")
        try:
            before = self._states(hostname)
            yield
            self._look_on(lab, cards, hostname, before)
        finally:
            self.held = False
            for card in cards:
                lab.release(card)

    def _look_on(self, lab: Bench, cards: list[str], hostname: str, before: object) -> None:
        end, pause = time.monotonic() + _REACHED_SECONDS * (1 + len(cards)), _PAUSES[0]
        while True:
            held = {card: phase for card in cards if (phase := lab.held(card))}
            if "preparing" in held.values():
                self.bench.look()
            for card, phase in held.items():  # each phase comes once in an update: the next one is another
                lab.hold(card, "transferring" if phase == "preparing" else "preparing")
                pause = _PAUSES[0]
            if not held and self._is_over(hostname, before):
                return
            if time.monotonic() > end:
                raise DeadlineError(
                    f"Waited in vain for the update of {hostname} to end; last: {self._states(hostname)}."
                )
            # An emulated card tells of a phase only when it is asked.
            time.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])

    def _is_over(self, hostname: str, before: object) -> bool:
        busy = self.bench.way.host(hostname).device_image_update in ("in-progress", "in-progress-aborted")
        return not busy and self._states(hostname) != before

    def _states(self, hostname: str) -> list[tuple[object, ...]]:
        states = self.bench.way.states()
        return [(s.address, s.image_uuid, s.status) for s in states if s.hostname == hostname]

    # -- the lab --------------------------------------------------------------------------------------

    def _lab(self, name: str) -> Bench:
        if self.bench.bench is None:
            raise NotApplicable(f"{name} can be brought about in an emulated system alone")
        return self.bench.bench

    def _first(self) -> PlacedCard:
        first: PlacedCard = next(iter(self.bench.cards.values()))
        return first

    def _record(
        self, waiting: _Waiting, state: Literal["armed", "fired", "not-reached"], detail: str = ""
    ) -> None:
        name, _, said = waiting.name.partition(": ")
        self.bench.history.add(
            Fault(
                point=waiting.point or NOW,
                action=name,
                subject=Subject("record", self.bench.name),
                state=state,
                detail=detail or said,
            )
        )


def _told(name: str, value: Value) -> str:
    return name if value is None else f"{name}: {value}"

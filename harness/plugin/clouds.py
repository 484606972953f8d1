"""What scenarios do to a distributed cloud: images, labels, strategies, disturbances; all recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.errors import ConfigurationError, ControlPlaneError, DeadlineError, InfrastructureError
from harness.judgement.records import Fault, Subject

# Imported for the steps that methods here are taken as.
from harness.plugin import cloud_steps  # noqa: F401
from harness.plugin.scenario import step
from harness.plugin.systems import System
from harness.scenarios.journal import PAST_THE_VAULT, taking
from harness.scenarios.prepare import NotApplicable, prepare
from harness.scenarios.steps import STEPS, is_step, taken_as

if TYPE_CHECKING:
    from harness.controlplane.cloud_driver import CloudDriver
    from harness.controlplane.cloud_protocol import Strategy
    from harness.lab.bench import Bench
    from harness.lab.cloud_bench import CloudBench
    from harness.lab.system_bench import PlacedCard, SystemBench
    from harness.plugin.images import ImageShelf
    from harness.plugin.session import HilSession

#: Real seconds for a strategy that takes no real time but that of the emulator.
_EMULATED_DEADLINE: Final = 120.0
#: Real seconds between two looks whether the strategy goes on that is to bring a card to a phase.
_HELD_SECONDS: Final = 3.0
#: Lab seconds in which an audit that something has forced is over (section 5.6: every 40 s).
_AUDIT_SECONDS: Final = 90.0
#: Real seconds for the same, and for a strategy to be gone.
_REAL_AUDIT_DEADLINE: Final = 600.0
_DELETION_DEADLINE: Final = 60.0
#: Lab seconds after which an agent has told of a card that was fitted meanwhile.
_INVENTORY_SECONDS: Final = 300.0
#: Troubles that only show where hosts are updated, which an orchestration does in subclouds.
_OF_SUBCLOUDS: Final = ("api-down-after-unlock", "host-update-null", "slow")


@dataclass
class _Part(System):
    """One system of a cloud: what follows its acts is a look at the whole cloud."""

    cloud: CloudBench = field(kw_only=True)

    def look(self) -> None:
        """Record what every system of the cloud says now, and what their cards show."""
        self.cloud.look()


@dataclass
class Cloud:
    """The ``cloud`` fixture: a system controller and its subclouds, looked at together.

    ``controller``: its images, as subclouds get them. ``subclouds``: name -> that system.
    """

    session: HilSession
    bench: CloudBench
    shelf: ImageShelf
    controller: System = field(init=False)
    subclouds: Mapping[str, System] = field(init=False)
    _point: str = field(default="between-acts", init=False)
    #: The card that is held while a strategy goes on; empty: none is.
    _held: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.controller = self._part(self.bench.controller)
        self.subclouds = {name: self._part(system, name) for name, system in self.bench.subclouds.items()}

    def _part(self, system: SystemBench, place: str = "") -> System:
        return _Part(self.session, system, self.shelf, place, cloud=self.bench)

    @property
    def driver(self) -> CloudDriver:
        """What asks dcmanager, and records it."""
        return self.bench.driver

    @property
    def region_one(self) -> System:
        """The controller's images as its own sysinv takes them, past the vault and the subclouds."""
        return self._part(self.bench.region_one, PAST_THE_VAULT)

    # -- cards ----------------------------------------------------------------------------------------

    @taken_as("card-of-cloud")
    def given(self, card: str, *, boots_at: str | None = None, **state: Any) -> None:
        """Have a card, such as ``subcloud1/card0``, in a state (as the marker ``hil_given`` says it).

        :param boots_at: the address that it has from each boot to the reset that follows.
        :raises NotApplicable: it is in another state, and the lab cannot change that.
        """
        from harness.plugin.images import RootHashes
        from harness.scenarios.given import Given

        wanted = Given.parse(state, RootHashes(self.shelf))
        placed = self._placed(card)
        said = {**state, "boots_at": boots_at}
        words = ", ".join(f"{name} {value}" for name, value in said.items() if value is not None)
        with step(self.session, card, f"prepare: {words}"):
            if boots_at is not None:
                self._emulated(f"an address at boot, for {card},").boots_at(card, boots_at)
            if state:
                prepare(placed.driver, wanted, self.bench.controller.bench)
            self.bench.pass_time(_INVENTORY_SECONDS)

    def _placed(self, card: str) -> PlacedCard:
        cards: dict[str, PlacedCard] = {}
        for system in self.bench.subclouds.values():
            cards |= system.cards
        if card not in cards:
            raise ConfigurationError(
                f"No subcloud of {self.bench.name} has a card {card}.", hint=f"There are {', '.join(cards)}."
            )
        return cards[card]

    # -- the strategy ---------------------------------------------------------------------------------

    @taken_as("create-strategy")
    def create_strategy(self, **options: Any) -> Strategy:
        """Create the firmware strategy; ``options`` of
        :class:`harness.controlplane.cloud_protocol.StrategyOptions`."""
        from harness.controlplane.cloud_protocol import StrategyOptions

        with self._doing("create the strategy"):
            return self.driver.create_strategy(StrategyOptions(**options))

    @taken_as("apply-strategy")
    def apply_strategy(self) -> None:
        """Have the strategy begin; it goes on by itself, also in an emulated lab."""
        with self._doing("apply the strategy"):
            self.driver.apply_strategy()

    @taken_as("abort-strategy")
    def abort_strategy(self) -> None:
        """Ask that the strategy begins with no more subclouds."""
        with self._doing("abort the strategy"):
            self.driver.abort_strategy()

    @contextmanager
    def applied_until(self, card: str, phase: str) -> Iterator[Callable[[str], None]]:
        """Apply the strategy, and hold it where ``card`` is in a phase of its update, while the block lasts.

        What disturbs meanwhile is recorded there. The block is given what lets the card on to a later phase.

        :param phase: one of :data:`harness.faults.points.POINTS`.
        :raises NotApplicable: the cloud is real. :raises ControlPlaneError: the card does not come to it.
        """
        from harness.faults.points import check_point

        bench = self._emulated(f"holding {card} while it is {phase}")
        with taking(STEPS["hold-strategy"], {"card": card, "at": phase}) as inner:
            bench.hold(card, check_point(phase))
            try:
                self.apply_strategy()
                self._come_to(card, phase)
                self._held = card
                with inner():
                    yield self.go_on
            finally:
                self._point, self._held = "between-acts", ""
                bench.release(card)

    @is_step("go-on", of="cloud", to="flash-point")
    def go_on(self, to: str) -> None:
        """Let the card that is held with the strategy go on to a later phase of its update.

        :raises ConfigurationError: none is held. :raises ControlPlaneError: it does not come to it.
        """
        from harness.faults.points import check_point

        if not self._held:
            raise ConfigurationError(
                "No card is held that could go on.", hint="It is a step within `hold-strategy`."
            )
        self._emulated(f"holding {self._held}").hold(self._held, check_point(to))
        self._come_to(self._held, to)

    @contextmanager
    def applied_for(self, seconds: float) -> Iterator[Callable[[float], None]]:
        """Apply the strategy, and stop lab time ``seconds`` later, while the block lasts.

        The block is given what lets so many more seconds pass.

        :raises NotApplicable: the cloud is real.
        """
        bench = self._emulated("stopping lab time")
        with taking(STEPS["apply-strategy-for"], {"seconds": seconds}) as inner:
            bench.stop_time(seconds)
            try:
                self.apply_strategy()
                bench.wait_stopped(_EMULATED_DEADLINE)
                with inner():
                    yield self.go_on_for
            finally:
                bench.release_time()

    @is_step("go-on-for", of="cloud", seconds="seconds")
    def go_on_for(self, seconds: float) -> None:
        """Let so much more lab time pass, where it is stopped with the strategy, and stop it again."""
        bench = self._emulated("stopping lab time")
        bench.stop_time(seconds)
        bench.wait_stopped(_EMULATED_DEADLINE)

    def _come_to(self, card: str, phase: str) -> None:
        """Wait until the card is held; no longer than the strategy goes on."""
        self._point = phase
        end = time.monotonic() + _EMULATED_DEADLINE
        while True:
            try:
                return self._emulated("holding a card").wait_held(card, phase, _HELD_SECONDS)
            except DeadlineError as error:
                became = self._ended()
                if became is None and time.monotonic() < end:
                    continue
                self._struck("hold", self._placed(card).driver.subject, error.message, "not-reached")
                raise ControlPlaneError(
                    f"{card} did not come to {phase}: {became or 'it goes on'}."
                ) from None

    def _ended(self) -> str | None:
        """Return in words what became of the strategy; None while it goes on, or nobody says."""
        from harness.controlplane.cloud_protocol import ENDED
        from harness.controlplane.told import shown

        try:
            strategy = self.driver.strategy()
        except InfrastructureError:
            return None
        if strategy is None:
            return "the strategy is gone"
        return shown(strategy) if strategy.state in ENDED else None

    @taken_as("wait-for-strategy", states="state")
    def wait_for_strategy(self, *states: str, deadline: float | None = None) -> Strategy:
        """Wait until the strategy has one of ``states``, without any: has ended; look, and return it.

        :param deadline: real seconds. :raises DeadlineError: it does not in time; with what was seen last.
        :raises ControlPlaneError: it ended otherwise.
        """
        with self._doing("the strategy goes on"):
            try:
                return self.driver.wait_for_strategy(*states, deadline=deadline or self._deadline())
            finally:
                self._reach_again()
                self.look()

    @taken_as("orchestrate")
    def orchestrate(self, **options: Any) -> Strategy:
        """Create a strategy, apply it, and wait until it has ended; return it, however it has."""
        self.create_strategy(**options)
        self.apply_strategy()
        return self.wait_for_strategy()

    @taken_as("delete-strategy")
    def delete_strategy(self) -> None:
        """Delete the strategy, and wait until it is gone."""
        with self._doing("delete the strategy"):
            self.driver.delete_strategy()
            self.bench.pass_time(1.0)
            self.driver.wait_until_deleted(deadline=_DELETION_DEADLINE)

    def _deadline(self) -> float:
        from harness.controlplane.cloud_driver import STRATEGY_DEADLINE

        real = STRATEGY_DEADLINE * max(1, len(self.subclouds))
        return real if self.bench.controller.bench is None else _EMULATED_DEADLINE

    def _reach_again(self) -> None:
        """Reach the hosts of the subclouds anew: the strategy has booted them."""
        for system in self.bench.subclouds.values():
            for hostname in sorted(set(system.hostnames.values())):
                system.reach_again(hostname)

    # -- what else happens ----------------------------------------------------------------------------

    @taken_as("audit-cloud")
    def audit(self) -> None:
        """Let the audit pass that a change or the end of a strategy has forced, and look."""
        with self._doing("the audit"):
            if self.bench.controller.bench is None:
                self.driver.wait_for_subclouds(
                    "firmware is audited on all subclouds that are online",
                    lambda one: one.availability != "online" or one.firmware_sync_status != "unknown",
                    deadline=_REAL_AUDIT_DEADLINE,
                )
            else:
                self.bench.pass_time(_AUDIT_SECONDS)
            self.look()

    @taken_as("disturb-cloud")
    def disturb(
        self, name: str, value: int | float | str | bool | None = None, *, subcloud: str | None = None
    ) -> None:
        """Make something go wrong on the system controller or a subcloud, or right again
        (:meth:`harness.lab.bench.Bench.trouble`).

        :raises NotApplicable: the cloud is real.
        :raises ConfigurationError: there is no such trouble there, or it does not take the value.
        """
        if name in _OF_SUBCLOUDS and subcloud is None:
            raise ConfigurationError(
                f"The trouble {name!r} is one of a subcloud, and none is named.",
                hint="Say which: subcloud=NAME.",
            )
        system = subcloud or self.bench.name
        self._emulated(name).trouble(system, name, value)
        self._struck(name, Subject("record", system), "" if value is None else str(value))

    def _struck(
        self, name: str, subject: Subject, detail: str, state: Literal["fired", "not-reached"] = "fired"
    ) -> None:
        self.bench.controller.history.add(
            Fault(point=self._point, action=name, subject=subject, state=state, detail=detail)
        )

    @taken_as("restart-vim")
    def restart_vim(self, subcloud: str) -> None:
        """Restart the VIM of a subcloud alone, as its service manager does; what it carries out goes on.

        :raises InfrastructureError: the service manager of its controller does not do that.
        """
        with step(self.session, subcloud, "restart the VIM"):
            host = self.bench.subclouds[subcloud].restart_vim()
            self._struck("restart-vim", Subject("record", subcloud), f"on {host}")

    @taken_as("look")
    def look(self) -> None:
        """Record what every system of the cloud says now, and what their cards show."""
        self.bench.look()

    @taken_as("wait")
    def pass_time(self, seconds: float) -> None:
        """Let lab time pass, and look."""
        with self._doing(f"{seconds:g} s of lab time"):
            self.bench.pass_time(seconds)
            self.look()

    def _emulated(self, what: str) -> Bench:
        bench = self.bench.controller.bench
        if bench is None:
            raise NotApplicable(f"{what} can be brought about in an emulated cloud alone")
        return bench

    @contextmanager
    def _doing(self, title: str) -> Iterator[None]:
        with step(self.session, self.bench.name, title):
            yield

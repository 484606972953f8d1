"""A distributed cloud of a lab: system controller and subclouds opened, and looked at at one moment."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from harness.controlplane.cloud_gate import CloudGate
from harness.controlplane.cloud_protocol import CENTRAL_REGION, Step
from harness.controlplane.gate import Gate
from harness.errors import ConfigurationError, ControlPlaneError, HarnessError, InfrastructureError
from harness.hosts.connect import connect
from harness.judgement.records import Intent, Subject
from harness.lab.system_bench import MakeGate, SystemBench, Way
from harness.lab.systems import controller_of, login_of
from harness.record.operations import Recording, recorded_operation

if TYPE_CHECKING:
    from harness.controlplane.cloud_driver import CloudDriver
    from harness.controlplane.cloud_protocol import CloudWayIn
    from harness.inventory.model import Card, Inventory, Lab
    from harness.lab.running import RunningLab

#: What a look at the system controller asks for.
ASKED: Final = ("image", "label", "alarm", "subcloud", "strategy", "step")
#: What a system, or the way to it, is to blame for.
_UNANSWERED: Final = (ControlPlaneError, InfrastructureError)
#: The region of the system controller's own sysinv: an image that is given to that does not reach subclouds.
OWN_REGION: Final = "RegionOne"


def clouds_of(lab: Lab) -> dict[str, list[str]]:
    """Return the system controllers of a lab that have subclouds with cards, and these."""
    found: dict[str, list[str]] = {}
    carded = {host.system for host in lab.hosts.values() if host.cards}
    for name, controller in lab.controllers.items():
        if controller.parent is not None and name in carded:
            found.setdefault(controller.parent, []).append(name)
    return found


def narrowed_to_cloud(inventory: Inventory, lab_name: str | None, controller: str) -> Inventory:
    """Return the inventory with nothing in the lab but one system controller and its subclouds.

    :raises ConfigurationError: there is no such lab or cloud.
    """
    lab = inventory.lab(lab_name)
    known = clouds_of(lab)
    if controller not in known:
        raise ConfigurationError(
            f"The lab {lab.name} has no system controller {controller} of subclouds with cards.",
            hint=f"Its clouds: {', '.join(known) or 'none'}.",
        )
    kept = {controller, *known[controller]}
    hosts = {name: host for name, host in lab.hosts.items() if host.system in kept}
    controllers = {name: entry for name, entry in lab.controllers.items() if name in kept}
    own = lab.model_copy(update={"hosts": hosts, "controllers": controllers, "registries": {}})
    return inventory.model_copy(update={"labs": {lab.name: own}, "default_lab": lab.name})


class CloudBench:
    """A system controller with its subclouds and their cards. A context manager.

    :param lab: is running. :param controller: name of the system controller. :param history: where all
        is recorded. :param way: by API or by command. :param allowed: what ``--hil-irreversible`` names.
    :param only: the subclouds that are opened; None: all that have cards.
    """

    def __init__(
        self,
        lab: RunningLab,
        controller: str,
        history: Recording,
        *,
        way: Way = "rest",
        allowed: frozenset[str] = frozenset(),
        only: Collection[str] | None = None,
    ) -> None:
        from harness.controlplane.cloud_driver import CloudDriver

        self.name = controller
        self._lab = lab
        self._open = ExitStack()
        self._given = history
        self._how: Way = way
        try:
            asked = self._way(way)
            gate = self._gate(asked, allowed)
            self.controller = self._system(controller, CENTRAL_REGION, lambda *_, **__: gate, allowed)
            #: Name -> subcloud.
            self.subclouds: dict[str, SystemBench] = {}
            for name in clouds_of(lab.entry).get(controller, ()) if only is None else only:
                above = (gate, self.controller.way)
                below = self.subclouds[name] = self._system(name, "", partial(Gate, above=above), allowed)
                gate.add(name, below.gate, below.way)
            self.driver: CloudDriver = CloudDriver(asked, gate, self.controller.way, self.controller.history)
        except BaseException:
            self.close()
            raise

    # -- opening --------------------------------------------------------------------------------------

    def _way(self, way: Way) -> CloudWayIn:
        entry = controller_of(self._lab, self.name)
        made: CloudWayIn
        if way == "rest":
            from harness.controlplane.cloud_rest import CloudRest

            made = CloudRest(self.name, login_of(self._lab, entry, CENTRAL_REGION))
        else:
            from harness.controlplane.cloud_cli import CloudCli

            hosts = self._lab.entry.hosts
            own = {
                name: connect(host, self._lab.access(name))
                for name, host in hosts.items()
                if host.system == self.name
            }
            for host in own.values():
                self._open.callback(host.close)
            made = CloudCli(self.name, *own.values())
        self._open.callback(made.close)
        return made

    def _gate(self, asked: CloudWayIn, allowed: frozenset[str]) -> CloudGate:
        subclouds = clouds_of(self._lab.entry).get(self.name, ())
        hosts = [host for host in self._lab.entry.hosts.values() if host.system in subclouds]
        cards: dict[tuple[str, str], Card] = {
            (f"{host.system}/{host.name}", card.address): card
            for host in hosts
            for card in host.cards.values()
        }
        real, fence = self._lab.entry.is_real(self.name), partial(self._lab.leases.check_system, self.name)
        updates = self._lab.leases.updates
        return CloudGate(self.name, cards, asked, real=real, allowed=allowed, fence=fence, updates=updates)

    def _system(self, name: str, region: str, gated: MakeGate, allowed: frozenset[str]) -> SystemBench:
        opened = SystemBench(
            self._lab, name, self._given, way=self._how, allowed=allowed, region=region, gated=gated
        )
        return self._open.enter_context(opened)

    @cached_property
    def region_one(self) -> SystemBench:
        """The system controller's own sysinv, which tells no subcloud what it is given."""
        gate = self.controller.gate
        return self._system(self.name, OWN_REGION, lambda *_, **__: gate, frozenset())

    # -- what is done with it -------------------------------------------------------------------------

    def look(self) -> None:
        """Record what the system controller says, then what each subcloud says and what its cards show.

        A system that does not answer, or refuses to say something, keeps no other from being looked at; that
        is recorded, and the first of it is raised at the end.
        """
        at, history, reporter = 0, self.controller.history, self.controller.driver.reporter
        stepped: set[str] = set()
        asked = self.controller.asked(*ASKED)
        told = {"asked": asked, "subclouds": list(self.subclouds), "reporter": reporter}
        intent = Intent(operation="look", subject=Subject("record", self.name), parameters=told)
        failed: list[HarnessError] = []
        try:
            with self.controller.one_moment(), recorded_operation(history, intent) as underway:
                at = underway.intent
                stepped |= self._ask_controller()
        except _UNANSWERED as error:
            failed.append(error)
        for subcloud in self.subclouds.values():
            try:
                subcloud.look(of=at, orchestrated=subcloud.name in stepped)
            except _UNANSWERED as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def _ask_controller(self) -> set[str]:
        """Ask for everything; what it refuses to say keeps it from saying no other thing.

        Return the subclouds that its strategy has a step for.
        """
        driver = self.controller.driver
        stepped: set[str] = set()

        def progress() -> None:
            stepped.update(said.cloud for said in self.driver.progress() if isinstance(said, Step))

        asked = (driver.images, driver.labels, self.driver.subclouds, progress)
        if refused := list(self.controller.ask(*asked)):
            raise refused[0]
        return stepped

    def pass_time(self, seconds: float) -> None:
        """Let lab time pass where it is virtual, with all that falls due; a real lab's passes by itself."""
        self.controller.pass_time(seconds)

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self._open.close()

    def __enter__(self) -> CloudBench:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

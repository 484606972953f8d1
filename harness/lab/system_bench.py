"""A StarlingX system of a lab: its way in and its cards opened, looked at together, in the lab's own time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from harness.cards.driver import SETTLE, CardDriver
from harness.cards.truth import CardTruth
from harness.errors import ConfigurationError, ControlPlaneError, InfrastructureError, NotOfferedError
from harness.hosts.connect import connect
from harness.hosts.protocol import Asked
from harness.images.facts import image_facts
from harness.judgement.records import Claim, Intent, Observation, Record, Subject
from harness.judgement.values import Unknown
from harness.record.operations import Recording, record_refusal, recorded_operation

if TYPE_CHECKING:
    from harness.cards.interlock import CardEntry
    from harness.cards.update_count import UpdateCount
    from harness.controlplane.changes import WayIn
    from harness.controlplane.driver import SystemDriver
    from harness.controlplane.gate import Gate
    from harness.controlplane.stored_images import StoredImages
    from harness.hosts.protocol import Host
    from harness.inventory.model import Card, Inventory, Lab
    from harness.lab.running import RunningLab

Way = Literal["rest", "cli"]
R = TypeVar("R", bound=Record)
#: What a look asks for.
ASKED: Final = ("image", "state", "label", "device", "host", "alarm")
#: And of a system that is orchestrated.
VIM_STRATEGY: Final = "vim-strategy"
#: Seconds that an emulated card may take to answer after a reset: lab time jumps, so it is there at once.
_EMULATED_SETTLE: Final = 0.2
#: Says that the retimers are to be reset at the next boot (fact sheet of StarlingX, section 3.2).
_RETIMER_FLAG: Final = "/etc/platform/.sysinv_n3000_retimer"
#: The files that CLI and inventory take their names from; read, because commands of hosts differ.
_HOSTNAME: Final = "/proc/sys/kernel/hostname"


class MakeGate(Protocol):
    """Makes the interlock of a system: :class:`harness.controlplane.gate.Gate`, or one that knows more."""

    def __call__(
        self,
        name: str,
        cards: Mapping[tuple[str, str], Card],
        /,
        *,
        real: bool,
        allowed: frozenset[str],
        fence: Callable[[], None],
        updates: UpdateCount,
    ) -> Gate:
        """Return it."""
        ...


class _LabTimed:
    """Hands records on with the time of the lab that they were made at."""

    def __init__(self, history: Recording, now: Callable[[], float]) -> None:
        self._history = history
        self._now = now
        self._moment: float | None = None

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Give all records the time of now while the block lasts."""
        self._moment = self._now()
        try:
            yield
        finally:
            self._moment = None

    def add(self, record: R) -> R:
        """Keep ``record``; return it as it was kept."""
        if record.source_time is None and isinstance(record, (Claim, Observation, Intent)):
            moment = self._now() if self._moment is None else self._moment
            record = replace(record, source_time=moment)
        return self._history.add(record)


@dataclass(frozen=True, slots=True)
class PlacedCard:
    """A card, and the name that the system knows its host by."""

    driver: CardDriver
    hostname: str


def narrowed(inventory: Inventory, lab_name: str | None, system: str) -> Inventory:
    """Return the inventory with nothing in the lab but one system and its hosts.

    :raises ConfigurationError: there is no such lab or system, or no host of it.
    """
    lab = inventory.lab(lab_name)
    hosts = {name: host for name, host in lab.hosts.items() if host.system == system}
    if system not in lab.controllers or not hosts:
        raise ConfigurationError(
            f"The lab {lab.name} has no system {system} with hosts.",
            hint=f"Its systems: {', '.join(systems_of(lab)) or 'none'}.",
        )
    parent = lab.controllers[system].parent
    controllers = {name: c for name, c in lab.controllers.items() if name in (system, parent)}
    own = lab.model_copy(update={"hosts": hosts, "controllers": controllers, "registries": {}})
    return inventory.model_copy(update={"labs": {lab.name: own}, "default_lab": lab.name})


def systems_of(lab: Lab) -> list[str]:
    """Return the systems of a lab that have a host with a card."""
    return [name for name in lab.controllers if any(h.system == name and h.cards for h in lab.hosts.values())]


class SystemBench:
    """One system, reached by one way, with its cards. A context manager.

    :param lab: is running. :param history: where all is recorded. :param way: by its API or its command.
    :param allowed: what ``--hil-irreversible`` names.
    :param region: of its services, where it has several. :param gated: makes its interlock.
    """

    def __init__(
        self,
        lab: RunningLab,
        system: str,
        history: Recording,
        *,
        way: Way = "rest",
        allowed: frozenset[str] = frozenset(),
        region: str = "",
        gated: MakeGate | None = None,
    ) -> None:
        self.name = system
        self.bench = lab.bench if lab.entry.controllers[system].emulated else None
        self.history: Recording = history if self.bench is None else _LabTimed(history, self.bench.lab_time)
        self._lab = lab
        self._region = region
        self._open = ExitStack()
        try:
            hosts = {name: self._connected(name) for name, h in lab.entry.hosts.items() if h.system == system}
            self.hostnames = {name: _hostname(host) for name, host in hosts.items()}
            self._hosts = tuple(hosts.values())
            self.cards = dict(self._cards(hosts, allowed))
            self.way = self._rest() if way == "rest" else self._cli(hosts)
            self._open.callback(self.way.close)
            self.gate = self._gate(gated, allowed)
            self.gate.look_with(self._standing)
            self.driver = self._driver()
            self._stored = self._stored_images(hosts)
        except BaseException:
            self.close()
            raise

    # -- opening --------------------------------------------------------------------------------------

    def _connected(self, name: str) -> Host:
        refused = partial(record_refusal, self.history, name)
        host = connect(self._lab.entry.host(name), self._lab.access(name), refused=refused)
        self._open.callback(host.close)
        return host

    def _cards(self, hosts: Mapping[str, Host], allowed: frozenset[str]) -> Any:
        for name, host in hosts.items():
            entry = self._lab.entry.host(name)
            for card in entry.cards.values():
                driver = CardDriver(
                    host,
                    card,
                    self.history,
                    real=entry.real,
                    allowed=allowed,
                    sysfs=entry.sysfs,
                    settle=SETTLE if entry.real else _EMULATED_SETTLE,
                    fence=partial(self._lab.leases.check, f"{name}/{card.name}"),
                    updates=self._lab.leases.updates,
                )
                yield driver.name, PlacedCard(driver, self.hostnames[name])

    def _gate(self, gated: MakeGate | None, allowed: frozenset[str]) -> Gate:
        from harness.controlplane.gate import Gate

        entries = {
            (placed.hostname, placed.driver.address): self._lab.entry.card(name)[1]
            for name, placed in self.cards.items()
        }
        real = self._lab.entry.is_real(self.name)
        fence = partial(self._lab.leases.check_system, self.name)
        updates = self._lab.leases.updates
        return (gated or Gate)(self.name, entries, real=real, allowed=allowed, fence=fence, updates=updates)

    def _driver(self) -> SystemDriver:
        from harness.controlplane.driver import SystemDriver

        return SystemDriver(self.way, self.gate, self.history)

    def _stored_images(self, hosts: Mapping[str, Host]) -> StoredImages | None:
        """Return what reads images back, as the agent of a host does; the interlock judges by it."""
        from harness.controlplane.stored_images import StoredImages

        fetching = [*(placed.driver.host for placed in self.cards.values()), *hosts.values()]
        if not fetching:
            return None
        stored = StoredImages(fetching[0], self.way)
        self.gate.read_with(stored.of)
        return stored

    def _rest(self) -> WayIn:
        from harness.controlplane.rest import RestWay
        from harness.lab.systems import login_of

        return RestWay(self.name, login_of(self._lab, self._lab.entry.controllers[self.name], self._region))

    def _cli(self, hosts: Mapping[str, Host]) -> WayIn:
        from harness.controlplane.cli import CliWay

        return CliWay(self.name, *hosts.values(), region=self._region)

    def _standing(self, card: CardEntry) -> CardTruth | None:
        """Read a card of the system, wherever it is by now; None for one that is none of its own."""
        own = (placed for name, placed in self.cards.items() if self._lab.entry.card(name)[1] is card)
        placed: PlacedCard | None = next(own, None)
        if placed is None:
            return None
        fields = {"identity", "update_status", *(("flash_count",) if card.wear else ())}
        try:
            truth = placed.driver.truth(fields)
            if card.identity is not None and truth.identity != card.identity:
                placed.driver.locate()
                truth = placed.driver.truth(fields)
        except InfrastructureError as error:
            return CardTruth(identity=Unknown(error.message))
        return truth

    # -- what is done with it -------------------------------------------------------------------------

    def look(self, of: int | None = None, *, orchestrated: bool = False) -> None:
        """Record everything that the system says, and what each of its cards shows, at this moment.

        :param of: the look at its system controller that it is part of. :param orchestrated: ask its VIM for
            the strategy that it carries out, too, where it has one.
        :raises HarnessError: it does not answer, or what it answers cannot be read.
        """
        asked = self.asked(*ASKED, *([VIM_STRATEGY] if orchestrated else []))
        told = {"asked": asked, "reporter": self.driver.reporter} | ({} if of is None else {"of": of})
        intent = Intent(operation="look", subject=Subject("record", self.name), parameters=told)
        with self.one_moment(), recorded_operation(self.history, intent) as underway:
            refused = list(self.ask(*self._parts(orchestrated)))
            seen: set[str] = set()
            for name, placed in self.cards.items():
                due = self._card(name, placed, underway.intent)
                if placed.hostname not in seen:
                    self._host(placed, due, underway.intent)
                    seen.add(placed.hostname)
            if refused:
                raise refused[0]

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Let a look be of one moment: of the lab's clock, and of what the system answers."""
        with ExitStack() as block:
            if isinstance(self.history, _LabTimed):
                block.enter_context(self.history.one_moment())
            block.enter_context(self.way.one_look())
            yield

    @property
    def time_goes_on(self) -> bool:
        """Whether things can happen while it is looked at, as they do in each real system."""
        return self._lab.entry.is_real(self.name)

    def asked(self, *kinds: str) -> list[str]:
        """Return the kinds that a look asks for by :meth:`ask`; alarms stand twice where that is done."""
        return [*kinds, *(["alarm"] if self.time_goes_on else [])]

    def ask(self, *parts: Callable[[], object]) -> Iterator[ControlPlaneError]:
        """Ask for the parts of a look; yield what the system refuses, which keeps no other from being asked.

        Alarms come last, and where time goes on first too: whoever holds them to the rest can tell by that
        whether one changed meanwhile.
        """
        for part in ([self.driver.alarms] if self.time_goes_on else []) + [*parts, self._alarms_now]:
            try:
                part()
            except ControlPlaneError as error:
                yield error

    def _alarms_now(self) -> None:
        with self.way.one_look():  # of its own: what it has said of them in this look is not said again
            self.driver.alarms()

    def _parts(self, orchestrated: bool) -> list[Callable[[], object]]:
        parts: list[Callable[[], object]] = [self.driver.images, self.driver.states, self.driver.labels]
        for hostname in self.hostnames.values():
            parts += [partial(self._devices, hostname), partial(self.driver.host, hostname)]
        return [*parts, *([self._vim_strategy] if orchestrated else [])]

    def _vim_strategy(self) -> None:
        with suppress(NotOfferedError):  # it has no VIM, or none that we may ask; then nothing is said
            self.driver.vim_strategy()

    def _devices(self, hostname: str) -> None:
        """Ask for a host's devices; a list that shows no field of a card is followed by each of them."""
        for device in self.driver.devices(hostname):
            if isinstance(device.bitstream_id, Unknown) and device.device_id == "0b30":
                self.driver.device(hostname, device.name)

    def _host(self, placed: PlacedCard, due: bool, intent: int) -> None:
        """Record what a host has to do with its cards at its next boot."""
        values: dict[str, Any] = {"system": self.name, "hostname": placed.hostname}
        name = f"{self.name}/host/{placed.hostname}"
        self.history.add(
            Observation(
                probe="host",
                subject=Subject("record", name, placed.driver.host.name),
                values=values | {"retimer_flag": due},
                sources={"retimer_flag": _RETIMER_FLAG},
                intent=intent,
            )
        )

    def download(self, images: Iterable[str]) -> None:
        """Record what the controller gives of images (uuids), as the agent of a host gets it."""
        from harness.controlplane.stored_images import PROBE, downloaded

        if self._stored is None:
            return
        for uuid in images:
            content, status = self._stored.given(uuid)
            values = downloaded(content, status)
            if not isinstance(content, Unknown) and not self.gate.knows(uuid):
                values["image"] = image_facts(content, uuid).to_json()
            subject = Subject("record", f"{self.name}/image/{uuid}")
            place = f"HTTP of the controller, by curl on {self._stored.host.name}"
            self.history.add(
                Observation(probe=PROBE, subject=subject, values=values, sources={"sha256": place})
            )

    def _card(self, name: str, placed: PlacedCard, intent: int) -> bool:
        """Read a card, wherever it is by now, record what it shows, and let the interlock know its place.

        Return whether the retimers of its host are to be reset, which is read in the same round trip.
        """
        card = placed.driver
        truth, (due,) = card.truth_beside([Asked(("test", "-e", _RETIMER_FLAG))])
        # One of its own network functions may stand now where it was: a device, but no card.
        if not truth.on_bus or isinstance(truth.identity, Unknown):
            with suppress(InfrastructureError):  # it is off the bus: that is what was read
                card.locate()
                truth = card.truth()
        entry = self._lab.entry.card(name)[1]
        known = entry.identity is None or truth.identity == entry.identity
        self.gate.place(entry, (placed.hostname, card.address) if truth.on_bus and known else None)
        self.history.add(
            Observation(
                probe="card",
                subject=card.subject,
                values=truth.values() | {"system": self.name, "hostname": placed.hostname},
                sources=truth.sources,
                intent=intent,
            )
        )
        return due.exit_code == 0

    def restart_vim(self) -> str:
        """Restart the system's VIM alone; return the name of the host that it runs on.

        :raises InfrastructureError: that is not to be had there. :raises DeadlineError: it stays away.
        """
        from harness.lab.vim_service import VimService

        return VimService(self.name, self._hosts).restart()

    def reach_again(self, hostname: str, *, deadline: float = 300.0) -> None:
        """Reach a host anew that has booted: what is left of the link from before may not know it yet.

        :raises DeadlineError: it takes no login in time.
        """
        for host in {placed.driver.host for placed in self.cards.values() if placed.hostname == hostname}:
            host.close()
            host.wait_until_reachable(deadline=deadline)

    def pass_time(self, seconds: float) -> None:
        """Let lab time pass where it is virtual, with all that falls due; a real lab's passes by itself."""
        if self.bench is not None:
            self.bench.pass_time(seconds)

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self._open.close()

    def __enter__(self) -> SystemBench:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _hostname(host: Host) -> str:
    name = host.read(_HOSTNAME)
    text = name.decode(errors="replace").strip() if isinstance(name, bytes) else str(name).strip()
    if not text:
        raise InfrastructureError(f"{host.name} does not say its hostname in {_HOSTNAME}.")
    return text

"""What an inventory holds: labs with their controllers, hosts, cards and registries, as frozen data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, model_validator

from harness.errors import ConfigurationError
from harness.inventory.entries import (
    ByName,
    Credential,
    Entry,
    EntryError,
    Named,
    no_such_entry,
    unknown_name,
)
from harness.inventory.forms import (
    CskId,
    FilePath,
    MacAddress,
    Name,
    PciAddress,
    ProgramName,
    RemotePath,
    SrRoot,
    UploadDir,
    Url,
    User,
)
from harness.inventory.places import LabgridPlace
from harness.inventory.power import Power
from harness.inventory.reach import SshAccess, check_jumps
from harness.inventory.registries import Registry

Irreversible = Literal["root-key", "key-cancellation"]


ProfileValue = bool | int | float | str | list[str]


def _whole_number(value: object) -> object:
    # To Python, true and 1.0 are 1.
    if type(value) is not int:
        raise ValueError(f"{value!r} is not allowed; write 1, as a plain number")
    return value


class Tools(Entry):
    """The programs on a host that the drivers call; a bare name is looked up in the host's PATH.

    Where the vendor's tools are not on the host, ``docker`` or ``ctr`` runs the image that has them.
    """

    fpgasupdate: ProgramName = "fpgasupdate"
    fpgainfo: ProgramName = "fpgainfo"
    rsu: ProgramName = "rsu"
    docker: ProgramName = "docker"
    ctr: ProgramName = "ctr"


class EmulatedHost(Entry):
    """A host that the emulated lab provides. ``power: false`` makes one that cannot be switched.

    ``generation``: of the driver that its kernel has (A out of tree, B and C between, D in-tree);
    ``era``: where the vendor's tools are, on the host or in an image that docker or containerd runs.
    ``recording``: a file of `hil record`; the host is then what was recorded, and nothing else.
    ``bmc``: its power is switched by a management controller of this kind, as that of a real one is.
    ``tool_defects``: what is wrong with its tools and its driver (`hil defects list --kind tool`).
    """

    hostname: Name = "controller-0"
    recording: FilePath | None = None
    generation: Literal["A", "B", "C", "D"] = "D"
    era: Literal["host", "docker", "containerd"] = "host"
    power: StrictBool = True
    bmc: Literal["redfish"] | None = None
    tool_defects: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _bmc_switches(self) -> EmulatedHost:
        if self.bmc and (not self.power or self.recording is not None):
            raise EntryError("switches the host's power, and this one's cannot be switched", "bmc")
        return self


class EmulatedCard(Entry):
    """State in which an emulated card begins, and where it departs from the default profile.

    ``sr_root``: root entry hash (hex) or the name of a root-key recipe; absent: not programmed.
    ``moves_to``: PCI address at which the card comes back after its next reset. ``boots_at``: one at which it
    comes up whenever its host boots, until its first reset.
    """

    profile: Mapping[str, ProfileValue] = Field(default_factory=dict)
    moves_to: PciAddress | None = None
    boots_at: PciAddress | None = None
    sr_root: SrRoot | None = None
    sr_cancelled: tuple[CskId, ...] = ()
    flash_count: StrictInt = Field(default=0, ge=0, le=32768)

    @model_validator(mode="after")
    def _cancelled_needs_root(self) -> EmulatedCard:
        if self.sr_cancelled and self.sr_root is None:
            raise ValueError("sr_cancelled needs sr_root: a card without a root cannot cancel a CSK")
        return self


class Wear(Entry):
    """How much a card may be worn. Its flash has a limited number of updates (n3000.md, section 4.6).

    ``flash_count``: at this value of its own counter no further update begins. ``per_run``: so many updates
    begin in one run at most.
    """

    flash_count: StrictInt | None = Field(default=None, ge=1)
    per_run: StrictInt | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _says_something(self) -> Wear:
        if self.flash_count is None and self.per_run is None:
            raise ValueError("give flash_count, per_run, or both")
        return self


class Card(Named):
    """One FPGA card: where it is, who it is (``identity``: its first MAC), what it may suffer."""

    address: PciAddress
    identity: MacAddress | None = None
    irreversible: tuple[Irreversible, ...] = ()
    wear: Wear | None = None
    emulated: EmulatedCard | None = None

    @property
    def places(self) -> dict[str, str]:
        """Every PCI address that the card may be found at, by the key that says so."""
        found = {"address": self.address}
        for key in ("moves_to", "boots_at"):
            elsewhere = getattr(self.emulated, key, None)
            if elsewhere is not None:
                found[f"emulated.{key}"] = elsewhere
        return found


#: A card is a switch with four ports below a root port (n3000.md 1.1): root port, upstream port, downstream
#: ports, and a bus for each of four devices; the management function stands on the fifth of these buses.
_BUSES = 7
_BUSES_BELOW = 4


def _buses_of(address: str, *keys: str) -> Iterator[tuple[str, int]]:
    """Yield domain and number of every bus that an emulated card at ``address`` takes.

    :raises EntryError: its bridges or functions would have no buses there.
    """
    domain, number, function = address.split(":")
    first = int(number, 16) - _BUSES_BELOW
    if function != "00.0" or first < 0 or first + _BUSES > 0x100:
        highest = 0x100 - _BUSES + _BUSES_BELOW
        raise EntryError(
            f"an emulated card cannot stand at {address}: its bridges and other functions need buses of "
            f"their own; from {domain}:{_BUSES_BELOW:02x}:00.0 to {domain}:{highest:02x}:00.0 there is room",
            *keys,
        )
    yield from ((domain, bus) for bus in range(first, first + _BUSES))


class Host(Named):
    """A machine with cards in it, reached in exactly one way: emulated, over SSH, or local.

    ``system``: the controller it belongs to. ``upload_dir``: where images are put for a flash.
    ``labgrid``: the place that stands for it in labgrid.
    """

    system: str | None = None
    emulated: EmulatedHost | None = None
    ssh: SshAccess | None = None
    local: StrictBool = False
    power: Power | None = None
    labgrid: LabgridPlace | None = None
    sysfs: RemotePath = "/sys"
    upload_dir: UploadDir = "/tmp"
    tools: Tools = Tools()
    cards: ByName[Card] = Field(default_factory=dict)

    @property
    def real(self) -> bool:
        """Whether the interlock's second condition holds: what happens here happens to real hardware."""
        return self.emulated is None

    def secrets(self) -> Iterator[Credential]:
        """Yield every reference to a secret that its entry has."""
        if self.ssh is not None:
            yield self.ssh.credentials
            if self.ssh.sudo is not None and self.ssh.sudo.credentials is not None:
                yield self.ssh.sudo.credentials
        of_power = (self.power.redfish or self.power.ipmi) if self.power is not None else None
        if of_power is not None:
            yield of_power.credentials

    @property
    def can_power(self) -> bool:
        """Whether the harness can switch this host's power; without it a scenario is BLOCKED."""
        if self.emulated:
            return self.emulated.power and self.emulated.recording is None
        return self.power is not None

    @model_validator(mode="after")
    def _one_way_in(self) -> Host:
        given = [way for way in ("emulated", "ssh", "local") if getattr(self, way)]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of emulated, ssh and local: true; it has {' and '.join(given) or 'none'}"
            )
        if self.emulated and self.labgrid:
            raise EntryError("belongs to a real host", "labgrid")
        if self.emulated and self.power:
            raise ValueError("an emulated host switches its own power; leave 'power' out")
        for name, card in self.cards.items():
            replayed = self.emulated is not None and self.emulated.recording is not None
            if self.emulated and card.identity is None and not replayed:
                message = f"the emulated card {name!r} needs an identity, such as 64:4c:36:00:00:01"
                raise EntryError(message, "cards", name)
            if self.real and card.emulated:
                message = f"the card {name!r} is emulated, but its host is real"
                raise EntryError(message, "cards", name, "emulated")
            if replayed and card.emulated:
                message = f"the card {name!r} is as its host's recording has it"
                raise EntryError(message, "cards", name, "emulated")
        return self

    @model_validator(mode="after")
    def _cards_have_room(self) -> Host:
        """Hold cards to different places; emulated ones, whose buses are laid out here, to whole ones."""
        seen: dict[str, str] = {}
        taken: dict[tuple[str, int], str] = {}
        for name, card in self.cards.items():
            if card.address in seen:
                message = f"{seen[card.address]} and {name} both stand at {card.address}"
                raise EntryError(message, "cards", name, "address")
            seen[card.address] = name
            if self.emulated is None or self.emulated.recording is not None:
                continue
            for key, address in card.places.items():
                keys = ("cards", name, *key.split("."))
                for bus in _buses_of(address, *keys):
                    if taken.setdefault(bus, name) != name:
                        message = (
                            f"{name} has no room at {address} beside {taken[bus]}: a card takes {_BUSES} "
                            f"buses, the fifth is its address's; keep addresses {_BUSES} buses apart"
                        )
                        raise EntryError(message, *keys)
        return self

    def card(self, name: str) -> Card:
        """Return the card ``name``. :raises ConfigurationError: there is none, with the known ones."""
        try:
            return self.cards[name]
        except KeyError:
            raise unknown_name("card", name, list(self.cards), f"host {self.name}") from None


class EmulatedController(Entry):
    """A StarlingX system that the emulated lab provides.

    ``release``: selects its known defects, and where its hosts say nothing, their ``era`` and ``generation``.
    ``defects``: switched on besides those of the release; ``corrected_defects``: switched off.
    """

    release: Literal["stx-2020-07", "stx-6", "stx-8", "head", "corrected"] = "head"
    defects: tuple[str, ...] = ()
    corrected_defects: tuple[str, ...] = ()


class Controller(Named):
    """A StarlingX system: the system controller, or a subcloud of one.

    Of a real one, ``url`` is that of its Keystone, and ``ca_file`` the authority of its certificates, where
    it is not one that the machine trusts.
    """

    role: Literal["system-controller", "subcloud"]
    parent: str | None = None
    emulated: EmulatedController | None = None
    url: Url | None = None
    ca_file: FilePath | None = None
    user: User = "admin"
    credentials: Credential | None = None

    @model_validator(mode="after")
    def _emulated_or_real(self) -> Controller:
        if (self.emulated is None) == (self.url is None):
            raise ValueError("give exactly one of emulated and url")
        if self.url and self.credentials is None:
            raise ValueError("a real controller needs credentials")
        if self.emulated is not None and self.ca_file is not None:
            raise EntryError("belongs to a real controller; an emulated one has no certificate", "ca_file")
        if (self.role == "subcloud") != (self.parent is not None):
            raise ValueError("a subcloud names its system controller in 'parent'; nothing else has one")
        return self


class Lab(Named):
    """The machines that one run may use."""

    hosts: ByName[Host] = Field(default_factory=dict)
    controllers: ByName[Controller] = Field(default_factory=dict)
    registries: ByName[Registry] = Field(default_factory=dict)

    @property
    def emulated(self) -> bool:
        """Whether every host is emulated, so that nothing in a run touches real hardware."""
        return all(host.emulated for host in self.hosts.values())

    def is_real(self, system: str) -> bool:
        """Whether what happens in a system, or in a subcloud of it, happens to real hardware."""
        own = {system, *(name for name, entry in self.controllers.items() if entry.parent == system)}
        return any(self.controllers[name].emulated is None for name in own) or any(
            host.real for host in self.hosts.values() if host.system in own
        )

    @model_validator(mode="after")
    def _references_hold(self) -> Lab:
        check_jumps(self.hosts)
        for name, host in self.hosts.items():
            self._check_controller(host.system, "hosts", name, "system")
        for name, controller in self.controllers.items():
            self._check_controller(controller.parent, "controllers", name, "parent")
            if controller.parent is not None and self.controllers[controller.parent].role == "subcloud":
                message = f"{controller.parent!r} is a subcloud itself; name its system controller"
                raise EntryError(message, "controllers", name, "parent")
        for name, registry in self.registries.items():
            self._check_host_of(registry, "registries", name, "host")
        seen: dict[str, str] = {}
        for host, card in self.cards():
            title = f"{host.name}/{card.name}"
            if card.identity in seen:
                message = f"{seen[card.identity]} and {title} have the same identity {card.identity}"
                raise EntryError(message, "hosts", host.name, "cards", card.name, "identity")
            if card.identity:
                seen[card.identity] = title
        return self

    def _check_controller(self, name: str | None, *keys: str) -> None:
        if name is not None and name not in self.controllers:
            raise no_such_entry(unknown_name("controller", name, list(self.controllers), "this lab"), *keys)

    def _check_host_of(self, registry: Registry, *keys: str) -> None:
        if registry.host is None:
            return
        if registry.host not in self.hosts:
            raise no_such_entry(unknown_name("host", registry.host, list(self.hosts), "this lab"), *keys)
        if not self.hosts[registry.host].real:
            message = f"{registry.host!r} is emulated, and no registry runs on an emulated host"
            raise EntryError(message, *keys)

    def cards(self) -> Iterator[tuple[Host, Card]]:
        """Yield every card with its host, in the order of the file."""
        for host in self.hosts.values():
            for card in host.cards.values():
                yield host, card

    def host(self, name: str) -> Host:
        """Return the host ``name``. :raises ConfigurationError: there is none, with the known ones."""
        try:
            return self.hosts[name]
        except KeyError:
            raise unknown_name("host", name, list(self.hosts), f"lab {self.name}") from None

    def registry(self, name: str | None = None) -> Registry:
        """Return the registry ``name``, or the first one.

        :raises ConfigurationError: there is no such registry, or none at all; with the known ones.
        """
        name = next(iter(self.registries), "") if name is None else name
        try:
            return self.registries[name]
        except KeyError:
            raise unknown_name("registry", name, list(self.registries), f"lab {self.name}") from None

    def card(self, name: str) -> tuple[Host, Card]:
        """Return host and card of a name such as ``subcloud1/card0``.

        :raises ConfigurationError: there is no such card; the hint has the known ones.
        """
        host, _, card = name.rpartition("/")
        found = self.hosts.get(host)
        if found is None or card not in found.cards:
            known = [f"{host.name}/{card.name}" for host, card in self.cards()]
            raise unknown_name("card", name, known, f"lab {self.name}")
        return found, found.cards[card]


class Inventory(Entry):
    """Everything the harness may touch. ``path``: the file that it was read from."""

    version: Annotated[Literal[1], BeforeValidator(_whole_number)]
    default_lab: str
    labs: ByName[Lab] = Field(min_length=1)
    path: Path = Field(default=Path("inventory.yaml"), exclude=True)

    @model_validator(mode="after")
    def _default_exists(self) -> Inventory:
        try:
            self.lab()
        except ConfigurationError as error:
            raise no_such_entry(error, "default_lab") from None
        return self

    def lab(self, name: str | None = None) -> Lab:
        """Return the lab ``name``, or the default one.

        :raises ConfigurationError: there is no such lab; the hint has the known ones.
        """
        name = self.default_lab if name is None else name
        try:
            return self.labs[name]
        except KeyError:
            raise unknown_name("lab", name, list(self.labs), str(self.path)) from None

"""The cards of this machine by udev: their functions, drivers, virtual functions and NUMA nodes; hotplug.

Nothing here opens a device or writes; what may be asked of a card itself is in :mod:`harness.cards.truth`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.cards import values
from harness.cards.discovery import MANAGEMENT, VENDOR
from harness.cards.generations import attributes_of
from harness.errors import DeadlineError, InfrastructureError
from harness.judgement.values import NOT_EXPOSED, Unknown, Value

_MAC_PATTERNS = tuple(attribute.pattern for attribute in attributes_of("identity"))
_SHOWN_TO_ALL = 64  # what of the configuration space the kernel shows to who is not root
_EXTENDED_SPACE = 0x100  # where PCI Express's extended capabilities begin
_SERIAL_NUMBER = 0x0003  # the extended capability "Device Serial Number"
_MOST_CAPABILITIES = (4096 - _EXTENDED_SPACE) // 8


@dataclass(frozen=True, slots=True)
class VirtualFunctions:
    """SR-IOV of a physical function: how many it can have, how many are on, and where those are."""

    total: Value[int]
    enabled: Value[int]
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """One PCI function of this machine.

    ``driver``: empty where none is bound. ``numa_node``: Unknown where the machine has none. ``slot``: the
    way to it from the root bus by device and function numbers alone, such as ``pci0000:ae/00.0/00.0/09.0/
    00.0``: bus numbers change, these do not. ``serial``: of PCI Express, such as ``64-4c-36-ff-ff-10-01-00``.
    """

    address: str
    vendor: Value[int]
    device: Value[int]
    driver: str
    numa_node: Value[int]
    slot: str
    serial: Value[str]
    virtual: Value[VirtualFunctions]

    @property
    def ids(self) -> tuple[Value[int], Value[int]]:
        """Vendor and device."""
        return self.vendor, self.device


@dataclass(frozen=True, slots=True)
class LocalCard:
    """One card: the address of its management function, who it is, and all functions in its slot.

    ``identity``: its first MAC. ``serial``: the first serial number that a function of it has.
    ``slot``: the way to the port that it hangs on.
    """

    address: str
    identity: Value[str]
    serial: Value[str]
    slot: str
    functions: tuple[LocalFunction, ...]

    def is_same(self, other: LocalCard) -> bool:
        """Return whether ``other`` is this card, wherever it is now.

        The MAC decides where both have one, else the serial number; the slot alone only where neither can
        be compared, for another card may have been fitted there.
        """
        for mine, theirs in ((self.identity, other.identity), (self.serial, other.serial)):
            if not isinstance(mine, Unknown) and not isinstance(theirs, Unknown):
                return mine == theirs
        return self.slot == other.slot


def local_functions(context: Any = None) -> list[LocalFunction]:
    """Return every PCI function of this machine, by address.

    :param context: a :class:`pyudev.Context`; the system's by default.
    """
    devices = (context or _context()).list_devices(subsystem="pci")
    return sorted(_functions(devices), key=lambda function: function.address)


def local_cards(context: Any = None) -> list[LocalCard]:
    """Return the cards of this machine, by address; see :func:`local_functions`."""
    devices = list((context or _context()).list_devices(subsystem="pci"))
    paths = {device.sys_name: device.sys_path for device in devices}
    functions = sorted(_functions(devices), key=lambda function: function.address)
    cards = []
    for management in functions:
        if management.ids == (VENDOR, MANAGEMENT):
            port = _port(management.slot)
            own = tuple(f for f in functions if _port(f.slot) == port and not _is_bridge(f, functions))
            serials = [f.serial for f in own if not isinstance(f.serial, Unknown)]
            identity = _identity(paths[management.address])
            serial = serials[0] if serials else management.serial
            cards.append(LocalCard(management.address, identity, serial, port, own))
    return cards


class CardMonitor:
    """Hears of devices that come and go, from its making on: make it before what is to be heard of happens.

    :param context: a :class:`pyudev.Context`; the system's by default.
    :raises InfrastructureError: this machine does not let us listen to udev.
    """

    def __init__(self, context: Any = None) -> None:
        import pyudev

        self._context = context or _context()
        self._heard = 0
        self._gone: set[str] = set()
        try:
            self._monitor = pyudev.Monitor.from_netlink(self._context)
            self._monitor.start()
        except OSError as error:
            raise InfrastructureError(f"udev cannot be listened to: {error.strerror}.") from None

    def wait_gone(self, address: str, *, deadline: float) -> None:
        """Return once no function stands at ``address``, or one there was heard to go.

        :raises DeadlineError: neither within ``deadline`` seconds.
        """
        for _ in self._until(deadline):
            here = {function.address for function in local_functions(self._context)}
            if address in self._gone or address not in here:
                self._gone.discard(address)
                return
        raise DeadlineError(
            f"Waited {deadline:g} s for {address} to leave the bus; {self._told()}.",
            hint="Without a running udevd no event is heard.",
        )

    def wait_back(self, card: LocalCard, *, deadline: float) -> LocalCard:
        """Return ``card`` as it is now, as soon as it is there, wherever that is.

        One that has not left yet is there: see :meth:`wait_gone`.

        :raises DeadlineError: it is not within ``deadline`` seconds.
        """
        cards: list[LocalCard] = []
        for _ in self._until(deadline):
            cards = local_cards(self._context)
            found = next((now for now in cards if card.is_same(now)), None)
            if found is not None:
                return found
        there = ", ".join(f"{now.address} ({now.identity})" for now in cards) or "none"
        raise DeadlineError(
            f"Waited {deadline:g} s for the card {card.identity} of slot {card.slot} to come back; "
            f"cards that are there: {there}; {self._told()}.",
            hint="A power cycle of the machine brings back a card that fell off the bus.",
        )

    def _until(self, deadline: float) -> Iterator[None]:
        """Yield at once, after the events that are there when one comes, and a last time at the deadline.

        A card is a dozen devices: looking at all of them anew after each event takes seconds.
        """
        end = time.monotonic() + deadline
        left = deadline
        while True:
            yield
            if left <= 0:
                return
            left = end - time.monotonic()
            device = self._monitor.poll(max(left, 0.0))
            while device is not None:
                self._heard += 1
                if device.action == "remove":
                    self._gone.add(device.sys_name)
                device = self._monitor.poll(0) if time.monotonic() < end else None

    def _told(self) -> str:
        return f"{self._heard} events were heard"

    def close(self) -> None:
        """Listen no more."""
        # pyudev closes its socket with the object; nothing else of it is held.
        del self._monitor

    def __enter__(self) -> CardMonitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serial_number(config: bytes) -> Value[str]:
    """Return the serial number in a function's configuration space, as `lspci` prints it.

    PCI Express Base Specification, extended capability 0003h: two words, the lower one first.
    """
    if len(config) <= _SHOWN_TO_ALL:
        return Unknown("only root may read it")
    at = _EXTENDED_SPACE
    for _ in range(_MOST_CAPABILITIES):
        head = int.from_bytes(config[at : at + 4], "little")
        if head in (0, 0xFFFFFFFF):
            break
        if head & 0xFFFF == _SERIAL_NUMBER:
            number = config[at + 4 : at + 12][::-1]
            return number.hex("-") if len(number) == 8 else Unknown("cut off")
        at = head >> 20
        if at < _EXTENDED_SPACE:
            break
    return NOT_EXPOSED


def slot_of(sys_path: str) -> str:
    """Return the way to a function from its root bus, without bus numbers (see :class:`LocalFunction`)."""
    root, *hops = sys_path.partition("/devices/")[2].split("/")
    return "/".join([root, *(hop.rpartition(":")[2] for hop in hops)])


def _context() -> Any:
    import pyudev

    return pyudev.Context()


def _functions(devices: Iterable[Any]) -> Iterator[LocalFunction]:
    for device in devices:
        address = values.pci_address(device.sys_name)
        if isinstance(address, Unknown):
            continue
        path = Path(device.sys_path)
        node = _integer(path / "numa_node")
        yield LocalFunction(
            address=address,
            vendor=_integer(path / "vendor"),
            device=_integer(path / "device"),
            driver=_link_name(path / "driver"),
            numa_node=Unknown("this machine has no NUMA nodes") if node == -1 else node,
            slot=slot_of(device.sys_path),
            serial=_serial(path / "config"),
            virtual=_virtual(path),
        )


def _virtual(path: Path) -> Value[VirtualFunctions]:
    total = _integer(path / "sriov_totalvfs")
    if total == NOT_EXPOSED:
        return NOT_EXPOSED
    found = sorted(path.glob("virtfn*"), key=lambda link: (len(link.name), link.name))
    addresses = tuple(filter(None, map(_link_name, found)))
    return VirtualFunctions(total, _integer(path / "sriov_numvfs"), addresses)


def _identity(sys_path: str) -> Value[str]:
    files = [file for pattern in _MAC_PATTERNS for file in Path(sys_path).glob(pattern)]
    if len(files) != 1:
        return NOT_EXPOSED if not files else Unknown("more than one MAC")
    try:
        return values.mac(files[0].read_text(errors="replace"))
    except OSError as error:
        return Unknown(error.strerror or "unreadable")


def _integer(file: Path) -> Value[int]:
    try:
        return int(file.read_text(errors="replace"), 0)
    except FileNotFoundError:
        return NOT_EXPOSED
    except OSError as error:
        return Unknown(error.strerror or "unreadable")
    except ValueError:
        return Unknown(f"{file.name} is no number")


def _serial(config: Path) -> Value[str]:
    try:
        return serial_number(config.read_bytes())
    except FileNotFoundError:
        return NOT_EXPOSED
    except OSError as error:
        return Unknown(error.strerror or "unreadable")


def _link_name(link: Path) -> str:
    """Return the last part of where ``link`` leads; empty where there is none."""
    try:
        return link.readlink().name
    except OSError:
        return ""


def _port(slot: str) -> str:
    """Return the way to the root port above a function: all of a card hangs below one (n3000.md 1.1)."""
    return "/".join(slot.split("/")[:2])


def _is_bridge(function: LocalFunction, functions: list[LocalFunction]) -> bool:
    return any(other.slot.startswith(f"{function.slot}/") for other in functions)

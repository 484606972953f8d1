"""A card in its host's /sys, /dev and bus lists: its PCI functions, and below them what its driver shows.

What lies below the management function differs by driver generation: :mod:`harness.emulator.sysfs_dfl`
(B, C, D) and :mod:`harness.emulator.sysfs_legacy` (A). The numbers at the end of names are whatever is free,
as in a kernel, so that nobody can rely on them.
"""

from __future__ import annotations

import errno
import os
import posixpath
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from harness.emulator.card import Card, Generation, PciFunction
from harness.emulator.sysfs_dfl import place_dfl
from harness.emulator.sysfs_legacy import place_legacy
from harness.emulator.vfs import Attribute, Device, Link

if TYPE_CHECKING:
    from harness.emulator.host import EmulatedHost

MANAGEMENT_DEVICE = 0x0B30
_SWITCH = (0x10B5, 0x8747)  # PLX PEX8747 between the root port and the card's functions
#: The PCI driver of the management function.
PCI_DRIVERS: dict[Generation, str] = {"A": "intel-fpga-pci", "B": "dfl-pci", "C": "dfl-pci", "D": "dfl-pci"}


class Numbers:
    """Gives out the lowest free number of each kind, as the kernel's id allocator does."""

    def __init__(self) -> None:
        self._taken: dict[str, set[int]] = {}

    def take(self, kind: str, first: int = 0) -> int:
        """Return the lowest free number of ``kind`` from ``first`` on, now taken."""
        taken = self._taken.setdefault(kind, set())
        number = first
        while number in taken:
            number += 1
        taken.add(number)
        return number

    def give(self, kind: str, number: int) -> None:
        """``number`` is free again."""
        self._taken[kind].discard(number)


@dataclass(eq=False)
class CardTree:
    """The nodes of one card in ``host``'s file system; rebuilt whenever the card joins or leaves the bus."""

    host: EmulatedHost
    card: Card
    _placed: list[str] = field(default_factory=list)
    _numbers: list[tuple[str, int]] = field(default_factory=list)
    _shape: tuple[object, ...] = ()
    _address: str = ""
    _port: str = ""
    #: How the kernel's log names the driver and the device that updates the card; the last one there was.
    log_name: str = "intel-m10bmc-sec-update n3000bmc-sec-update.0.auto"

    def refresh(self) -> None:
        """Make the tree what the card is now."""
        with self.host.tree_lock:
            functions = self.card.functions()
            conditions = self.card.conditions & {"all-ones", "no-security-group"}
            shape = (tuple(functions), frozenset(conditions), self.host.image_load)
            if shape == self._shape:
                return
            self.remove()
            self._shape = shape
            management = [function for function in functions if function.device == MANAGEMENT_DEVICE]
            self._address = management[0].address if management else ""
            self._slot()
            for function in functions:
                self._function(function)
            if functions:
                self._bridges(functions)

    def remove(self) -> None:
        """Take the card out of the host's file system; the port that it hung on stays."""
        with self.host.tree_lock:
            self._shape = ()
            while self._placed:
                self.host.vfs.remove_tree(self._placed.pop())
            while self._numbers:
                self.host.numbers.give(*self._numbers.pop())

    # -- placing nodes --------------------------------------------------------------------------------

    def number(self, kind: str, first: int = 0) -> int:
        """Return the lowest free number of ``kind`` from ``first`` on; it is the card's until it leaves."""
        number = self.host.numbers.take(kind, first)
        self._numbers.append((kind, number))
        return number

    def attribute(
        self,
        path: str,
        show: Callable[[], str] | str | None = None,
        store: Callable[[bytes, int], None] | None = None,
    ) -> None:
        """Place an attribute whose text never changes, or is asked of the card at each read."""
        text: Callable[[], bytes] | bytes | None = partial(self._show, show) if callable(show) else None
        if isinstance(show, str):
            text = _shared(show.encode())
        self.host.vfs.place(path, Attribute(text, store), kernel=True)

    def _show(self, show: Callable[[], str]) -> bytes:
        self.host.check_readable()
        self.card.read_begins()
        return show().encode()

    def link(self, path: str, target: str) -> None:
        """Place a relative link at ``path`` that leads to ``target``."""
        relative = sys.intern(posixpath.relpath(target, posixpath.dirname(path)))
        self.host.vfs.place(path, Link(relative), kernel=True)
        self._placed.append(path)

    def node(self, path: str, node: Device) -> None:
        """Place a character device."""
        self.host.vfs.place(path, node)
        self._placed.append(path)

    def device(self, path: str, subsystem: str, uevent: str = "") -> None:
        """Make the directory ``path`` a device of ``subsystem`` (such as ``bus/spi``), as udev finds it."""
        self.attribute(f"{path}/uevent", uevent)
        self.link(f"{path}/subsystem", f"/sys/{subsystem}")
        folder = f"/sys/{subsystem}/devices" if subsystem.startswith("bus/") else f"/sys/{subsystem}"
        self.link(f"{folder}/{posixpath.basename(path)}", path)

    # -- PCI ------------------------------------------------------------------------------------

    def _chain(self, address: str) -> tuple[str, str, str]:
        """Return root port, upstream port and downstream port above the function at ``address`` (1.1).

        The ports' bus numbers lie below those of the functions; which exactly is the firmware's choice.
        """
        domain, bus, _ = self._address.split(":")
        slot = (int(address.split(":")[1], 16) - int(bus, 16)) & 0xFF
        device = {0xFF: 0x08, 0x00: 0x09, 0x01: 0x10, 0x02: 0x11}[slot]
        base = int(bus, 16) - 4
        return (
            posixpath.basename(self._port),
            f"{domain}:{(base + 1) & 0xFF:02x}:00.0",
            f"{domain}:{(base + 2) & 0xFF:02x}:{device:02x}.0",
        )

    def _path(self, address: str) -> str:
        return f"{posixpath.dirname(self._port)}/{'/'.join(self._chain(address))}/{address}"

    def _slot(self) -> None:
        """Place the root port that the card hangs on. It is the host's, and stays when the card goes."""
        known = [*self.card.spec.addresses, *([self._address] if self._address else [])]
        domain, lowest = min((address.split(":")[0], int(address.split(":")[1], 16)) for address in known)
        bus = f"{domain}:{(lowest - 4) & 0xFF:02x}"
        port = f"/sys/devices/pci{bus}/{bus}:00.0"
        if port == self._port or (self._port and not self._address):
            return
        if self._port:
            for link in ("devices", "drivers/pcieport"):
                self.host.vfs.remove_tree(f"/sys/bus/pci/{link}/{posixpath.basename(self._port)}")
            self.host.vfs.remove_tree(self._port)
        self._port = port
        self._bridge(port, (0x8086, 0x2030), lowest - 3, lowest + 2)
        self._placed.clear()

    def _bridges(self, functions: list[PciFunction]) -> None:
        buses: dict[str, int] = {}
        for function in functions:
            buses[posixpath.dirname(self._path(function.address))] = int(function.address.split(":")[1], 16)
        for path, bus in sorted(buses.items()):
            self._bridge(path, _SWITCH, bus, bus)
        upstream = posixpath.dirname(min(buses))
        self._bridge(
            upstream, _SWITCH, int(min(buses).rsplit("/")[-1].split(":")[1], 16), max(buses.values())
        )
        self._placed.insert(0, upstream)

    def _bridge(self, path: str, ids: tuple[int, int], secondary: int, subordinate: int) -> None:
        function = PciFunction(posixpath.basename(path), *ids, 0x060400, "pcieport", 0, 0)
        self._pci_node(path, function, bytes((secondary & 0xFF, subordinate & 0xFF)))

    def _function(self, function: PciFunction) -> None:
        path = self._path(function.address)
        if function.device != MANAGEMENT_DEVICE:
            self._pci_node(path, function)
            return
        generation = self.host.generation
        self._pci_node(path, replace(function, driver=PCI_DRIVERS[generation]))
        # The driver makes virtual functions of ports that an ioctl has released, which nobody does here.
        self.attribute(f"{path}/sriov_totalvfs", "1\n")
        self.attribute(f"{path}/sriov_numvfs", "0\n", _enable_virtual_functions)
        self.log_name = (place_legacy if generation == "A" else place_dfl)(self, path)

    def _pci_node(self, path: str, function: PciFunction, buses: bytes = b"") -> None:
        ones = "all-ones" in self.card.conditions and function.class_ != 0x060400
        ids = {
            "vendor": function.vendor,
            "device": function.device,
            "subsystem_vendor": function.subsystem_vendor,
            "subsystem_device": function.subsystem_device,
        }
        # The kernel read the ids when it found the function; only the live configuration space turns to ones.
        for name, value in ids.items():
            self.attribute(f"{path}/{name}", f"0x{value:04x}\n")
        self.attribute(f"{path}/class", f"0x{function.class_:06x}\n")
        self.attribute(f"{path}/revision", "0x02\n" if function.class_ >> 16 == 2 else "0x00\n")
        self.attribute(f"{path}/numa_node", "0\n")
        self.attribute(f"{path}/enable", "1\n")
        self.attribute(f"{path}/irq", "0\n")
        self.attribute(f"{path}/resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000\n" * 13)
        self.attribute(f"{path}/uevent", _uevent(function))
        self.attribute(f"{path}/modalias", f"{_modalias(function)}\n")
        config = _shared(b"\xff" * 256 if ones else _configuration_space(function, buses))
        self.host.vfs.place(f"{path}/config", Attribute(config), kernel=True)
        self.attribute(f"{path}/remove", store=lambda data, offset: None)
        self.link(f"{path}/subsystem", "/sys/bus/pci")
        self.link(f"/sys/bus/pci/devices/{function.address}", path)
        if function.driver:
            driver = f"/sys/bus/pci/drivers/{function.driver}"
            self.attribute(f"{driver}/unbind", store=partial(self._unbind, driver))
            self.link(f"{path}/driver", driver)
            self.link(f"{driver}/{function.address}", path)

    def _unbind(self, driver: str, data: bytes, offset: int) -> None:
        """Take a function from its driver until the card is enumerated anew."""
        link = f"{driver}/{data.decode('utf-8', 'replace').strip()}"
        if not self.host.vfs.exists(link):
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        self.host.vfs.remove_tree(f"{self.host.vfs.realpath(link)}/driver")
        self.host.vfs.remove_tree(link)


_TEXTS: dict[bytes, bytes] = {}


def _shared(text: bytes) -> bytes:
    """Return the same object for the same text: cards by the hundred are alike in most of what they show."""
    return _TEXTS.setdefault(text, text)


def _enable_virtual_functions(data: bytes, offset: int) -> None:
    """``sriov_numvfs``: as ``sriov_numvfs_store`` and ``cci_pci_sriov_configure`` of the kernel answer."""
    try:
        wanted = int(data, 0)
    except ValueError:
        wanted = -1
    if wanted > 1:
        raise OSError(errno.ERANGE, os.strerror(errno.ERANGE))
    if wanted != 0:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def _modalias(function: PciFunction) -> str:
    return (
        f"pci:v{function.vendor:08X}d{function.device:08X}"
        f"sv{function.subsystem_vendor:08X}sd{function.subsystem_device:08X}"
        f"bc{function.class_ >> 16:02X}sc{function.class_ >> 8 & 0xFF:02X}i{function.class_ & 0xFF:02X}"
    )


def _uevent(function: PciFunction) -> str:
    driver = f"DRIVER={function.driver}\n" if function.driver else ""
    return (
        f"{driver}PCI_CLASS={function.class_:X}\n"
        f"PCI_ID={function.vendor:04X}:{function.device:04X}\n"
        f"PCI_SUBSYS_ID={function.subsystem_vendor:04X}:{function.subsystem_device:04X}\n"
        f"PCI_SLOT_NAME={function.address}\n"
        f"MODALIAS={_modalias(function)}\n"
    )


def _configuration_space(function: PciFunction, buses: bytes = b"") -> bytes:
    """Return the 256 bytes of standard configuration space: ids, class, the buses behind a bridge."""
    space = bytearray(256)
    space[0:2] = function.vendor.to_bytes(2, "little")
    space[2:4] = function.device.to_bytes(2, "little")
    space[4:6] = b"\x06\x00"  # memory and bus master on
    space[9:12] = function.class_.to_bytes(3, "little")
    if buses:
        space[14] = 1  # the header of a bridge
        space[0x18:0x1B] = bytes([int(function.address.split(":")[1], 16)]) + buses
    else:
        space[0x2C:0x2E] = function.subsystem_vendor.to_bytes(2, "little")
        space[0x2E:0x30] = function.subsystem_device.to_bytes(2, "little")
    return bytes(space)

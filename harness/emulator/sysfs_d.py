"""A card in its host's /sys, /dev and bus lists, as driver generation D (in-tree, firmware-upload) shows it.

Paths and text forms: kernel ABI (sysfs-class-firmware), intel-m10-bmc-sec-update and dfl-fme drivers; the
numbers at the end of names are whatever is free, as in a kernel, so that nobody can rely on them.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from harness.emulator.card import IMAGE_LOAD_WORDS, Card, PciFunction, Section
from harness.emulator.vfs import Attribute, Device, Link

if TYPE_CHECKING:
    from harness.emulator.host import EmulatedHost

DRIVER = "intel-m10bmc-sec-update"
MANAGEMENT_DEVICE = 0x0B30
_NOT_PROGRAMMED = "hash not programmed"
_SWITCH = (0x10B5, 0x8747)  # PLX PEX8747 between the root port and the card's functions
_SECTIONS: dict[str, Section] = {"sr": "SR", "bmc": "BMC", "pr": "PR"}


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


def bitmap_list(numbers: frozenset[int]) -> str:
    """Return ``numbers`` as the kernel prints a bitmap: ``1,2-6,9``; empty for none."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


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
    #: Name of the secure-update device, such as ``n3000bmc-sec-update.5.auto``; the last one there was.
    device_name: str = "n3000bmc-sec-update.0.auto"

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

    # -- helpers --------------------------------------------------------------------------------

    def _number(self, kind: str, first: int = 0) -> int:
        number = self.host.numbers.take(kind, first)
        self._numbers.append((kind, number))
        return number

    def _attribute(
        self,
        path: str,
        show: Callable[[], str] | str | None = None,
        store: Callable[[bytes, int], None] | None = None,
    ) -> None:
        """Place an attribute whose text never changes, or is asked of the card at each read."""
        text: Callable[[], bytes] | bytes | None = partial(self._show, show) if callable(show) else None
        if isinstance(show, str):
            text = show.encode()
        self.host.vfs.place(path, Attribute(text, store), kernel=True)

    def _show(self, show: Callable[[], str]) -> bytes:
        self.host.check_readable()
        return show().encode()

    def _link(self, path: str, target: str) -> None:
        """Place a relative link at ``path`` that leads to ``target``."""
        self.host.vfs.place(path, Link(posixpath.relpath(target, posixpath.dirname(path))), kernel=True)
        self._placed.append(path)

    def _device(self, path: str, subsystem: str, uevent: str = "") -> None:
        """Make the directory ``path`` a device of ``subsystem`` (such as ``bus/spi``), as udev finds it."""
        self._attribute(f"{path}/uevent", uevent)
        self._link(f"{path}/subsystem", f"/sys/{subsystem}")
        folder = f"/sys/{subsystem}/devices" if subsystem.startswith("bus/") else f"/sys/{subsystem}"
        self._link(f"{folder}/{posixpath.basename(path)}", path)

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
        self._pci_node(path, function)
        if function.device == MANAGEMENT_DEVICE:
            self._management(path)

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
            self._attribute(f"{path}/{name}", f"0x{value:04x}\n")
        self._attribute(f"{path}/class", f"0x{function.class_:06x}\n")
        self._attribute(f"{path}/revision", "0x02\n" if function.class_ >> 16 == 2 else "0x00\n")
        self._attribute(f"{path}/numa_node", "0\n")
        self._attribute(f"{path}/enable", "1\n")
        self._attribute(f"{path}/irq", "0\n")
        self._attribute(f"{path}/resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000\n" * 13)
        self._attribute(f"{path}/uevent", _uevent(function))
        self._attribute(f"{path}/modalias", f"{_modalias(function)}\n")
        config = b"\xff" * 256 if ones else _configuration_space(function, buses)
        self.host.vfs.place(f"{path}/config", Attribute(lambda: config), kernel=True)
        self._attribute(f"{path}/remove", store=lambda data, offset: None)
        self._link(f"{path}/subsystem", "/sys/bus/pci")
        self._link(f"/sys/bus/pci/devices/{function.address}", path)
        if function.driver:
            driver = f"/sys/bus/pci/drivers/{function.driver}"
            self._attribute(f"{driver}/unbind", store=partial(self._unbind, driver))
            self._link(f"{path}/driver", driver)
            self._link(f"{driver}/{function.address}", path)

    def _unbind(self, driver: str, data: bytes, offset: int) -> None:
        """Take a function from its driver until the card is enumerated anew."""
        link = f"{driver}/{data.decode('utf-8', 'replace').strip()}"
        if not self.host.vfs.exists(link):
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        self.host.vfs.remove_tree(f"{self.host.vfs.realpath(link)}/driver")
        self.host.vfs.remove_tree(link)

    # -- DFL ------------------------------------------------------------------------------------

    def _management(self, pci: str) -> None:
        card = self.card
        region = self._number("region")
        fme_number = self._number("dfl-fme")
        fme = f"{pci}/fpga_region/region{region}/dfl-fme.{fme_number}"
        self._attribute(f"{fme}/bitstream_id", lambda: f"0x{card.bitstream_id:x}\n")
        self._attribute(f"{fme}/bitstream_metadata", lambda: f"0x{card.bitstream_metadata:x}\n")
        self._attribute(f"{fme}/ports_num", "1\n")
        self._attribute(f"{fme}/socket_id", "0\n")
        self._attribute(f"{fme}/fabric_version", "0x0\n")
        self._device(posixpath.dirname(fme), "class/fpga_region")
        self._device(fme, "bus/platform", f"DRIVER=dfl-fme\nDEVNAME=dfl-fme.{fme_number}\n")
        inner = self._number("region")
        compat = f"{fme}/dfl-fme-region.{self._number('fme-region', 1)}/fpga_region/region{inner}"
        self._attribute(f"{compat}/compat_id", lambda: card.interface_id.replace("-", "") + "\n")
        self._device(posixpath.dirname(posixpath.dirname(compat)), "bus/platform")
        self._device(compat, "class/fpga_region")
        device = f"/dev/dfl-fme.{fme_number}"
        self.host.vfs.place(device, Device())
        self._placed.append(device)
        self._bmc(f"{fme}/dfl_dev.{self._number('dfl_dev')}")

    def _bmc(self, feature: str) -> None:
        card = self.card
        altera = f"{feature}/subdev_spi_altera.{self._number('auto')}.auto"
        bus = self._number("spi")
        spi = f"{altera}/spi_master/spi{bus}/spi{bus}.0"
        self._device(feature, "bus/dfl", "DRIVER=n3000-nios\n")
        self._device(altera, "bus/platform", "DRIVER=subdev_spi_altera\n")
        self._device(posixpath.dirname(spi), "class/spi_master")
        self._device(spi, "bus/spi", "DRIVER=intel-m10-bmc\nMODALIAS=spi:m10-n3000\n")
        self._attribute(f"{spi}/bmc_version", lambda: f"0x{card.bmc_version:x}\n")
        self._attribute(f"{spi}/bmcfw_version", lambda: f"0x{card.bmcfw_version:x}\n")
        self._attribute(f"{spi}/mac_address", lambda: f"{card.mac}\n")
        self._attribute(f"{spi}/mac_count", "8\n")
        self.device_name = f"n3000bmc-sec-update.{self._number('auto')}.auto"
        secure = f"{spi}/{self.device_name}"
        self._device(secure, "bus/platform", f"DRIVER={DRIVER}\nMODALIAS=platform:n3000bmc-sec-update\n")
        self._link(f"/sys/bus/platform/drivers/{DRIVER}/{self.device_name}", secure)
        self._link(f"{secure}/driver", f"/sys/bus/platform/drivers/{DRIVER}")
        if "no-security-group" not in card.conditions:
            self._security(f"{secure}/security")
        if self.host.image_load:
            control = f"{secure}/control"
            self._attribute(f"{control}/available_images", " ".join(IMAGE_LOAD_WORDS) + "\n")
            self._attribute(
                f"{control}/image_load",
                store=lambda data, offset: card.image_load(data.decode("utf-8", "replace")),
            )
        self._firmware(secure)
        self._sensors(spi)

    def _security(self, path: str) -> None:
        card = self.card
        for name, section in _SECTIONS.items():
            self._attribute(f"{path}/{name}_root_entry_hash", partial(_root, card, section))
            self._attribute(f"{path}/{name}_canceled_csks", partial(_cancelled, card, section))
        self._attribute(f"{path}/flash_count", lambda: f"{card.flash_count}\n")

    def _firmware(self, secure: str) -> None:
        upload = self.card.upload
        name = f"secure-update{self._number('secure-update')}"
        path = f"{secure}/firmware/{name}"
        self._attribute(
            f"{path}/loading",
            lambda: upload.read_loading() + "\n",
            lambda data, offset: upload.write_loading(data),
        )
        self.host.vfs.place(f"{path}/data", Attribute(lambda: b"", upload.write_data), kernel=True)
        self._attribute(f"{path}/status", lambda: f"{upload.status()}\n")
        self._attribute(f"{path}/error", lambda: _line(upload.error()))
        self._attribute(f"{path}/remaining_size", lambda: f"{upload.remaining_size()}\n")
        self._attribute(f"{path}/cancel", store=lambda data, offset: upload.cancel(data))
        self._device(path, "class/firmware")

    def _sensors(self, spi: str) -> None:
        """What ``fpgainfo bmc`` shows; the driver refuses telemetry while an update runs (4.4)."""
        parent = f"{spi}/n3000bmc-hwmon.{self._number('auto')}.auto"
        monitor = f"{parent}/hwmon/hwmon{self._number('hwmon')}"
        self._device(parent, "bus/platform", "DRIVER=intel-m10-bmc-hwmon\n")
        self._device(monitor, "class/hwmon")
        for name, (label, value) in SENSORS.items():
            self._attribute(f"{monitor}/{name}_label", f"{label}\n")
            self._attribute(f"{monitor}/{name}_input", partial(self._telemetry, value))

    def _telemetry(self, value: int) -> str:
        if self.card.upload.busy:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return f"{value}\n"


#: hwmon name -> label and reading, in the units of the hwmon ABI (mV, mA, uW, thousandths of a degree).
SENSORS: dict[str, tuple[str, int]] = {
    "power1": ("Board Power", 69_420_000),
    "curr1": ("12V Backplane Current", 3_180),
    "in0": ("12V Backplane Voltage", 12_060),
    "in1": ("1.2V Voltage", 1_190),
    "in2": ("1.8V Voltage", 1_800),
    "temp1": ("Board Temperature", 41_500),
    "temp2": ("FPGA Die Temperature", 58_250),
}


def _line(text: str) -> str:
    return f"{text}\n" if text else ""


def _root(card: Card, section: Section) -> str:
    return f"{card.root_entry_hash(section) or _NOT_PROGRAMMED}\n"


def _cancelled(card: Card, section: Section) -> str:
    return f"{bitmap_list(card.cancelled(section))}\n"


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

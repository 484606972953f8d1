"""``lspci`` (pciutils), reading what the host's /sys shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from harness.emulator.programs.base import Invocation, Main, ProgramExit

_DEVICES: Final = "/sys/bus/pci/devices"
#: From pci.ids: what has a name there. 0b30, 0b31 and 0b32 have none (n3000.md 1.1).
_VENDORS: Final = {0x8086: "Intel Corporation", 0x10B5: "PLX Technology, Inc."}
_CLASSES: Final = {0x0200: "Ethernet controller", 0x0604: "PCI bridge", 0x1200: "Processing accelerators"}
_MODELS: Final = {
    (
        0x8086,
        0x0D58,
    ): "Ethernet Controller XXV710 Intel(R) FPGA Programmable Acceleration Card N3000 for Networking",
    (0x8086, 0x2030): "Sky Lake-E PCI Express Root Port A",
    (0x10B5, 0x8747): "PEX 8747 48-Lane, 5-Port PCI Express Gen 3 (8.0 GT/s) Switch",
}


@dataclass(frozen=True, slots=True)
class _Slot:
    address: str
    vendor: int
    device: int
    class_: int
    revision: int
    interface: int
    subsystem_vendor: int
    subsystem_device: int
    driver: str
    numa_node: str
    gone: bool


def _slots(run: Invocation) -> list[_Slot]:
    found = []
    for address in run.vfs.listdir(_DEVICES):
        path = f"{_DEVICES}/{address}"
        try:

            def number(name: str, path: str = path) -> int:
                return int(run.vfs.read(f"{path}/{name}"), 16)

            config = run.vfs.read(f"{path}/config")
            class_ = number("class")
            driver = run.vfs.realpath(f"{path}/driver") if run.vfs.exists(f"{path}/driver") else ""
            gone = config[:4] == b"\xff" * 4
            found.append(
                _Slot(
                    address,
                    number("vendor"),
                    number("device"),
                    class_ >> 8,
                    0xFF if gone else number("revision"),
                    0xFF if gone else class_ & 0xFF,
                    number("subsystem_vendor"),
                    number("subsystem_device"),
                    driver.rpartition("/")[2],
                    run.vfs.read(f"{path}/numa_node").decode().strip(),
                    gone,
                )
            )
        except OSError:  # the device went away while it was read
            continue
    return found


_SLOT = re.compile(
    r"(?:(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}|\*):)?([0-9a-fA-F]{1,2}|\*)?(?:\.([0-7*]))?"
)
_KIND = re.compile(r"([0-9a-fA-F]{0,4}|\*):([0-9a-fA-F]{0,4}|\*)(:([0-9a-fA-F]{0,6}|\*))?")


def _hex(text: str) -> int | None:
    return None if text in ("", "*") else int(text, 16)


def _matches(slot: _Slot, options: dict[str, str]) -> bool:
    if "-d" in options:
        vendor, _, rest = options["-d"].partition(":")
        device, _, class_ = rest.partition(":")
        wanted = (_hex(vendor), _hex(device), _hex(class_))
        actual = (slot.vendor, slot.device, slot.class_)
        if any(want is not None and want != have for want, have in zip(wanted, actual, strict=True)):
            return False
    if "-s" in options:
        form = _SLOT.fullmatch(options["-s"])
        assert form is not None  # checked before
        domain, bus, rest = slot.address.split(":")
        device, function = rest.split(".")
        for want, have in zip(form.groups(), (domain, bus, device, function), strict=True):
            if want not in (None, "*") and int(want or "0", 16) != int(have, 16):
                return False
    return True


class _Namer:
    """Numbers, names, or both, as ``-n`` and ``-nn`` ask for."""

    def __init__(self, count: int) -> None:
        self._count = count

    def _one(self, name: str, code: str) -> str:
        return code if self._count == 1 else f"{name} [{code}]" if self._count > 1 else name

    def class_(self, slot: _Slot) -> str:
        return self._one(_CLASSES.get(slot.class_, f"Class {slot.class_:04x}"), f"{slot.class_:04x}")

    def vendor(self, number: int) -> str:
        return self._one(_VENDORS.get(number, f"Vendor {number:04x}"), f"{number:04x}")

    def device(self, vendor: int, number: int) -> str:
        if self._count > 1 and (vendor, number) not in _MODELS:
            return f"Device [{number:04x}]"
        return self._one(_MODELS.get((vendor, number), f"Device {number:04x}"), f"{number:04x}")

    def pair(self, slot: _Slot) -> str:
        if self._count == 1:
            return f"{slot.vendor:04x}:{slot.device:04x}"
        vendor = _VENDORS.get(slot.vendor, f"Vendor {slot.vendor:04x}")
        model = _MODELS.get((slot.vendor, slot.device))
        if self._count > 1:
            return f"{vendor} {model or 'Device'} [{slot.vendor:04x}:{slot.device:04x}]"
        return f"{vendor} {model or f'Device {slot.device:04x}'}"


def _plain(slot: _Slot, where: str, namer: _Namer, options: dict[str, str]) -> str:
    revision = f" (rev {slot.revision:02x})" if slot.revision else ""
    interface = f" (prog-if {slot.interface:02x})" if slot.interface else ""
    text = f"{where} {namer.class_(slot)}: {namer.pair(slot)}{revision}{interface}\n"
    if "-v" in options and slot.gone:
        return text + "\t!!! Unknown header type 7f\n\n"
    if options.keys() & {"-v", "-k"} and slot.class_ != 0x0604:
        vendor = namer.vendor(slot.subsystem_vendor)
        text += f"\tSubsystem: {vendor} {namer.device(slot.subsystem_vendor, slot.subsystem_device)}\n"
    if "-v" in options:
        text += f"\tFlags: bus master, fast devsel, latency 0, NUMA node {slot.numa_node}\n"
    if options.keys() & {"-v", "-k"} and slot.driver:
        text += f"\tKernel driver in use: {slot.driver}\n"
    return text + ("\n" if "-v" in options else "")


def _machine(slot: _Slot, where: str, namer: _Namer) -> str:
    revision = f" -r{slot.revision:02x}" if slot.revision else ""
    interface = f" -p{slot.interface:02x}" if slot.interface else ""
    words = (namer.class_(slot), namer.vendor(slot.vendor), namer.device(slot.vendor, slot.device))
    subsystem = ("", "")
    if slot.class_ != 0x0604:
        vendor = slot.subsystem_vendor
        subsystem = (namer.vendor(vendor), namer.device(vendor, slot.subsystem_device))
    quoted = " ".join(f'"{word}"' for word in words)
    return f'{where} {quoted}{revision}{interface} "{subsystem[0]}" "{subsystem[1]}"\n'


def _records(slot: _Slot, where: str, namer: _Namer, options: dict[str, str]) -> str:
    rows = [
        ("Slot", where),
        ("Class", namer.class_(slot)),
        ("Vendor", namer.vendor(slot.vendor)),
        ("Device", namer.device(slot.vendor, slot.device)),
    ]
    if slot.class_ != 0x0604:
        rows.append(("SVendor", namer.vendor(slot.subsystem_vendor)))
        rows.append(("SDevice", namer.device(slot.subsystem_vendor, slot.subsystem_device)))
    if slot.revision:
        rows.append(("Rev", f"{slot.revision:02x}"))
    if slot.interface:
        rows.append(("ProgIf", f"{slot.interface:02x}"))
    if "-k" in options and slot.driver:
        rows.append(("Driver", slot.driver))
    rows.append(("NUMANode", slot.numa_node))
    return "".join(f"{name}:\t{value}\n" for name, value in rows) + "\n"


def lspci(run: Invocation) -> int:
    """List PCI functions; ``-D -n -nn -m -mm -v -vmm -k -s -d`` as pciutils has them."""
    try:
        options, words = run.options("nmvkDPd:s:tqb")
    except ProgramExit:
        raise ProgramExit(1) from None
    letters = "".join(re.split("[sd]", word[1:], maxsplit=1)[0] for word in run.argv[1:] if word[:1] == "-")
    if words:
        run.err("Usage: lspci [<switches>]\n")
        return 1
    if "-s" in options and not _SLOT.fullmatch(options["-s"]):
        run.complain(f"-s: Invalid slot number: {options['-s']}")
        return 1
    if "-d" in options and not _KIND.fullmatch(options["-d"]):
        run.complain("-d: ':' expected")
        return 1
    namer = _Namer(letters.count("n"))
    slots = _slots(run)
    domains = "D" in letters or any(not slot.address.startswith("0000:") for slot in slots)
    for slot in slots:
        if not _matches(slot, options):
            continue
        where = slot.address if domains else slot.address.partition(":")[2]
        if "v" in letters and "m" in letters:
            run.out(_records(slot, where, namer, options))
        elif "m" in letters:
            run.out(_machine(slot, where, namer))
        else:
            run.out(_plain(slot, where, namer, options))
    return 0


PROGRAMS: dict[str, Main] = {"lspci": lspci}

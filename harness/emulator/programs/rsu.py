"""``rsu`` (OPAE): resets a card through its driver's control files and looks for it again (n3000.md 5.2).

``control/image_load`` of generations C and D is ``update/image_load`` of B; A has one file for each image.
Exit code 0 does not prove that the card came back: after the rescan a missing card is no error.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from harness.emulator.programs import opae
from harness.emulator.programs.base import Invocation, Main, ProgramExit
from harness.emulator.programs.editions import VENDOR, Edition

_EX_USAGE, _EX_UNAVAILABLE, _EX_IOERR = 64, 69, 74
_WAIT_SECONDS, _LEAST_WAIT = 10.0, 5.0
_PCI_ID: Final = "(0x8086,0x0b30)"
_USAGE: Final = "usage: rsu [-h] [-d] {bmcimg,bmc,retimer,fpga,sdm,fpgadefault} ...\n"
_ADDRESS = re.compile(r"(?:([0-9a-fA-F]{4}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])")
_LOCK: Final = "/var/lib/opae/rsu_lock"
#: Generation A: image -> file below the BMC's directory and what is written to it.
_LEGACY: Final = {
    "bmc_user": ("bmcimg_flash_ctrl/bmcimg_image_load", "0"),
    "bmc_factory": ("bmcimg_flash_ctrl/bmcimg_image_load", "1"),
    "retimer_fw": ("pkvl/eeprom_load", "1"),
}


class _Tool:
    def __init__(self, run: Invocation, edition: Edition) -> None:
        self._run = run
        self._edition = edition

    def log(self, text: str) -> None:
        self._run.err(f"{VENDOR.stamp(self._run.host.wall_clock())} - {text}\n")  # of either edition
        self._run.streams.stderr.flush()

    def _arguments(self) -> tuple[str, str | None, str, float]:
        """Return kind, address, page and seconds to wait. :raises ProgramExit: usage."""
        kind, address, page, wait = "", None, "user", _WAIT_SECONDS
        pending = self._run.argv[1:]
        while pending:
            word = pending.pop(0)
            name, equals, value = word.partition("=")
            if name in ("-p", "--page", "-w", "--wait"):
                value = value if equals else pending.pop(0) if pending else ""
                if name in ("-p", "--page"):
                    page = value
                else:
                    wait = max(
                        float(value) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{0,6})?", value) else 0.0,
                        _LEAST_WAIT,
                    )
            elif word in ("-d", "--debug", "-f", "--force"):
                continue
            elif word in ("-h", "--help"):
                self._run.out(_USAGE)
                raise ProgramExit(0)
            elif not kind:
                kind = word
            else:
                address = word
        if kind not in ("bmcimg", "bmc", "retimer", "fpga", "sdm", "fpgadefault"):
            self._run.err(f"{_USAGE}rsu: error: argument which: invalid choice: '{kind}'\n")
            raise ProgramExit(2)
        if kind in ("bmcimg", "bmc") and page not in ("user", "factory"):
            self._run.err(
                f"usage: rsu bmc [-h] [-p {{user,factory}}] [bdf]\n"
                f"rsu bmc: error: argument -p/--page: invalid choice: '{page}' "
                "(choose from 'user', 'factory')\n"
            )
            raise ProgramExit(2)
        return kind, address, page, wait

    def main(self) -> int:
        kind, address, page, wait = self._arguments()
        found = opae.cards(self._run)
        if not found:
            self._run.err("No compatible devices found\n")
            return _EX_USAGE
        if address is None:
            if len(found) > 1:
                self._run.err("Please specify PCIe address as [<segment>:]<bus>:<device>.<function>\n")
                self._run.err("Acceptable commands:\n")
                for pac in found:
                    self._run.err(f">rsu {kind} {pac.address.partition(':')[2]}\n")
                return _EX_USAGE
            address = found[0].address
        match = _ADDRESS.fullmatch(address)
        if match is None:
            self.log(f"invalid bdf: {address}")
            return _EX_USAGE
        self._take_lock()
        for pac in found:
            if pac.address == f"{match[1] or '0000'}:{match[2]}".lower():
                return self._reset(pac, _boot_type(kind, page), wait)
        if not self._edition.modern:  # its words run into each other, and it ends with 0
            self.log(f"PCIe address ({address}) is invalid or does not identify acompatible device")
            return 0
        self.log(f"PCIe address ({address}) does not identify a compatible device")
        return _EX_UNAVAILABLE

    def _take_lock(self) -> None:
        files = self._run.vfs
        if not files.exists("/var/lib/opae"):
            files.mkdir("/var/lib/opae")
        files.open(_LOCK, read=False, write=True, create=True, truncate=True)

    def _reset(self, pac: opae.Pac, boot_type: str, wait: float) -> int:
        self._step(f"[[pci_address({pac.address}), pci_id(0x8086, 0x0b30)]] performing RSU operation")
        self._unbind_neighbours(pac)
        place, word = self._trigger(pac, boot_type)
        defects = self._run.host.defects
        try:
            if "rsu-resets-nothing" not in defects:
                self._run.vfs.open(place, read=False, write=True).write(word.encode())
        except OSError as error:
            self._rescan()
            detail = f": {opae.os_error_text(error)}" if self._edition.modern else ""
            self.log(f"RSU operation failed{detail}")
            return _EX_IOERR
        root_port = pac.path.split("/")[4]
        self._step(f"[[pci_address({root_port}), pci_id(0x8086, 0x2030)]] removing device from PCIe bus")
        self._step(f"waiting {wait:g} seconds for boot")
        self._run.process.sleep(wait)
        self._step(f"rescanning PCIe bus: /sys/devices/{pac.path.split('/')[3]}/pci_bus/{root_port[:7]}")
        self._rescan()
        if "rsu-fails-after-reset" in defects:
            self.log("clearing the errors of the root port failed: setpci ended with 1")
            return 1
        self.log("RSU operation complete")
        return 0

    def _step(self, text: str) -> None:
        """Say what is done; the emulated later edition says only how it ended."""
        if not self._edition.modern:
            self.log(text)

    def _trigger(self, pac: opae.Pac, boot_type: str) -> tuple[str, str]:
        """Return which file starts ``boot_type``, and what is written to it.

        :raises ProgramExit: there is none. Only an I/O error is caught: the neighbours stay unbound.
        """
        if pac.legacy:
            name, word = _LEGACY.get(boot_type, ("", ""))
            place = pac.bmc(name) if name else None
            if place is None:
                raise opae.traceback(self._run, f"TypeError: rsu not supported by this {_PCI_ID}")
            return place, word
        control = pac.bmc("*-secure.*.auto/*fpga_sec_mgr/*fpga_sec*/update") or pac.bmc("*-sec*.auto/control")
        images = f"{control}/available_images"
        if control is None or not self._run.vfs.exists(images):
            raise opae.traceback(self._run, f"TypeError: rsu not supported by this {_PCI_ID}")
        if boot_type not in self._run.vfs.read(images).decode().split():
            message = f"ValueError: Boot type {boot_type} is not supported by this {_PCI_ID}"
            raise opae.traceback(self._run, message)
        return f"{control}/image_load", boot_type

    def _unbind_neighbours(self, pac: opae.Pac) -> None:
        """Take the driver from every other endpoint below the card's root port."""
        root_port = "/".join(pac.path.split("/")[:5])
        for link in self._run.vfs.glob("/sys/bus/pci/devices/*/driver"):
            path = self._run.vfs.realpath(link.removesuffix("/driver"))
            driver = self._run.vfs.realpath(link)
            if path.startswith(f"{root_port}/") and path != pac.path and not driver.endswith("/pcieport"):
                address = path.rpartition("/")[2]
                self._run.vfs.open(f"{driver}/unbind", read=False, write=True).write(address.encode())

    def _rescan(self) -> None:
        self._run.vfs.open("/sys/bus/pci/rescan", read=False, write=True).write(b"1")


def _boot_type(kind: str, page: str) -> str:
    if kind in ("bmcimg", "bmc"):
        return f"bmc_{page}"
    return {"retimer": "retimer_fw", "sdm": "sdm"}.get(kind, f"fpga_{'user1' if page == 'user' else page}")


def _rsu(edition: Edition, run: Invocation) -> int:
    with run.host.clock.actor():
        return _Tool(run, edition).main()


def programs(edition: Edition) -> dict[str, Main]:
    """Return ``rsu``, which resets a card, and with it what it runs."""
    return {"rsu": partial(_rsu, edition)}

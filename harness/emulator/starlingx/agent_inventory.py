"""What the host agent reports of a host's cards, from the host's files and tools (section 3.1)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.emulator.starlingx.agent_tools import FPGAINFO, LEGACY_BMC, LEGACY_FME, Tools

_DEVICES: Final = "/sys/bus/pci/devices"
_SECURE_DRIVER: Final = "/sys/bus/platform/drivers/intel-m10bmc-sec-update"
_NO_HASH: Final = "hash not programmed"
#: Classes of devices that sysinv keeps besides ports (section 1.6).
_CLASSES: Final = ("120000", "120001")


@dataclass(frozen=True, slots=True)
class Inventory:
    """Reads a host's cards. ``unreadable``: what stands for an attribute that is not there.

    ``legacy``: it looks where the out-of-tree drivers of the container eras have attributes.
    """

    tools: Tools
    unreadable: str
    legacy: bool = False

    # -- PCI ------------------------------------------------------------------------------------

    def devices(self) -> list[dict[str, Any]]:
        """Return the host's accelerators, with the columns of a PCI device.

        :raises CommandFailed: lspci failed.
        """
        found = []
        for line in self.tools.run(["lspci", "-Dm"]).splitlines():
            words = [word for word in shlex.split(line) if not word.startswith(("-r", "-p"))]
            address = words[0]
            class_id = self._number(address, "class").rjust(6, "0")
            if class_id in _CLASSES:
                found.append(self._device(address, class_id, words[1:]))
        return found

    def _device(self, address: str, class_id: str, names: list[str]) -> dict[str, Any]:
        pclass, vendor, device, subvendor, subdevice = (*names, "", "", "", "", "")[:5]
        files = self.tools.host.vfs
        base = f"{_DEVICES}/{address}"
        driver = (
            files.realpath(f"{base}/driver").rpartition("/")[2] if files.exists(f"{base}/driver") else None
        )
        total = self._text(f"{base}/sriov_totalvfs")
        active = self._text(f"{base}/sriov_numvfs")
        numa = self._text(f"{base}/numa_node")
        return {
            "name": f"pci_{address.replace(':', '_').replace('.', '_')}",
            "pciaddr": address,
            "pclass_id": class_id,
            "pvendor_id": self._number(address, "vendor"),
            "pdevice_id": self._number(address, "device"),
            "pclass": pclass,
            "pvendor": vendor,
            "pdevice": device,
            "psvendor": subvendor,
            "psdevice": subdevice,
            "numa_node": int(numa) if numa else None,
            "sriov_totalvfs": int(total) if total else None,
            "sriov_numvfs": int(active) if active else 0,
            "sriov_vfs_pci_address": "",
            "driver": driver,
            "enabled": True,
        }

    def _number(self, address: str, name: str) -> str:
        """Return an id of a PCI function: four or six digits, without ``0x``."""
        return self._text(f"{_DEVICES}/{address}/{name}").removeprefix("0x").lower()

    # -- cards ----------------------------------------------------------------------------------

    def fpgas(self) -> list[dict[str, Any]]:
        """Return the cards, with the columns of an FPGA device. :raises CommandFailed: a tool failed."""
        read = self._legacy_card if self.legacy else self._card
        return [{"pciaddr": address} | read(address) for address in self.tools.cards()]

    def _card(self, address: str) -> dict[str, str]:
        """Read a card with the drivers of the kernel and the host's own tools."""
        fme = dict(_rows(self.tools.run([FPGAINFO, "fme", address])))
        phy = dict(_rows(self.tools.run([FPGAINFO, "phy", address])))
        secure = self._secure(address)
        return {
            "bitstream_id": self._first(f"{_DEVICES}/{address}/fpga_region/region*/dfl-fme.*/bitstream_id"),
            "boot_page": fme.get("Boot Page", self.unreadable),
            "retimer_a_version": phy.get("Retimer A Version", self.unreadable),
            "retimer_b_version": phy.get("Retimer B Version", self.unreadable),
            "root_key": _hash(self._first(f"{secure}/security/sr_root_entry_hash")),
            "revoked_key_ids": self._first(f"{secure}/security/sr_canceled_csks"),
            "bmc_fw_version": _version(self._first(f"{secure}/../bmcfw_version")),
            "bmc_build_version": _version(self._first(f"{secure}/../bmc_version")),
        }

    def _secure(self, address: str) -> str:
        """Return the secure-update device of the card: the one with the address in its real path."""
        files = self.tools.host.vfs
        for link in files.glob(f"{_SECURE_DRIVER}/*.auto"):
            place = files.realpath(link)
            if address in place:
                return place
        return f"{_SECURE_DRIVER}/none"

    def _legacy_card(self, address: str) -> dict[str, str]:
        """Read a card with the out-of-tree drivers of the container eras."""
        bmc = f"{_DEVICES}/{address}/{LEGACY_BMC}"
        page = self._first(f"{bmc}/fpga_flash_ctrl/fpga_image_load")
        security = f"{bmc}/ifpga_sec_mgr/ifpga_sec*/security"
        return {
            "bitstream_id": self._first(f"{_DEVICES}/{address}/{LEGACY_FME}/bitstream_id"),
            "boot_page": {"0": "factory", "1": "user"}.get(page, self.unreadable),
            "retimer_a_version": self._first(f"{bmc}/pkvl/pkvl_a_version"),
            "retimer_b_version": self._first(f"{bmc}/pkvl/pkvl_b_version"),
            "root_key": _hash(self._first(f"{security}/sr_root_hash")),
            "revoked_key_ids": self._first(f"{security}/sr_canceled_csks"),
            "bmc_fw_version": _version(self._first(f"{bmc}/bmcfw_flash_ctrl/bmcfw_version")),
            "bmc_build_version": _version(self._first(f"{bmc}/max10_version")),
        }

    def _first(self, pattern: str) -> str:
        """Return the text of the first file that ``pattern`` finds."""
        head, up, tail = pattern.partition("/../")
        if up:
            pattern = f"{head.rpartition('/')[0]}/{tail}"
        found = self.tools.host.vfs.glob(pattern)
        return self._text(found[0]) if found else self.unreadable

    def _text(self, path: str) -> str:
        try:
            return self.tools.host.vfs.read(path).decode("utf-8", "replace").strip()
        except OSError:
            return self.unreadable


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """Yield label and value of what fpgainfo prints, split at the first colon."""
    for line in text.splitlines():
        label, colon, value = line.partition(":")
        if colon:
            yield label.strip(), value.strip()


def _hash(text: str) -> str:
    return "" if text == _NO_HASH else text


def _version(text: str) -> str:
    """Return a BMC's version as sysinv shows it: 0x42020015 is B.2.0.21."""
    try:
        number = int(text, 16)
    except ValueError:
        return text
    letter, *rest = number.to_bytes(4, "big")
    return ".".join([chr(letter), *map(str, rest)])

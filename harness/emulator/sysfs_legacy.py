"""What generation A (out-of-tree intel-fpga drivers) shows below a card's management function.

Names and forms are those of a dump of such a card that the vendor published; what the dump does not have (the
control files, the sensors) is named by the vendor's tools of that age, and its place is inferred.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from harness.emulator.card import BlockUpdate
from harness.emulator.ioctl import BlockDevice
from harness.emulator.sysfs_dfl import place_sensors
from harness.emulator.sysfs_forms import SECTIONS, cancelled_csks, root_hash, unreadable
from harness.emulator.vfs import Device

if TYPE_CHECKING:
    from harness.emulator.sysfs_tree import CardTree

#: What is written to a page selector -> the word that later drivers have for it: on an N3000 BMC user is 0.
_BMC_PAGES: Final = {"0": "bmc_user", "1": "bmc_factory"}
_RETIMER: Final = {"1": "retimer_fw"}
_UPDATED: Final = "0x1111"


def place_legacy(tree: CardTree, pci: str) -> str:
    """Place the tree below the function at ``pci``; return driver and device for the kernel's log."""
    card = tree.card
    number = tree.number("intel-fpga-dev")
    fpga = f"{pci}/fpga/intel-fpga-dev.{number}"
    fme = f"{fpga}/intel-fpga-fme.{number}"
    tree.device(fpga, "class/fpga")
    tree.device(fme, "bus/platform", f"DRIVER=intel-fpga-fme\nDEVNAME=intel-fpga-fme.{number}\n")
    tree.node(f"/dev/intel-fpga-fme.{number}", Device())
    tree.attribute(f"{fme}/bitstream_id", lambda: f"0x{card.bitstream_id:x}\n")
    tree.attribute(f"{fme}/bitstream_metadata", lambda: f"0x{card.bitstream_metadata:x}\n")
    tree.attribute(f"{fme}/ports_num", "1\n")
    tree.attribute(f"{fme}/socket_id", "0\n")
    tree.attribute(f"{fme}/pr/interface_id", lambda: card.interface_id.replace("-", "") + "\n")
    port = f"{fpga}/intel-fpga-port.{number}"
    tree.device(port, "bus/platform", f"DRIVER=intel-fpga-port\nDEVNAME=intel-fpga-port.{number}\n")
    tree.attribute(f"{port}/afu_id", "9aeffe5f84570612c000c9660d824272\n")
    altera = f"{fme}/spi-altera.{tree.number('auto')}.auto"
    bus = tree.number("spi")
    spi = f"{altera}/spi_master/spi{bus}/spi{bus}.0"
    tree.device(altera, "bus/platform", "DRIVER=spi-altera\n")
    tree.device(posixpath.dirname(spi), "class/spi_master")
    tree.device(spi, "bus/spi", "DRIVER=intel-max10\nMODALIAS=spi:intel-max10\n")
    _bmc(tree, spi)
    return f"intel-max10 {posixpath.basename(spi)}"


def _bmc(tree: CardTree, spi: str) -> None:
    card = tree.card
    tree.attribute(f"{spi}/mac_address", lambda: f"{card.mac}\n")
    tree.attribute(f"{spi}/mac_count", "8\n")
    tree.attribute(f"{spi}/max10_version", lambda: f"0x{card.bmc_version:x}\n")
    tree.attribute(f"{spi}/bmcfw_flash_ctrl/bmcfw_flash_mode", "0\n")
    tree.attribute(f"{spi}/bmcfw_flash_ctrl/bmcfw_version", lambda: f"{card.bmcfw_version:x}\n")
    tree.attribute(f"{spi}/fpga_flash_ctrl/fpga_flash_mode", "0\n")
    tree.attribute(f"{spi}/bmcimg_flash_ctrl/bmcimg_flash_mode", "0\n")
    if tree.host.image_load:
        # The page that the FPGA was configured from: 0 factory, 1 user (4.7). To choose one is not emulated.
        tree.attribute(
            f"{spi}/fpga_flash_ctrl/fpga_image_load",
            lambda: f"{int(card.running_page == 'user')}\n",
        )
        tree.attribute(
            f"{spi}/bmcimg_flash_ctrl/bmcimg_image_load",
            store=lambda data, offset: _load(tree, _BMC_PAGES, data),
        )
    for side in ("a", "b"):
        tree.attribute(f"{spi}/pkvl/pkvl_{side}_version", lambda: f"{card.retimer_version}\n")
    tree.attribute(f"{spi}/pkvl/polling_mode", "0x3\n")
    tree.attribute(f"{spi}/pkvl/status", "3\n")
    tree.attribute(f"{spi}/pkvl/eeprom_load", store=lambda data, offset: _load(tree, _RETIMER, data))
    tree.attribute(f"{spi}/pkvl/eeprom_update_status", f"{_UPDATED}\n")
    _security(tree, spi)
    place_sensors(tree, f"{spi}/intel-max10-hwmon.{tree.number('auto')}.auto", "DRIVER=intel-max10-hwmon\n")


def _security(tree: CardTree, spi: str) -> None:
    card = tree.card
    number = tree.number("ifpga_sec")
    manager = f"{spi}/ifpga_sec_mgr/ifpga_sec{number}"
    tree.device(manager, "class/ifpga_sec_mgr", f"DEVNAME=ifpga_sec{number}\n")
    assert isinstance(card.upload, BlockUpdate)
    tree.node(f"/dev/ifpga_sec{number}", BlockDevice(card.upload, tree.host.defects))
    if "no-security-group" in card.conditions:
        return
    for name, section in SECTIONS.items():
        tree.attribute(f"{manager}/security/{name}_root_hash", partial(root_hash, card, section, "0x"))
        hidden = section == "SR" and "driver-hides-keys" in tree.host.defects
        show = unreadable if hidden else partial(cancelled_csks, card, section)
        tree.attribute(f"{manager}/security/{name}_canceled_csks", show)
    tree.attribute(f"{manager}/security/qspi_flash_count", lambda: f"{card.flash_count}\n")
    # Updates by SMBus are none of this card's; the counter of the dump of a real one had the same value.
    tree.attribute(f"{manager}/security/smbus_flash_count", lambda: f"{card.flash_count}\n")


def _load(tree: CardTree, words: Mapping[str, str], data: bytes) -> None:
    word = words.get(data.decode("utf-8", "replace").strip())
    if word is None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    tree.card.image_load(word)

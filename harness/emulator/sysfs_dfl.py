"""What generations B, C and D (DFL drivers) show below a card's management function.

Paths and text forms: kernel ABI (sysfs-class-firmware, sysfs-class-ifpga-sec-mgr), the drivers ifpga-sec-mgr,
fpga-image-load, intel-m10-bmc-sec-update and dfl-fme.
"""

from __future__ import annotations

import errno
import os
import posixpath
from functools import partial
from typing import TYPE_CHECKING, Final

from harness.emulator.card import IMAGE_LOAD_WORDS
from harness.emulator.ioctl import ImageLoadDevice
from harness.emulator.sysfs_forms import SECTIONS, SENSORS, cancelled_csks, line, root_hash, unreadable
from harness.emulator.vfs import Attribute, Device

if TYPE_CHECKING:
    from harness.emulator.card import Card
    from harness.emulator.sysfs_tree import CardTree

#: Driver and device name of the secure update, without the number at its end.
_SECURE_DRIVERS: Final = {
    "B": ("intel-m10bmc-secure", "m10bmc-secure"),
    "C": ("intel-m10bmc-sec-update", "n3000bmc-sec-update"),
    "D": ("intel-m10bmc-sec-update", "n3000bmc-sec-update"),
}
#: Where the kernel's firmware loader looks for a file.
FIRMWARE_FOLDERS: Final = ("/lib/firmware/updates", "/lib/firmware", "/usr/lib/firmware")
_PATH_MAX: Final = 4096


def place_dfl(tree: CardTree, pci: str) -> str:
    """Place the tree below the function at ``pci``; return driver and device for the kernel's log."""
    card = tree.card
    region = tree.number("region")
    fme_number = tree.number("dfl-fme")
    fme = f"{pci}/fpga_region/region{region}/dfl-fme.{fme_number}"
    tree.attribute(f"{fme}/bitstream_id", lambda: f"0x{card.bitstream_id:x}\n")
    tree.attribute(f"{fme}/bitstream_metadata", lambda: f"0x{card.bitstream_metadata:x}\n")
    tree.attribute(f"{fme}/ports_num", "1\n")
    tree.attribute(f"{fme}/socket_id", "0\n")
    tree.attribute(f"{fme}/fabric_version", "0x0\n")
    tree.device(posixpath.dirname(fme), "class/fpga_region")
    tree.device(fme, "bus/platform", f"DRIVER=dfl-fme\nDEVNAME=dfl-fme.{fme_number}\n")
    inner = tree.number("region")
    compat = f"{fme}/dfl-fme-region.{tree.number('fme-region', 1)}/fpga_region/region{inner}"
    tree.attribute(f"{compat}/compat_id", lambda: card.interface_id.replace("-", "") + "\n")
    tree.device(posixpath.dirname(posixpath.dirname(compat)), "bus/platform")
    tree.device(compat, "class/fpga_region")
    tree.node(f"/dev/dfl-fme.{fme_number}", Device())
    return _bmc(tree, f"{fme}/dfl_dev.{tree.number('dfl_dev')}")


def _bmc(tree: CardTree, feature: str) -> str:
    card = tree.card
    altera = f"{feature}/subdev_spi_altera.{tree.number('auto')}.auto"
    bus = tree.number("spi")
    spi = f"{altera}/spi_master/spi{bus}/spi{bus}.0"
    tree.device(feature, "bus/dfl", "DRIVER=n3000-nios\n")
    tree.device(altera, "bus/platform", "DRIVER=subdev_spi_altera\n")
    tree.device(posixpath.dirname(spi), "class/spi_master")
    tree.device(spi, "bus/spi", "DRIVER=intel-m10-bmc\nMODALIAS=spi:m10-n3000\n")
    tree.attribute(f"{spi}/bmc_version", lambda: f"0x{card.bmc_version:x}\n")
    tree.attribute(f"{spi}/bmcfw_version", lambda: f"0x{card.bmcfw_version:x}\n")
    tree.attribute(f"{spi}/mac_address", lambda: f"{card.mac}\n")
    tree.attribute(f"{spi}/mac_count", "8\n")
    driver, name = _SECURE_DRIVERS[tree.host.generation]
    device = f"{name}.{tree.number('auto')}.auto"
    secure = f"{spi}/{device}"
    tree.device(secure, "bus/platform", f"DRIVER={driver}\nMODALIAS=platform:{name}\n")
    tree.link(f"/sys/bus/platform/drivers/{driver}/{device}", secure)
    tree.link(f"{secure}/driver", f"/sys/bus/platform/drivers/{driver}")
    {"B": _manager, "C": _image_load, "D": _firmware}[tree.host.generation](tree, secure)
    place_sensors(tree, f"{spi}/n3000bmc-hwmon.{tree.number('auto')}.auto", "DRIVER=intel-m10-bmc-hwmon\n")
    return f"{driver} {device}"


def _security(tree: CardTree, path: str, count: str, prefix: str) -> None:
    card = tree.card
    if "no-security-group" in card.conditions:
        return
    for name, section in SECTIONS.items():
        tree.attribute(f"{path}/{name}_root_entry_hash", partial(root_hash, card, section, prefix))
        hidden = section == "SR" and "driver-hides-keys" in tree.host.defects
        show = unreadable if hidden else partial(cancelled_csks, card, section)
        tree.attribute(f"{path}/{name}_canceled_csks", show)
    tree.attribute(f"{path}/{count}", lambda: f"{card.flash_count}\n")


def _control(tree: CardTree, path: str) -> None:
    """What reloads BMC or retimer; a mainline kernel has none (4.5)."""
    card = tree.card
    if tree.host.image_load:
        tree.attribute(f"{path}/available_images", " ".join(IMAGE_LOAD_WORDS) + "\n")
        tree.attribute(
            f"{path}/image_load",
            store=lambda data, offset: card.image_load(data.decode("utf-8", "replace")),
        )


def _firmware(tree: CardTree, secure: str) -> None:
    """Generation D: the kernel's own firmware-upload interface."""
    _security(tree, f"{secure}/security", "flash_count", "")
    _control(tree, f"{secure}/control")
    upload = tree.card.upload
    path = f"{secure}/firmware/secure-update{tree.number('secure-update')}"
    drops = "driver-starts-nothing" in tree.host.defects
    forgets = "driver-forgets-error" in tree.host.defects
    tree.attribute(
        f"{path}/loading",
        lambda: upload.read_loading() + "\n",
        lambda data, offset: upload.write_loading(b"-1" if drops and data.strip() == b"0" else data),
    )
    tree.host.vfs.place(f"{path}/data", Attribute(lambda: b"", upload.write_data), kernel=True)
    tree.attribute(f"{path}/status", lambda: f"{upload.status()}\n")
    tree.attribute(f"{path}/error", lambda: line("" if upload.error() and forgets else upload.error()))
    tree.attribute(f"{path}/remaining_size", lambda: f"{upload.remaining_size()}\n")
    tree.attribute(f"{path}/cancel", store=lambda data, offset: upload.cancel(data))
    tree.device(path, "class/firmware")


def _image_load(tree: CardTree, secure: str) -> None:
    """Generation C: an update is an ioctl on a character device."""
    _security(tree, f"{secure}/security", "flash_count", "0x")
    _control(tree, f"{secure}/control")
    number = tree.number("fpga_image_load")
    path = f"{secure}/fpga_image_load/fpga_image_load{number}"
    tree.attribute(f"{path}/dev", f"240:{number}\n")
    tree.device(
        path, "class/fpga_image_load", f"MAJOR=240\nMINOR={number}\nDEVNAME=fpga_image_load{number}\n"
    )
    tree.node(f"/dev/fpga_image_load{number}", ImageLoadDevice(tree.card.upload, tree.host.defects))


def _manager(tree: CardTree, secure: str) -> None:
    """Generation B: the security manager loads a file that is named to it."""
    path = f"{secure}/ifpga_sec_mgr/ifpga_sec{tree.number('ifpga_sec')}"
    _security(tree, f"{path}/security", "user_flash_count", "0x")
    upload = tree.card.upload
    words = upload.dialect.words
    update = f"{path}/update"
    tree.attribute(f"{path}/name", "n3000bmc secure update\n")
    drops = "driver-starts-nothing" in tree.host.defects
    forgets = "driver-forgets-error" in tree.host.defects
    tree.attribute(f"{update}/filename", store=lambda data, offset: None if drops else _load(tree, data))
    tree.attribute(f"{update}/status", lambda: f"{words.get(upload.status(), upload.status())}\n")
    tree.attribute(
        f"{update}/error",
        lambda: line("" if upload.error() and forgets else upload.dialect.error(upload.error())),
    )
    tree.attribute(f"{update}/remaining_size", lambda: f"{upload.remaining_size()}\n")
    tree.attribute(f"{update}/cancel", store=lambda data, offset: upload.cancel(data))
    tree.attribute(f"{update}/hw_errinfo", lambda: f"0x{upload.hw_errinfo():x}\n")
    _control(tree, update)
    tree.device(path, "class/ifpga_sec_mgr")


def _load(tree: CardTree, data: bytes) -> None:
    """``filename``: load the file of that name from the kernel's firmware folders."""
    if not 0 < len(data) < _PATH_MAX:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    name = data.decode("utf-8", "replace").removesuffix("\n")
    files = tree.host.vfs

    def read() -> bytes:
        for folder in FIRMWARE_FOLDERS:
            if files.exists(f"{folder}/{name}"):
                return files.read(f"{folder}/{name}")
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    tree.card.upload.start_from(read)


def place_sensors(tree: CardTree, parent: str, uevent: str) -> None:
    """Place what ``fpgainfo bmc`` shows; the driver refuses telemetry while an update runs (4.4)."""
    monitor = f"{parent}/hwmon/hwmon{tree.number('hwmon')}"
    tree.device(parent, "bus/platform", uevent)
    tree.device(monitor, "class/hwmon")
    for name, sensor in SENSORS.items():
        tree.attribute(f"{monitor}/{name}_label", f"{sensor.label}\n")
        tree.attribute(f"{monitor}/{name}_input", partial(_telemetry, tree.card, sensor.reading))


def _telemetry(card: Card, value: int) -> str:
    if card.upload.busy:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    return f"{value}\n"

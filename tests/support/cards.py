"""Cards for tests: a tree of real files as sysfs, and programs that act on it in the tools' place."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

SR_ROOT = "5f0c" * 16
BMC_ROOT = "77698ea203e459f6cb0e65b54a1dd4ab47a6a6600e7988f723ad89f5b7f3673a"

_UEVENT = "DRIVER={driver}\nPCI_CLASS=120000\nPCI_ID=8086:0B30\nPCI_SLOT_NAME={address}\n"

#: What the card of :func:`add_card` shows, in the words of the kernel's documentation (generation D).
ATTRIBUTES = {
    "uevent": _UEVENT.replace("{driver}", "dfl-pci"),
    "device": "0x0b30\n",
    "fme/bitstream_id": "0x23000410010307\n",
    "fme/bitstream_metadata": "0x2010906205\n",
    "fme/dfl-fme-region.1/fpga_region/region1/compat_id": "a5d72a3cc8b04939912cf715e5dc10ca\n",
    "bmc/bmc_version": "0x44020006\n",
    "bmc/bmcfw_version": "0x44020014\n",
    "bmc/mac_address": "{mac}\n",
    "sec/security/sr_root_entry_hash": SR_ROOT + "\n",
    "sec/security/bmc_root_entry_hash": BMC_ROOT + "\n",
    "sec/security/pr_root_entry_hash": "hash not programmed\n",
    "sec/security/sr_canceled_csks": "0-2,5\n",
    "sec/security/bmc_canceled_csks": "\n",
    "sec/security/pr_canceled_csks": "",
    "sec/security/flash_count": "12\n",
    "sec/firmware/secure-update0/status": "idle\n",
    "sec/firmware/secure-update0/error": "",
    "sec/firmware/secure-update0/remaining_size": "0\n",
    "sec/firmware/secure-update0/cancel": "",
}
_FME = "fpga_region/region0/dfl-fme.0"
_BMC = f"{_FME}/dfl_dev.0/subdev_spi_altera.2.auto/spi_master/spi1/spi1.0"
_LEGACY_FME = "fpga/intel-fpga-dev.0/intel-fpga-fme.0"
_LEGACY_BMC = f"{_LEGACY_FME}/spi-altera.0.auto/spi_master/spi0/spi0.0"
#: Where the short names of attributes lie, by driver generation.
_PLACES = {
    "A": {"fme": _LEGACY_FME, "bmc": _LEGACY_BMC, "sec": f"{_LEGACY_BMC}/ifpga_sec_mgr/ifpga_sec0"},
    "B": {"fme": _FME, "bmc": _BMC, "sec": f"{_BMC}/m10bmc-secure.5.auto/ifpga_sec_mgr/ifpga_sec0"},
    "C": {"fme": _FME, "bmc": _BMC, "sec": f"{_BMC}/n3000bmc-sec-update.5.auto"},
    "D": {"fme": _FME, "bmc": _BMC, "sec": f"{_BMC}/n3000bmc-sec-update.5.auto"},
}


def attributes_of(generation: str) -> dict[str, str]:
    """The same card as another driver generation shows it (n3000.md 4.1, 4.2)."""
    if generation == "D":
        return ATTRIBUTES
    security = {name: text for name, text in ATTRIBUTES.items() if name.startswith("sec/security/")}
    # Before the firmware-upload interface a hash had its 0x.
    for section, root in (("sr", SR_ROOT), ("bmc", BMC_ROOT)):
        security[f"sec/security/{section}_root_entry_hash"] = f"0x{root}\n"
    own = {name: text for name, text in ATTRIBUTES.items() if not name.startswith("sec/")}
    if generation == "C":
        return own | security | {"sec/fpga_image_load/fpga_image_load0/dev": "240:0\n"}
    if generation == "B":
        security["sec/security/user_flash_count"] = security.pop("sec/security/flash_count")
        update = {
            "status": "idle\n",
            "error": "",
            "remaining_size": "0\n",
            "hw_errinfo": "0x0\n",
            "cancel": "",
        }
        return own | security | {f"sec/update/{name}": text for name, text in update.items()}
    security["sec/security/qspi_flash_count"] = security.pop("sec/security/flash_count")
    return {
        "uevent": _UEVENT.replace("{driver}", "intel-fpga-pci"),
        "device": "0x0b30\n",
        "fme/bitstream_id": "0x23000410010307\n",
        "fme/bitstream_metadata": "0x2010906205\n",
        "fme/pr/interface_id": "a5d72a3cc8b04939912cf715e5dc10ca\n",
        "bmc/max10_version": "0x44020006\n",
        "bmc/bmcfw_flash_ctrl/bmcfw_version": "44020014\n",
        "bmc/mac_address": "{mac}\n",
        "bmc/pkvl/pkvl_a_version": "101c.1064\n",
        "bmc/pkvl/pkvl_b_version": "101c.1065\n",
        "sec/security/smbus_flash_count": "99\n",
    } | {name.replace("root_entry_hash", "root_hash"): text for name, text in security.items()}


@dataclass
class FileCard:
    """A card in the tree: attributes by the short names of :data:`ATTRIBUTES`."""

    sysfs: Path
    address: str
    generation: str = "D"

    def file(self, name: str) -> Path:
        first, _, rest = name.partition("/")
        place = _PLACES[self.generation].get(first)
        return self.device / (f"{place}/{rest}" if place else name)

    @property
    def device(self) -> Path:
        return self.sysfs / "bus/pci/devices" / self.address

    def write(self, name: str, text: str) -> None:
        file = self.file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def move(self, address: str) -> None:
        """Let the card answer at another address, as after a rescan of its bus."""
        self.device.rename(self.device.with_name(address))
        self.address = address


def add_card(
    sysfs: Path, address: str = "0000:b2:00.0", mac: str = "64:4c:36:00:12:a0", generation: str = "D"
) -> FileCard:
    """Put a card into the tree at ``sysfs``: devices below the bus are links, as the kernel has them."""
    real = sysfs / "devices/pci0000:ae/0000:ae:00.0" / address
    real.mkdir(parents=True)
    devices = sysfs / "bus/pci/devices"
    devices.mkdir(parents=True, exist_ok=True)
    (devices / address).symlink_to(real)
    card = FileCard(sysfs, address, generation)
    for name, text in attributes_of(generation).items():
        card.write(name, text.format(address=address, mac=mac))
    return card


_PROGRAM = f"""#!{sys.executable} -I
import json, os, pathlib, signal, sys, time
HERE = pathlib.Path(__file__).resolve().parent
plan = json.loads((HERE / "plan.json").read_text())
sysfs = pathlib.Path(plan["sysfs"])
name = pathlib.Path(sys.argv[0]).name

def card(address):
    return sysfs / "bus/pci/devices" / address

def one(address, pattern):
    return next(card(address).glob("fpga_region/region*/dfl-fme.*/" + pattern))

def log(level, text):
    # Not print: a signal handler must not come into the middle of its buffer.
    os.write(1, f"[2031-02-03 04:05:06.78] [{{level:8}}] {{text}}\\n".encode())

def stop(number, frame):
    log("ERROR", "Caught SIGTERM")
    sys.exit(1)

if name == "fpgasupdate":
    signal.signal(signal.SIGTERM, stop)
    (HERE / "seen.json").write_text(json.dumps({{"argv": sys.argv[1:], "lang": os.environ.get("LC_ALL")}}))
    image, address = sys.argv[4], sys.argv[5]
    size = pathlib.Path(image).stat().st_size
    log("INFO", f"updating from file {{image}} with size {{size}}")
    log("INFO", "waiting for idle")
    log("INFO", "preparing image file")
    if plan["update"] != "ignored":
        count = one(address, "**/flash_count")
        count.write_text(f"{{int(count.read_text()) + 1}}\\n")
    log("INFO", "writing image file")
    print(f"(100%) [████] [{{size}}/{{size}} bytes][Elapsed Time: 0:00:01.00]   \\r", end="", flush=True)
    log("INFO", "programming image file")
    if plan["update"] == "hang":
        signal.pause()
    if plan["update"] == "refused":
        device = one(address, "**/n3000bmc-sec-update.*.auto").name
        with (HERE / "dmesg.txt").open("a") as kernel:
            kernel.write(f"[   99.1] intel-m10bmc-sec-update {{device}}: RSU auth result: 0x00000011\\n")
        log("ERROR", "programming:hw-error")
        sys.exit(1)
    if plan["update"] == "ok":
        (HERE / "staged").write_text("yes")
    log("INFO", f"update of {{address}} complete")
    log("INFO", "Secure update OK")
elif name == "rsu":
    address = sys.argv[2]
    if (HERE / "staged").exists():
        one(address, "bitstream_id").write_text(plan["bitstream_id"] + "\\n")
    where = card(address)
    if plan.get("moves_to"):
        where.rename(where.with_name(plan["moves_to"]))
    if plan.get("stays_away"):
        where.unlink()
    print("2031-02-03 04:05:06,789 - RSU operation complete")
elif name == "lspci":
    for found in sorted((sysfs / "bus/pci/devices").iterdir()):
        print(f"{{found.name}} Processing accelerators [1200]: Intel Corporation Device [8086:0b30]")
elif name == "dmesg":
    print((HERE / "dmesg.txt").read_text(), end="")
elif name == "fpgainfo":
    print((HERE / f"fpgainfo-{{sys.argv[1]}}.txt").read_text(), end="")
"""


@dataclass
class Programs:
    """Programs in the place of a card host's tools; ``plan`` says how they behave."""

    folder: Path
    sysfs: Path

    def __post_init__(self) -> None:
        self.folder.mkdir()
        for name in ("fpgasupdate", "rsu", "lspci", "dmesg", "fpgainfo"):
            program = self.folder / name
            program.write_text(_PROGRAM)
            program.chmod(0o755)
        (self.folder / "dmesg.txt").write_text("[    1.0] Linux version 6.18\n")
        self.plan(update="ok")

    def plan(self, **choices: object) -> None:
        """Choose: update (ok, refused, ignored, hang), bitstream_id (after a reset), moves_to, stays_away."""
        plan = {"sysfs": str(self.sysfs), "update": "ok", "bitstream_id": "0x23000410010311"} | choices
        (self.folder / "plan.json").write_text(json.dumps(plan))

    def say(self, topic: str, text: str) -> None:
        """Let ``fpgainfo TOPIC`` print ``text``."""
        (self.folder / f"fpgainfo-{topic}.txt").write_text(text)

    @property
    def tools(self) -> dict[str, str]:
        names = ("fpgasupdate", "rsu", "lspci", "dmesg", "fpgainfo")
        return {name: str(self.folder / name) for name in names}

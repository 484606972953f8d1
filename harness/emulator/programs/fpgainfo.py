"""``fpgainfo`` (OPAE): what it shows of a card, with its edition's labels and misspellings (n3000.md 4.8)."""

from __future__ import annotations

from functools import partial
from typing import Final

from harness.emulator.programs import opae
from harness.emulator.programs.base import Invocation, Main
from harness.emulator.programs.editions import Edition
from harness.emulator.sysfs_forms import SENSORS

_FACTORY_BIT: Final = 1 << 36
_FIRST_OBJECT: Final = 0xEF00000
_TOPICS: Final = ("fme", "bmc", "phy", "security", "temp", "power", "port", "mac", "errors", "events")
_IDS: Final = (
    ("Vendor Id", "vendor"),
    ("Device Id", "device"),
    ("SubVendor Id", "subsystem_vendor"),
    ("SubDevice Id", "subsystem_device"),
)
_OLD_IDS: Final = (("Device Id", "device"),)
_COMPAT: Final = "dfl-fme-region.*/fpga_region/region*/compat_id"
#: Where generations C and D, B, and A have their security attributes, and how they call the counter.
_SECURITY: Final = (
    "*-sec*.auto/security",
    "*-secure.*.auto/*fpga_sec_mgr/*fpga_sec*/security",
    "ifpga_sec_mgr/ifpga_sec*/security",
)
_COUNTERS: Final = ("flash_count", "user_flash_count", "qspi_flash_count")
_UNITS: Final = (
    ("power", "Watts", 1e6),
    ("curr", "Amps", 1e3),
    ("in", "Volts", 1e3),
    ("temp", "Celsius", 1e3),
)
_SECTIONS: Final = (("bmc", "BMC", "BMC"), ("pr", "PR", "AFU/PR"), ("sr", "FIM", "FIM"))


class _Card:
    def __init__(self, run: Invocation, edition: Edition, pac: opae.Pac, index: int) -> None:
        self._run = run
        self._edition = edition
        self._pac = pac
        self._object = _FIRST_OBJECT + index * 0x100000

    def row(self, label: str, value: str) -> None:
        self._run.out(f"{label:{self._edition.label_width}} : {value}\n")

    def head(self, title: str, *, boot_page: bool = False) -> None:
        modern, legacy = self._edition.modern, self._pac.legacy
        if modern:
            self._run.out("Intel FPGA Programmable Acceleration Card N3000\n")
        self._version(
            "MAX10 NIOS FW version", "bmcfw_flash_ctrl/bmcfw_version" if legacy else "bmcfw_version"
        )
        self._version("MAX10 Build version", "max10_version" if legacy else "bmc_version")
        self._run.out(f"//****** {title} ******//\n")
        if modern and not legacy:
            self.row("Interface", "DFL")
        self.row("Object Id", f"0x{self._object:X}")
        domain, rest = self._pac.address.split(":", 1)
        self.row("PCIe s:b:d.f", f"{domain}:{rest.upper() if modern else rest}")
        for label, name in _IDS if modern else _OLD_IDS:
            number = int(self._pac.value(name) or "0", 16)
            self.row(label, f"0x{number:04X}" if modern else f"0x{number:04x}")
        self.row(*(("Socket Id", "0x00") if modern else ("Numa Node", "0")))
        self.row("Ports Num", "01")
        text = self._pac.fme_value("bitstream_id")
        if text is not None:
            number = int(text, 16)
            self.row("Bitstream Id", f"0x{number:X}")
            self.row("Bitstream Version", f"{number >> 56 & 0xF}.{number >> 52 & 0xF}.{number >> 48 & 0xF}")
        interface = self._pac.fme_value("pr/interface_id" if legacy else _COMPAT)
        if interface is not None:
            parts = (interface[:8], interface[8:12], interface[12:16], interface[16:20], interface[20:])
            self.row("Pr Interface Id", "-".join(parts))
        if boot_page and text is not None:
            factory = bool(int(text, 16) & _FACTORY_BIT) != self._defective("boot-page-inverted")
            self.row("Boot Page", "factory" if factory else "user")

    def _defective(self, name: str) -> bool:
        return f"fpgainfo-{name}" in self._run.host.defects

    def _version(self, label: str, name: str) -> None:
        text = self._pac.bmc_value(name)
        value = "" if text is None else opae.version(int(text, 16))
        colon, end = (":", " " if value else "") if self._edition.modern else ("", "")
        self._run.out(f"Board Management Controller, {label}{colon} {value}{end}\n")

    def security(self) -> None:
        self.head("SEC")
        directory = next((path for path in map(self._pac.bmc, _SECURITY) if path), None)
        if directory is None:
            self._run.err(
                "board_common.c:340:print_sec_common_info() **ERROR** : Failed to get token Object\n"
            )
            self._run.out("Sec info is not supported\n")
            return
        self._run.out("********** SEC Info START ************ \n")
        for name, root, csk in _SECTIONS:
            of = "bmc" if self._defective("root-of-bmc") and name == "sr" else name
            value = self._read(directory, f"{of}_root_entry_hash", f"{of}_root_hash")
            self._run.out(f"{root} root entry hash: {value or 'None'}\n")
            unread = self._defective("none-for-unread")
            value = None if unread else self._read(directory, f"{name}_canceled_csks")
            label = f"B{csk}" if value is None and name == "bmc" else csk  # misspelt where it is not read
            self._run.out(f"{label} CSK IDs canceled: {value or 'None'}\n")
        count = self._read(directory, *_COUNTERS) or "None"
        if self._defective("count-of-before"):
            count = self._run.host.first_counts.setdefault(self._pac.address, count)
        self._run.out(f"User flash update counter: {count}\n")
        self._run.out("********** SEC Info END ************ \n")

    def _read(self, directory: str, *names: str) -> str | None:
        """Return the text of the first of ``names`` that can be read."""
        for name in names:
            try:
                return self._run.vfs.read(f"{directory}/{name}").decode("utf-8", "replace").strip()
            except OSError:
                continue
        return None

    def phy(self) -> None:
        for group, side, speed, count in ((0, "Host side", 25, 4), (4, "Line side", 25, 4)):
            self._run.out(f"//****** PHY GROUP {group} ******//\n")
            self.row("Direction", side)
            self.row("Speed", f"{speed} Gbps")
            self.row("Number of PHYs", str(count))
        self._run.out("//****** Intel C827 Retimer ******//\n")
        for port in range(4):
            self.row(f"Port{port} 25G", "Down")
        retimer = self._run.host.retimer_version(self._pac.address)
        self.row("Retimer A Version", f"{retimer} ")
        self.row("Retimer B Version", f"{retimer} ")

    def sensors(self, title: str, kinds: tuple[str, ...]) -> None:
        self.head(title)
        place = self._pac.bmc("*hwmon*/hwmon/hwmon*")
        rows = []
        for kind, unit, scale in _UNITS:
            for path in self._run.vfs.glob(f"{place}/{kind}[0-9]*_label"):
                name = path.rpartition("/")[2].removesuffix("_label")
                try:
                    reading = int(self._run.vfs.read(path.replace("_label", "_input")))
                    value = f"{reading / scale:.2f} {unit}"
                except OSError:
                    value = "N/A"
                rows.append((kind, SENSORS[name], value))
        if not self._edition.modern:
            rows.sort(key=lambda row: row[1].number)
        for number, (kind, sensor, value) in enumerate(rows, 1):
            if kind not in kinds:
                continue
            if self._edition.modern:
                self._run.out(f"({number:2}) {sensor.label:28} : {value}\n")
            else:
                self._run.out(f"({sensor.number:2}) {sensor.old_label or sensor.label:24} : {value}\n")

    def mac(self) -> None:
        self.head("MAC")
        first = int((self._pac.bmc_value("mac_address") or "0").replace(":", ""), 16)
        count = int(self._pac.bmc_value("mac_count") or "0")
        self.row("Number of MACs", str(count))
        for index in range(count):
            text = f"{first + index:012X}"
            pairs = ":".join(text[at : at + 2] for at in range(0, 12, 2))
            self.row(f"MAC address {index}", pairs)

    def errors(self) -> None:
        self.head("FME ERRORS")
        for label in ("Errors", "First Error", "Next Error", "PCIe0 Errors", "PCIe1 Errors"):
            self.row(label, "0x0")


def _fpgainfo(edition: Edition, run: Invocation) -> int:
    """Show cards: ``fpgainfo TOPIC [ADDRESS]``."""
    words = [word for word in run.argv[1:] if word not in ("all", "-c", "--clear")]
    if not words or words[0] in ("-h", "--help"):
        run.out("Usage:\n        fpgainfo [-h] <command> [PCI_ADDR]\n")
        run.out(f"                 {{{','.join(_TOPICS)}}}\n")
        return 0 if words else 1
    topic, *rest = words
    if topic not in _TOPICS:
        run.err(f"fpgainfo: invalid command '{topic}'\n")
        return 1
    wanted = opae.canonical_address(rest[0]) if rest else None
    if rest and wanted is None and topic != "errors":
        run.err(f"fpgainfo: invalid PCI address '{rest[0]}'\n")
        return 1
    found = [pac for pac in opae.cards(run) if wanted is None or pac.address == wanted.lower()]
    if not found:
        run.err("No FPGA resources found.\n")
        return 0
    for index, pac in enumerate(found):
        _show(_Card(run, edition, pac, index), topic)
    return 0


def _show(card: _Card, topic: str) -> None:
    if topic == "fme":
        card.head("FME", boot_page=True)
    elif topic == "bmc":
        card.sensors("BMC SENSORS", ("power", "curr", "in", "temp"))
    elif topic == "temp":
        card.sensors("TEMP", ("temp",))
    elif topic == "power":
        card.sensors("POWER", ("power", "curr", "in"))
    elif topic == "security":
        card.security()
    elif topic == "phy":
        card.phy()
    elif topic == "mac":
        card.mac()
    elif topic == "errors":
        card.errors()
    else:
        card.head(topic.upper())


def programs(edition: Edition) -> dict[str, Main]:
    """Return ``fpgainfo``, which shows cards."""
    return {"fpgainfo": partial(_fpgainfo, edition)}

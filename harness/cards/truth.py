"""What is true on a card, read from its kernel attributes in one round trip by one plain `grep`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from harness.cards import values
from harness.errors import InfrastructureError
from harness.hosts.protocol import Host
from harness.judgement.values import ALL_ONES, NOT_EXPOSED, Unknown, Value

UNREAD = Unknown("not read")


@dataclass(frozen=True, slots=True)
class CardTruth:
    """The state of one card as its host's kernel exposes it; each field a value or :class:`Unknown`.

    ``address``: PCI address that answered; ``device_id``: PCI device id of its management function;
    ``identity``: the card's first MAC. Root entry hashes are
    lower-case hex, ``""`` where none is programmed; ``*_cancelled`` are CSK ids. Versions have the form
    ``D.2.0.6`` (``bmc_version``: MAX10 build, ``bmcfw_version``: Nios firmware). ``boot_page`` is bit 36
    of ``bitstream_id``. ``boot_id`` changes when the host boots. ``sources``: field -> file it was read
    from, or the pattern that was asked for. (n3000.md 4.1, 4.2, 6)
    """

    address: Value[str] = UNREAD
    identity: Value[str] = UNREAD
    driver: Value[str] = UNREAD
    device_id: Value[int] = UNREAD
    bitstream_id: Value[int] = UNREAD
    bitstream_metadata: Value[int] = UNREAD
    interface_id: Value[str] = UNREAD
    boot_page: Value[str] = UNREAD
    sr_root: Value[str] = UNREAD
    bmc_root: Value[str] = UNREAD
    pr_root: Value[str] = UNREAD
    sr_cancelled: Value[frozenset[int]] = UNREAD
    bmc_cancelled: Value[frozenset[int]] = UNREAD
    pr_cancelled: Value[frozenset[int]] = UNREAD
    flash_count: Value[int] = UNREAD
    bmc_version: Value[str] = UNREAD
    bmcfw_version: Value[str] = UNREAD
    update_status: Value[str] = UNREAD
    update_error: Value[str] = UNREAD
    remaining_size: Value[int] = UNREAD
    boot_id: Value[str] = UNREAD
    sources: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """Return the fields that were asked for, in the form that a record keeps (sets as sorted lists)."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sources"}
        return {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in own.items()
            if value is not UNREAD
        }

    @property
    def on_bus(self) -> bool:
        """Whether a PCI device stands at the address."""
        return not isinstance(self.address, Unknown)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One field of :class:`CardTruth`: the file pattern below the PCI device (or absolute) and its reader.

    ``may_be_empty``: an empty file is a legal value (``grep`` prints nothing for one). ``witnesses``: fields
    that show, by reading all ones, that the bus which this one is read over is dead.
    """

    field: str
    pattern: str
    reader: values.Reader
    may_be_empty: bool = False
    witnesses: tuple[str, ...] = ()


_FME = "fpga_region/region*/dfl-fme.*"
_BMC = f"{_FME}/dfl_dev.*/*spi*/spi_master/spi*/spi*.*"
_UPDATE = f"{_BMC}/n3000bmc-sec-update.*.auto"

#: What is read from the FPGA's registers is nothing when its id reads all ones.
_FPGA_BUS = ("bitstream_id",)
#: BMC and flash are behind the FPGA and one more bus (n3000.md 1.1). Flash has no value of its own for a dead
#: bus: all ones there are "hash not programmed", no cancelled CSK and a count of 0 (n3000.md 4.3).
_BMC_BUS = (*_FPGA_BUS, "bmc_version", "bmcfw_version")

#: Driver generation D: in-tree DFL with the firmware-upload interface (n3000.md 4.1, 4.2).
GENERATION_D: tuple[Attribute, ...] = (
    Attribute("identity", f"{_BMC}/mac_address", values.mac, witnesses=_BMC_BUS),
    Attribute("device_id", "device", values.device_id),
    Attribute("bitstream_id", f"{_FME}/bitstream_id", values.word64),
    Attribute("bitstream_metadata", f"{_FME}/bitstream_metadata", values.word64, witnesses=_FPGA_BUS),
    Attribute(
        "interface_id",
        f"{_FME}/dfl-fme-region.*/fpga_region/region*/compat_id",
        values.interface_id,
        witnesses=_FPGA_BUS,
    ),
    *(
        Attribute(
            f"{section}_root",
            f"{_UPDATE}/security/{section}_root_entry_hash",
            values.root_hash,
            witnesses=_BMC_BUS,
        )
        for section in ("sr", "bmc", "pr")
    ),
    *(
        Attribute(
            f"{section}_cancelled",
            f"{_UPDATE}/security/{section}_canceled_csks",
            values.csk_ids,
            may_be_empty=True,
            witnesses=_BMC_BUS,
        )
        for section in ("sr", "bmc", "pr")
    ),
    Attribute("flash_count", f"{_UPDATE}/security/flash_count", values.flash_count, witnesses=_BMC_BUS),
    Attribute("bmc_version", f"{_BMC}/bmc_version", values.version_word, witnesses=_BMC_BUS),
    Attribute("bmcfw_version", f"{_BMC}/bmcfw_version", values.version_word, witnesses=_BMC_BUS),
    Attribute("update_status", f"{_UPDATE}/firmware/secure-update*/status", values.update_status),
    Attribute("update_error", f"{_UPDATE}/firmware/secure-update*/error", values.update_error, True),
    Attribute("remaining_size", f"{_UPDATE}/firmware/secure-update*/remaining_size", values.remaining_size),
    Attribute("boot_id", "/proc/sys/kernel/random/boot_id", values.boot_id),
)

_FIELDS = frozenset(field.name for field in fields(CardTruth)) - {"sources"}

#: What is safe to ask for while an update runs: root hashes and counter lie on its path to the flash.
UPDATE_FIELDS = frozenset({"update_status", "update_error", "remaining_size"})

#: Longest name in a path (NAME_MAX), and what all files of one card together can hold at the very most.
_NAME_MAX = 255
_LONGEST_ANSWER = 1 << 20
_DRIVER = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_COMPLAINT = re.compile(r"^(?:\S*/)?grep: (?P<path>.+?): (?P<reason>[^:]+)$")
_BINARY = re.compile(
    r"^(?:(?:\S*/)?grep: (?P<path>.+?): binary file matches|Binary file (?P<old>.+) matches)$"
)


def read_truth(
    host: Host,
    address: str,
    *,
    sysfs: str = "/sys",
    fields: Collection[str] | None = None,
    deadline: float = 30.0,
) -> CardTruth:
    """Read the card at PCI ``address`` of ``host`` in one round trip.

    :param fields: read only these; everything by default.
    :raises InfrastructureError: the host cannot be reached, or has no working `grep`.
    """
    probe = Probe(address, sysfs, fields)
    result = host.run(probe.argv, deadline=deadline)
    if result.exit_code not in (0, 1, 2):
        raise InfrastructureError(
            f"The card at {address} on {host.name} could not be read: `grep` ended with exit code "
            f"{result.exit_code}: {result.stderr.strip()[-200:] or 'it said nothing'}.",
            hint="The probe needs `grep` on the host and a POSIX login shell.",
        )
    return probe.parse(result.stdout, result.stderr)


class Probe:
    """The one command that reads a card, and what its text means."""

    def __init__(self, address: str, sysfs: str = "/sys", fields: Collection[str] | None = None) -> None:
        self._address = address
        device = f"{sysfs}/bus/pci/devices/{address}"
        self._uevent = f"{device}/uevent"
        self._asked = _FIELDS if fields is None else frozenset(fields)
        needed = self._asked | {"bitstream_id"} if "boot_page" in self._asked else self._asked
        needed = needed.union(
            *(attribute.witnesses for attribute in GENERATION_D if attribute.field in needed)
        )
        self._patterns = {
            attribute: posixpath.join(device, attribute.pattern)
            for attribute in GENERATION_D
            if attribute.field in needed
        }
        #: What a line that matters begins with, up to the first name that a pattern leaves open.
        self._places = tuple({path.partition("*")[0] for path in (self._uevent, *self._patterns.values())})

    @property
    def argv(self) -> list[str]:
        """The command line; `uevent` tells whether the device is there and which driver has it.

        It comes last: a device always has one, so that its lines show that none before them is missing.
        """
        return ["grep", "-H", "", *self._patterns.values(), self._uevent]

    def parse(self, stdout: str, stderr: str) -> CardTruth:
        """Return what the two streams of the command say; damaged text gives Unknown, never an error."""
        # `grep` ends every line: what follows the last end was cut off, and so was what lies beyond.
        printed = stdout[:_LONGEST_ANSWER].split("\n")[:-1]
        complaints = dict(_complaints([*stderr[:_LONGEST_ANSWER].split("\n"), *printed]))
        printed = [line for line in printed if line.startswith(self._places)]
        uevent = self._lines(self._uevent, printed)
        found: dict[str, Any] = {}
        sources = {"address": self._uevent, "driver": self._uevent}
        gone = None
        if self._uevent not in uevent:
            reason = complaints.get(self._uevent, "no answer")
            missing = "No such file" in reason
            gone = Unknown(f"no device at {self._address}" if missing else f"{self._uevent}: {reason}")
            found |= {"address": gone, "driver": gone}
        else:
            found |= {"address": self._address, "driver": _driver(uevent[self._uevent])}
        for attribute, pattern in self._patterns.items():
            value, source = self._field(attribute, pattern, printed, complaints)
            if gone is not None and value is NOT_EXPOSED:
                value = gone
            found[attribute.field], sources[attribute.field] = value, source
        found |= self._behind_dead_buses(found)
        if "boot_page" in self._asked:
            found["boot_page"] = values.boot_page(found["bitstream_id"])
            sources["boot_page"] = f"bit 36 of {sources['bitstream_id']}"
        asked = self._asked | {"address", "driver"}
        return CardTruth(
            **{name: value for name, value in found.items() if name in asked},
            sources={name: source for name, source in sources.items() if name in asked},
        )

    def _behind_dead_buses(self, found: Mapping[str, Any]) -> dict[str, Unknown]:
        """Return the fields that look legal and were read over a bus which, as others show, is dead."""
        dead = {name for name, value in found.items() if value == ALL_ONES}
        return {
            attribute.field: Unknown(f"the bus is dead: {witness} reads all ones")
            for attribute in self._patterns
            if not isinstance(found[attribute.field], Unknown)
            for witness in attribute.witnesses
            if witness in dead
        }

    def _field(
        self, attribute: Attribute, pattern: str, printed: list[str], complaints: Mapping[str, str]
    ) -> tuple[Any, str]:
        files = self._lines(pattern, printed)
        matcher = re.compile(_as_regex(pattern))
        failed = {path: why for path, why in complaints.items() if path == pattern or matcher.fullmatch(path)}
        if failed:
            path, reason = next(iter(failed.items()))
            if path == pattern and "No such file" in reason:
                return NOT_EXPOSED, pattern
            return Unknown(reason), path
        if len(files) > 1:
            shown = " and ".join(sorted(files)[:3])
            return Unknown(f"ambiguous: {shown}{' and more' if len(files) > 3 else ''}"), pattern
        if not files:
            if not (printed and printed[-1].startswith(f"{self._uevent}:")):
                return Unknown("no answer"), pattern
            # Neither printed nor complained about, although `grep` came further: it is there and empty.
            return (attribute.reader("") if attribute.may_be_empty else Unknown("empty")), pattern
        path, lines = next(iter(files.items()))
        if len(lines) != 1:
            return Unknown(f"{len(lines)} lines where one was due"), path
        if not lines[0] and not attribute.may_be_empty:
            return Unknown("empty"), path
        return attribute.reader(lines[0]), path

    def _lines(self, pattern: str, printed: list[str]) -> dict[str, list[str]]:
        """Return the lines that `grep` printed for each file that ``pattern`` matched."""
        matcher = re.compile(f"({_as_regex(pattern)}):(.*)")
        found: dict[str, list[str]] = {}
        for line in printed:
            if match := matcher.fullmatch(line):
                found.setdefault(match[1], []).append(match[2])
        return found


def _complaints(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if "grep" not in line and "Binary" not in line:
            continue
        if binary := _BINARY.match(line):
            yield binary["path"] or binary["old"], "binary content"
        elif complaint := _COMPLAINT.match(line):
            yield complaint["path"], complaint["reason"][:_NAME_MAX]


def _driver(lines: list[str]) -> Value[str]:
    drivers = [line.removeprefix("DRIVER=") for line in lines if line.startswith("DRIVER=")]
    if len(drivers) != 1 or not drivers[0]:
        return Unknown("no driver bound")
    return drivers[0] if _DRIVER.fullmatch(drivers[0]) else values.garbage(drivers[0], "the name of a driver")


def _as_regex(pattern: str) -> str:
    # Bounded, so that no text can make a pattern with several stars slow.
    return re.escape(pattern).replace(r"\*", f"[^/]{{0,{_NAME_MAX}}}")

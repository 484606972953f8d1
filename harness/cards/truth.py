"""What is true on a card, read from its kernel attributes in one round trip by one plain `grep`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from harness.cards import values
from harness.cards.generations import ATTRIBUTES, BY_ATTRIBUTES, MARKS, Attribute
from harness.errors import InfrastructureError
from harness.hosts.protocol import CommandResult, Host
from harness.judgement.values import ALL_ONES, NOT_EXPOSED, Unknown, Value

UNREAD = Unknown("not read")
_NO_GENERATION = Unknown("no update interface of a known driver generation")


@dataclass(frozen=True, slots=True)
class CardTruth:
    """The state of one card as its host's kernel exposes it; each field a value or :class:`Unknown`.

    ``generation``: the driver generation, ``A`` to ``D``; what it does not expose is Unknown (not exposed).
    ``address``: PCI address that answered; ``device_id``: PCI device id of its management function;
    ``identity``: the card's first MAC. Root entry hashes are
    lower-case hex, ``""`` where none is programmed; ``*_cancelled`` are CSK ids. Versions have the form
    ``D.2.0.6`` (``bmc_version``: MAX10 build, ``bmcfw_version``: Nios firmware), those of the retimers
    ``101c.1064``. ``boot_page`` is bit 36
    of ``bitstream_id``. ``hw_errinfo`` is the doorbell (upper half) and the authentication result of an
    update that failed. ``boot_id`` changes when the host boots. ``sources``: field -> file it was read
    from, or the pattern that was asked for. (n3000.md 4.1, 4.2, 6)
    """

    address: Value[str] = UNREAD
    identity: Value[str] = UNREAD
    driver: Value[str] = UNREAD
    generation: Value[str] = UNREAD
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
    retimer_a_version: Value[str] = UNREAD
    retimer_b_version: Value[str] = UNREAD
    update_status: Value[str] = UNREAD
    update_error: Value[str] = UNREAD
    remaining_size: Value[int] = UNREAD
    hw_errinfo: Value[int] = UNREAD
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

    @property
    def updates_by_attributes(self) -> bool:
        """Whether the driver shows an update, and takes one, by attributes (not by ioctls alone)."""
        return self.generation in BY_ATTRIBUTES


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
    return probe.truth(host.name, host.run(probe.argv, deadline=deadline))


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one place said. ``exposed``: it is there; ``heard``: something was printed or complained of."""

    value: Any
    source: str
    exposed: bool = True
    heard: bool = True


class Probe:
    """The one command that reads a card, and what its text means.

    :param fields: read only these; everything by default.
    :param generation: what the card's driver was found to be before. Then the files of others are not looked
        for, except by which they are told: where the truth has another generation, or none, this was wrong.
    """

    def __init__(
        self,
        address: str,
        sysfs: str = "/sys",
        fields: Collection[str] | None = None,
        generation: str | None = None,
    ) -> None:
        self._last: tuple[str, str, CardTruth] | None = None
        self._address = address
        self._device = f"{sysfs}/bus/pci/devices/{address}"
        self._uevent = f"{self._device}/uevent"
        self._asked = _FIELDS if fields is None else frozenset(fields)
        needed = self._asked | {"bitstream_id"} if "boot_page" in self._asked else self._asked
        needed = needed.union(*(attribute.witnesses for attribute in ATTRIBUTES if attribute.field in needed))
        marks = tuple(MARKS.values()) if "generation" in needed else ()
        self._attributes = [a for a in ATTRIBUTES if a.field in needed or a in marks]
        self._read = [
            a for a in self._attributes if generation is None or generation in a.generations or a in marks
        ]
        #: Field -> where generations show it.
        self._places: dict[str, list[Attribute]] = {}
        for attribute in self._attributes:
            self._places.setdefault(attribute.field, []).append(attribute)
        read = set(self._read)
        self._unread = {a: self._not_exposed(a) for a in self._attributes if a not in read}

    @property
    def argv(self) -> list[str]:
        """The command line; `uevent` tells whether the device is there and which driver has it.

        It comes last: a device always has one, so that its lines show that none before them is missing.
        """
        return ["grep", "-H", "", *(self._path(a.pattern) for a in self._read), self._uevent]

    def _path(self, pattern: str) -> str:
        return pattern if pattern.startswith("/") else f"{self._device}/{pattern}"

    def truth(self, host: str, result: CommandResult) -> CardTruth:
        """Return what the command's result says. :raises InfrastructureError: ``host`` has no such `grep`."""
        if result.exit_code not in (0, 1, 2):
            raise InfrastructureError(
                f"The card at {self._address} on {host} could not be read: `grep` ended with exit code "
                f"{result.exit_code}: {result.stderr.strip()[-200:] or 'it said nothing'}.",
                hint="The probe needs `grep` on the host and a POSIX login shell.",
            )
        return self.parse(result.stdout, result.stderr)

    def parse(self, stdout: str, stderr: str) -> CardTruth:
        """Return what the two streams of the command say; damaged text gives Unknown, never an error."""
        # A card shows the same after an operation and before the next one.
        if self._last is None or self._last[:2] != (stdout, stderr):
            self._last = stdout, stderr, self._parsed(stdout, stderr)
        return self._last[2]

    def _parsed(self, stdout: str, stderr: str) -> CardTruth:
        answer = _Answer(self._device, stdout, stderr)
        found: dict[str, Any] = {}
        sources = {"address": self._uevent, "driver": self._uevent}
        uevent = answer.rows("uevent").get("uevent")
        gone = None
        if uevent is None:
            reason = answer.complaints.get("uevent", "no answer")
            missing = "No such file" in reason
            gone = Unknown(f"no device at {self._address}" if missing else f"{self._uevent}: {reason}")
            found |= {"address": gone, "driver": gone}
        else:
            found |= {"address": self._address, "driver": _driver(uevent)}
        readings = self._unread | {a: self._reading(a, answer) for a in self._read}
        generation = _generation(readings)
        chosen = {name: self._chosen(name, readings, generation.value) for name in self._places}
        for name, reading in (chosen | {"generation": generation}).items():
            found[name], sources[name] = reading.value, reading.source
        if gone is not None:
            found |= {name: gone for name, value in found.items() if value in (NOT_EXPOSED, _NO_GENERATION)}
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
            for attribute in self._attributes
            if attribute.witnesses and not isinstance(found[attribute.field], Unknown)
            for witness in attribute.witnesses
            if witness in dead
        }

    def _chosen(self, name: str, readings: Mapping[Attribute, _Reading], generation: Value[str]) -> _Reading:
        """Return what was read of a field at the one place, of all generations', where it is shown."""
        places = self._places[name]
        shown = _heard([readings[attribute] for attribute in places])
        if len(shown) == 1:
            return shown[0]
        if shown:
            sources = [reading.source for reading in shown]
            reason = f"ambiguous: {' and '.join(sources)}" if shown[0].heard else "no answer"
            return _Reading(Unknown(reason), " or ".join(sources))
        own = [a for a in places if isinstance(generation, str) and generation in a.generations]
        return _Reading(
            NOT_EXPOSED, " or ".join(self._path(attribute.pattern) for attribute in own or places)
        )

    def _not_exposed(self, attribute: Attribute) -> _Reading:
        return _Reading(NOT_EXPOSED, self._path(attribute.pattern), exposed=False)

    def _reading(self, attribute: Attribute, answer: _Answer) -> _Reading:
        """Return what the files that ``attribute`` names say."""
        pattern = self._path(attribute.pattern)
        failed = answer.failures(attribute.pattern)
        if failed:
            path, reason = next(iter(failed.items()))
            if path == attribute.pattern and "No such file" in reason:
                if answer.rows(attribute.pattern):
                    return _Reading(Unknown("contradictory: printed, and said to be missing"), pattern)
                return self._not_exposed(attribute)
            return _Reading(Unknown(reason), self._path(path))
        files = answer.rows(attribute.pattern)
        if len(files) > 1:
            shown = " and ".join(map(self._path, sorted(files)[:3]))
            return _Reading(Unknown(f"ambiguous: {shown}{' and more' if len(files) > 3 else ''}"), pattern)
        if not files:
            if not answer.complete:
                return _Reading(Unknown("no answer"), pattern, heard=False)
            # Neither printed nor complained about, although `grep` came further: it is there and empty.
            value = attribute.reader("") if attribute.may_be_empty else Unknown("empty")
            return _Reading(value, pattern, heard=False)
        path, lines = next(iter(files.items()))
        if len(lines) != 1:
            return _Reading(Unknown(f"{len(lines)} lines where one was due"), self._path(path))
        if not lines[0] and not attribute.may_be_empty:
            return _Reading(Unknown("empty"), self._path(path))
        return _Reading(attribute.reader(lines[0]), self._path(path))


class _Answer:
    """What `grep` printed and complained about; paths are relative to the device where they are below it.

    So the expressions that find them are the same for every card.
    """

    def __init__(self, device: str, stdout: str, stderr: str) -> None:
        below = f"{device}/"
        # `grep` ends every line: what follows the last end was cut off, and so was what lies beyond.
        lines = stdout[:_LONGEST_ANSWER].split("\n")[:-1]
        complaints = _complaints([*stderr[:_LONGEST_ANSWER].split("\n"), *lines])
        self._printed = [line.removeprefix(below) for line in lines if line.startswith((below, "/proc/"))]
        #: Path or pattern -> why it could not be read.
        self.complaints = {path.removeprefix(below): reason for path, reason in complaints}
        self._failed = {path: reason for path, reason in self.complaints.items() if "*" not in path}

    @property
    def complete(self) -> bool:
        """Whether the last file that was asked for has answered."""
        return bool(self._printed) and self._printed[-1].startswith("uevent:")

    def failures(self, pattern: str) -> dict[str, str]:
        """Return which paths that ``pattern`` matches (or it itself) could not be read, and why."""
        if pattern in self.complaints:  # the shell found nothing that it matches
            return {pattern: self.complaints[pattern]}
        name = posixpath.basename(pattern)
        return {
            path: why
            for path, why in self._failed.items()
            if path.endswith(name) and _paths(pattern).fullmatch(path)
        }

    def rows(self, pattern: str) -> dict[str, list[str]]:
        """Return the lines of each file that ``pattern`` matched."""
        name = f"{posixpath.basename(pattern)}:"  # most lines are of another file: that is seen at once
        found: dict[str, list[str]] = {}
        for line in self._printed:
            if name in line and (match := _rows(pattern).fullmatch(line)):
                found.setdefault(match[1], []).append(match[2])
        return found


def _heard(readings: list[_Reading]) -> list[_Reading]:
    """Return the readings of places that are there: those that said something, if any did."""
    exposed = [reading for reading in readings if reading.exposed]
    return [reading for reading in exposed if reading.heard] or exposed


def _generation(readings: Mapping[Attribute, _Reading]) -> _Reading:
    """Return the driver generation, told by what only it has, and where that was found."""
    marks = {readings[mark]: generation for generation, mark in MARKS.items() if mark in readings}
    shown = _heard(list(marks))
    if len(shown) == 1:
        return _Reading(marks[shown[0]], shown[0].source)
    source = " or ".join(reading.source for reading in shown or marks)
    if shown:
        found = " and ".join(marks[reading] for reading in shown)
        return _Reading(Unknown(f"ambiguous: {found}" if shown[0].heard else "no answer"), source)
    return _Reading(_NO_GENERATION, source)


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


@cache
def _paths(pattern: str) -> re.Pattern[str]:
    """Return what matches the paths that the shell makes of ``pattern``."""
    # Bounded, so that no text can make a pattern with several stars slow.
    return re.compile(re.escape(pattern).replace(r"\*", f"[^/]{{0,{_NAME_MAX}}}"))


@cache
def _rows(pattern: str) -> re.Pattern[str]:
    """Return what splits `grep`'s line of a path that ``pattern`` matches from the file's text."""
    return re.compile(f"({_paths(pattern).pattern}):(.*)")

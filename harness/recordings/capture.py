"""Captures what a host shows of its cards, by reading alone: files, links, PCI functions, tools."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from harness.cards.discovery import MANAGEMENT, VENDOR
from harness.cards.truth import UPDATE_FIELDS, read_truth
from harness.errors import InfrastructureError
from harness.hosts.commands import TOUCHY_FILES
from harness.hosts.protocol import Host
from harness.recordings.model import Entry, Output, State
from harness.recordings.reading import LARGEST_FILE, Found, list_below, read_files

UPTIME = "/proc/uptime"
#: Programs that say what the files say, or what time it is: a replayed host has them itself.
FILE_PROGRAMS = frozenset(
    {
        "cat",
        "date",
        "df",
        "find",
        "grep",
        "head",
        "ls",
        "pgrep",
        "readlink",
        "sha256sum",
        "stat",
        "test",
        "true",
    }
)
#: Of the host itself: what it is, and which boot this is.
HOST_FILES = (
    UPTIME,
    "/proc/version",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/random/boot_id",
    "/etc/os-release",
)
#: Only whether they are there matters.
_MARKS = ("/etc/platform/platform.conf",)
#: Where tools look for cards besides the bus, in any driver generation (n3000.md 4.1).
_INDEXES = (
    "bus/platform/drivers/intel-m10bmc-sec-update",
    "bus/pci/drivers/dfl-pci",
    "bus/pci/drivers/intel-fpga-pci",
    "class/firmware",
    "class/fpga",
    "class/fpga_manager",
    "class/fpga_region",
    "class/fpga_sec_mgr",
    "class/ifpga_sec_mgr",
)
_KERNEL_LINES = r"m10bmc|m10-bmc|max10|n3000|fpga|dfl|secure-update|ifpga"
_LSPCI_LINE = re.compile(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?= )")
_NODES = re.compile(r"dfl|intel-fpga|fpga")
_TYPES = {"d": "directory", "c": "character device", "b": "block device", "p": "pipe", "s": "socket"}


class Capture:
    """Reads one host with declared read-only commands. :param sysfs: where its sysfs is mounted."""

    def __init__(self, host: Host, *, sysfs: str = "/sys") -> None:
        self._host = host
        self._sysfs = sysfs.rstrip("/")

    def state(self, when: str, cards: Mapping[str, str | None]) -> State:
        """Return everything that the host shows of ``cards``: name -> address, None for one that is gone.

        :raises InfrastructureError: the host cannot be asked, or an update runs: reading would disturb it.
        """
        for name, address in cards.items():
            if address is not None:
                self._check_idle(name, address)
        addresses = [address for address in cards.values() if address is not None]
        tree, related = self._tree(addresses)
        commands: dict[str, Output | None] = {}
        for argv in _command_lines(addresses, related):
            result = self._host.run(argv, deadline=60.0)
            text = _of_cards(argv[0], result.stdout, related)
            commands[shlex.join(argv)] = Output(result.exit_code, text, result.stderr)
        return State(when, dict(cards), dict(tree), commands)

    def _check_idle(self, name: str, address: str) -> None:
        status = read_truth(self._host, address, sysfs=self._sysfs, fields=UPDATE_FIELDS).update_status
        if isinstance(status, str) and status != "idle":
            raise InfrastructureError(
                f"An update of {self._host.name}/{name} runs (status {status}); nothing was recorded.",
                hint="Reading a card would disturb it. Wait for the update to end.",
            )

    # -- files ----------------------------------------------------------------------------------

    def _tree(self, addresses: Sequence[str]) -> tuple[dict[str, Entry], list[str]]:
        """Return what stands where, and the addresses of every PCI function that belongs to the cards."""
        devices = f"{self._sysfs}/bus/pci/devices"
        bus = list_below(self._host, [devices], depth=1)
        if devices in bus.failed:
            raise InfrastructureError(f"{devices} on {self._host.name}: {bus.failed[devices]}.")
        places = {
            posixpath.basename(found.path): posixpath.normpath(posixpath.join(devices, found.target))
            for found in bus.found
            if found.type == "l"
        }
        cards = [places[address] for address in addresses if address in places]
        related = _related(cards, places, addresses)
        beside = [places[a] for a in related if a in places and places[a] not in cards]
        deep = list_below(self._host, cards)
        shallow = list_below(self._host, beside, depth=1)
        folders = self._index_folders([*deep.found, *shallow.found])
        indexes = list_below(self._host, folders, depth=1)
        entered = {devices, *beside, *folders, *(found.path for found in deep.found)}
        tree: dict[str, Entry] = {}
        readable: list[str] = list(HOST_FILES)
        for listing in (bus, indexes, shallow, deep):
            for found in listing.found:
                entry = _entry(found, found.path in entered, listing.failed)
                if listing in (bus, indexes) and self._elsewhere(found, [*cards, *beside]):
                    entry = Entry("left-out", text="link: to another device")
                if entry is not None:
                    tree[found.path] = entry
                else:
                    readable.append(found.path)
            tree |= {p: Entry("absent") for p, why in listing.failed.items() if "No such file" in why}
        for found in list_below(self._host, ["/dev"], depth=1).found:
            if _NODES.match(posixpath.basename(found.path)):
                tree[found.path] = Entry("left-out", text=f"a {_TYPES.get(found.type, found.type)}")
        for mark in _MARKS:
            there = list_below(self._host, [mark], depth=0).found
            tree[mark] = (
                Entry("left-out", text="file: only that it is there matters") if there else Entry("absent")
            )
        return tree | read_files(self._host, list(dict.fromkeys(readable))), related

    def _elsewhere(self, link: Found, places: Sequence[str]) -> bool:
        """Return whether ``link`` leads to a device that is none of ``places`` nor below one of them."""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), link.target))
        is_device = link.type == "l" and target.startswith(f"{self._sysfs}/devices/")
        return is_device and not any(f"{target}/".startswith(f"{place}/") for place in places)

    def _index_folders(self, found: Sequence[Found]) -> list[str]:
        """Return the folders in which drivers and classes list the devices that were found."""
        folders = dict.fromkeys(f"{self._sysfs}/{index}" for index in _INDEXES)
        for link in found:
            name = posixpath.basename(link.path)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), link.target))
            if link.type == "l" and (
                name == "driver" or (name == "subsystem" and target.startswith(f"{self._sysfs}/class/"))
            ):
                folders[target] = None
        return list(folders)


def _command_lines(addresses: Sequence[str], related: Sequence[str]) -> Iterator[list[str]]:
    """Yield the command lines whose output is captured."""
    management = f"{VENDOR:04x}:{MANAGEMENT:04x}"
    yield from (["uname", option] for option in ("-a", "-s", "-n", "-r", "-m"))
    yield from (["hostname"], ["dmesg"])
    yield from (["lspci", "--version"], ["fpgainfo", "--version"], ["fpgasupdate", "--version"])
    yield ["lspci", "-Dnn"]
    yield from (["lspci", form, "-d", management] for form in ("-Dnn", "-Dm", "-nn"))
    for address in related:
        yield from (["lspci", form, "-s", address] for form in ("-Dnnk", "-Dvmmnnk"))
    for address in addresses:
        yield from (["fpgainfo", topic, address] for topic in ("fme", "security", "phy", "bmc"))


def _of_cards(program: str, text: str, related: Sequence[str]) -> str:
    """Return the lines of ``text`` about the functions ``related``, where a tool tells of others too.

    Of the kernel's log those of the cards' drivers as well.
    """
    lines = text.splitlines(keepends=True)
    if program == "dmesg":
        wanted = re.compile("|".join([_KERNEL_LINES, *map(re.escape, related)]))
        return "".join(line for line in lines if wanted.search(line))
    if program == "lspci":
        others = [
            line for line in lines if (match := _LSPCI_LINE.match(line)) and not _among(match[0], related)
        ]
        return "".join(line for line in lines if line not in others)
    return text


def _among(address: str, related: Sequence[str]) -> bool:
    return any(known.endswith(address.lower()) for known in related)


def _related(cards: Sequence[str], places: Mapping[str, str], addresses: Sequence[str]) -> list[str]:
    """Return the addresses of the cards' functions and of the ports above them.

    All functions of a card sit below one root port (n3000.md 1.1); one without a port has its slot alone.
    """
    known = {path: address for address, path in places.items()}
    related = dict.fromkeys(addresses)
    for card in cards:
        above = [path for path in known if card.startswith(f"{path}/")]
        top = min(above, key=len) if above else card.rpartition(".")[0]
        for path in sorted(known):
            if path == top or path.startswith(f"{top}/" if above else f"{top}."):
                related[known[path]] = None
    return list(related)


def _entry(found: Found, entered: bool, failed: Mapping[str, str]) -> Entry | None:
    """Return what is known of ``found`` without reading it; None for a file that is to be read."""
    name = posixpath.basename(found.path)
    if found.type == "l":
        return Entry("link", text=found.target)
    if found.type == "d" and found.path in failed:
        return Entry("left-out", text=f"directory: {failed[found.path]}")
    if found.type == "d":
        return Entry("directory") if entered else Entry("left-out", text="directory: beside the card")
    if found.type != "f":
        return Entry("left-out", text=f"a {_TYPES.get(found.type, found.type)}")
    if not found.mode & 0o444:
        return Entry("write-only")
    if name in TOUCHY_FILES:
        return Entry("left-out", text="file: reading it acts on the device")
    if found.size > LARGEST_FILE:
        return Entry("left-out", text=f"file: {found.size} bytes")
    return None

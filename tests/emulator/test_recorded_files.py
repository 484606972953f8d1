"""What was absent is told from what was not captured, on every way that a path can take."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.emulator.recorded_files import NotRecorded, RecordedVfs
from harness.recordings.model import Entry

DIRECTORY = Entry("directory")
TREE: dict[str, Entry | None] = {
    "/sys/bus/pci/devices": DIRECTORY,
    "/sys/bus/pci/devices/0000:b2:00.0": Entry("link", text="../../../devices/pci0/0000:b2:00.0"),
    "/sys/bus/pci/devices/0000:00:00.0": Entry("left-out", text="link: to another device"),
    "/sys/devices/pci0/0000:b2:00.0": DIRECTORY,
    "/sys/devices/pci0/0000:b2:00.0/vendor": Entry("content", b"0x8086\n"),
    "/sys/devices/pci0/0000:b2:00.0/error": Entry("unreadable", text="EBUSY"),
    "/sys/devices/pci0/0000:b2:00.0/remove": Entry("write-only"),
    "/sys/devices/pci0/0000:b2:00.0/rom": Entry("left-out", text="file: reading it acts on the device"),
    "/sys/devices/pci0/0000:b2:00.0/net": Entry("left-out", text="directory: beside the card"),
    "/sys/devices/pci0/0000:b2:00.0/subsystem": Entry("link", text="../../../bus/pci"),
    "/sys/devices/pci0/0000:b2:00.0/iommu": Entry("link", text="../../virtual/iommu/dmar0"),
    "/sys/devices/pci0/0000:b2:00.0/self": Entry("link", text="self"),
    "/sys/class/fpga": Entry("absent"),
}
CARD = "/sys/bus/pci/devices/0000:b2:00.0"


@pytest.fixture
def noted() -> list[str]:
    return []


@pytest.fixture
def files(noted: list[str]) -> RecordedVfs:
    found = RecordedVfs(lambda: 0.0, noted.append)
    found.show(TREE, content)
    return found


def content(path: str, entry: Entry) -> bytes:
    if entry.kind != "content":
        raise OSError(getattr(errno, entry.text), "x", path)
    return entry.data


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except NotRecorded:
        return "not recorded"
    except OSError as error:
        return errno.errorcode[error.errno or 0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"{CARD}/vendor", b"0x8086\n"),
        (f"{CARD}/error", "EBUSY"),
        (f"{CARD}/remove", "EACCES"),
        (f"{CARD}/nothing", "ENOENT"),
        (f"{CARD}/vendor/below", "ENOTDIR"),
        (f"{CARD}/nothing/below", "ENOENT"),
        (f"{CARD}/self", "ELOOP"),
        (CARD, "EISDIR"),
        (f"{CARD}/subsystem/devices/0000:b2:00.0/vendor", b"0x8086\n"),
        ("/sys/bus/pci/devices/0000:ff:00.0/vendor", "ENOENT"),
        ("/sys/bus/pci/devices/../devices/0000:b2:00.0/vendor", b"0x8086\n"),
        ("/sys/class/fpga", "ENOENT"),
        ("/sys/class/fpga/below", "ENOENT"),
        (f"{CARD}/rom", "not recorded"),
        (f"{CARD}/net", "not recorded"),
        (f"{CARD}/net/eth0/address", "not recorded"),
        (f"{CARD}/iommu", "not recorded"),
        (f"{CARD}/iommu/type", "not recorded"),
        (f"{CARD}/subsystem/drivers", "not recorded"),
        ("/sys/bus/pci/devices/0000:00:00.0/vendor", "not recorded"),
        ("/sys/bus/pci/slots", "not recorded"),
        ("/sys/devices/pci0/0000:00:00.0", "not recorded"),
        ("/sys/class/net/eth0", "not recorded"),
        ("/etc/passwd", "not recorded"),
        ("/sys/../etc/passwd", "not recorded"),
    ],
)
def test_reading(files: RecordedVfs, noted: list[str], path: str, expected: Any) -> None:
    assert outcome(lambda: files.read(path)) == expected
    named = [what.rpartition("/")[2] for what in noted]
    assert named == ([path.rpartition("/")[2]] if expected == "not recorded" else [])
    assert all(what.startswith("read /") for what in noted)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/sys/bus/pci/devices", ["0000:b2:00.0"]),
        (f"{CARD}/vendor", "ENOTDIR"),
        (f"{CARD}/nothing", "ENOENT"),
        ("/sys/bus/pci", "not recorded"),
        ("/sys", "not recorded"),
        ("/", ["sys"]),  # this host's own
        ("/sys/class", "not recorded"),
        (f"{CARD}/net", "not recorded"),
        ("/sys/class/fpga", "ENOENT"),
    ],
)
def test_listing(files: RecordedVfs, noted: list[str], path: str, expected: Any) -> None:
    assert outcome(lambda: files.listdir(path)) == expected
    assert len(noted) == (expected == "not recorded")


def test_the_names_of_what_was_left_out_are_listed(files: RecordedVfs) -> None:
    names = files.listdir(CARD)
    assert {"rom", "net"} <= set(names)
    assert len(names) == 8
    assert [files.status(f"{CARD}/{name}").mode & 0o170000 for name in ("rom", "net")] == [0o100000, 0o040000]


@pytest.mark.parametrize("path", [f"{CARD}/vendor", f"{CARD}/remove", f"{CARD}/rom"])
def test_writing(files: RecordedVfs, noted: list[str], path: str) -> None:
    assert outcome(lambda: files.open(path, read=False, write=True).write(b"1")) == "not recorded"
    assert [what.partition(" ")[0] for what in noted] == ["write"]


@pytest.mark.parametrize("path", [f"{CARD}/new", "/sys/new", "/etc/new", "/new"])
def test_nothing_can_be_made(files: RecordedVfs, path: str) -> None:
    assert outcome(lambda: files.open(path, write=True, create=True)) in ("not recorded", "EACCES")
    assert outcome(lambda: files.mkdir(path)) in ("not recorded", "EPERM")
    assert outcome(lambda: files.unlink(f"{CARD}/vendor")) == "EPERM"


def test_patterns_match_what_is_recorded_and_ask_for_nothing(files: RecordedVfs, noted: list[str]) -> None:
    assert files.glob("/sys/bus/pci/devices/*/vendor") == [f"{CARD}/vendor"]
    assert files.glob("/sys/class/*/x") == []
    assert files.glob(f"{CARD}/net/*/address") == []
    assert files.glob(f"{CARD}/iommu/*/type") == []
    assert noted == []


def test_another_state_is_put_over_the_first(files: RecordedVfs) -> None:
    opened = files.open(f"{CARD}/vendor")
    changes: dict[str, Entry | None] = {
        path: None for path in TREE if path.startswith("/sys/devices/pci0/0000:b2:00.0")
    }
    changes |= {
        CARD: None,
        "/sys/bus/pci/devices/0000:c4:00.0": Entry("link", text="../../../devices/pci0/0000:c4:00.0"),
        "/sys/devices/pci0/0000:c4:00.0": DIRECTORY,
        "/sys/devices/pci0/0000:c4:00.0/vendor": Entry("content", b"0x8086\n"),
        "/sys/class/fpga": DIRECTORY,
    }
    files.show(changes, content)
    assert files.listdir("/sys/bus/pci/devices") == ["0000:c4:00.0"]
    assert files.read("/sys/bus/pci/devices/0000:c4:00.0/vendor") == b"0x8086\n"
    assert outcome(lambda: files.read(f"{CARD}/vendor")) == "ENOENT"
    assert outcome(lambda: files.read("/sys/devices/pci0/0000:b2:00.0/vendor")) == "not recorded"
    assert outcome(lambda: files.read("/sys/bus/pci/devices/0000:00:00.0/x")) == "not recorded"
    assert files.listdir("/sys/class/fpga") == []
    assert outcome(opened.read) == "ENODEV"
    files.show({"/sys/class/fpga": Entry("absent"), CARD: Entry("content", b"x")}, content)
    assert outcome(lambda: files.listdir("/sys/class/fpga")) == "ENOENT"
    assert files.read(CARD) == b"x"


_NAMES = st.sampled_from(["a", "b", "c"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(st.dictionaries(_PATHS, st.sampled_from([DIRECTORY, Entry("content", b"x")]), max_size=8), _PATHS)
def test_a_path_is_absent_only_where_its_directory_was_listed(tree: dict[str, Entry], path: str) -> None:
    solid = [place for place, entry in tree.items() if entry.kind == "content"]
    kept = {p: e for p, e in tree.items() if not any(p.startswith(f"{place}/") for place in solid)}
    files = RecordedVfs(lambda: 0.0, lambda what: None)
    files.show(dict(kept), content)
    parts = path.split("/")[1:]
    above = ["/" + "/".join(parts[:number]) for number in range(len(parts))]
    there = {*kept, *(posixpath.dirname(p) for p in kept)}
    while there != (more := {*there, *(posixpath.dirname(p) for p in there)}):
        there = more
    found = outcome(lambda: files.exists(path) or files.node(path))
    if path in there:
        assert found is True
        return
    deepest = max((place for place in [*above] if place in there or place == "/"), key=len)
    known = kept.get(deepest)
    if known is not None and known.kind == "content":
        assert found == "ENOTDIR"
    elif known is not None:
        assert found == "ENOENT"
    else:
        assert found == "not recorded"

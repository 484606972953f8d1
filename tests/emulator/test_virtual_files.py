"""The emulated host's file system: errno by errno as Linux has it."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from harness.emulator.vfs import Attribute, Directory, Link, Vfs


@pytest.fixture
def files() -> Vfs:
    found = Vfs()
    found.write("/etc/hostname", b"controller-0\n")
    found.place("/etc/link", Link("hostname"))
    found.place("/etc/loop", Link("loop"))
    found.place("/etc/dangling", Link("gone"))
    found.place("/sys/read_only", Attribute(lambda: b"1\n"), kernel=True)
    found.place("/sys/write_only", Attribute(None, lambda data, offset: None), kernel=True)
    found.place("/sys/busy", Attribute(_busy), kernel=True)
    return found


def _busy() -> bytes:
    raise OSError(errno.EBUSY, "busy")


@pytest.mark.parametrize(
    ("number", "act"),
    [
        (errno.ENOENT, lambda files: files.read("/nope")),
        (errno.ENOENT, lambda files: files.read("/nope/deeper")),
        (errno.ENOTDIR, lambda files: files.read("/etc/hostname/x")),
        (errno.ENOTDIR, lambda files: files.read("/etc/hostname/")),
        (errno.ELOOP, lambda files: files.read("/etc/loop")),
        (errno.ENOENT, lambda files: files.read("/etc/dangling")),
        (errno.EISDIR, lambda files: files.read("/etc")),
        (errno.EISDIR, lambda files: files.open("/etc", write=True)),
        (errno.EACCES, lambda files: files.read("/sys/write_only")),
        (errno.EACCES, lambda files: files.open("/sys/read_only", read=False, write=True)),
        (errno.EACCES, lambda files: files.open("/sys/new", write=True, create=True)),
        (errno.EBUSY, lambda files: files.read("/sys/busy")),
        (errno.EPERM, lambda files: files.unlink("/sys/read_only")),
        (errno.EPERM, lambda files: files.mkdir("/sys/new")),
        (errno.EISDIR, lambda files: files.unlink("/etc")),
        (errno.ENOTEMPTY, lambda files: files.rmdir("/etc")),
        (errno.EEXIST, lambda files: files.mkdir("/etc")),
        (errno.EEXIST, lambda files: files.open("/etc/hostname", write=True, create=True, exclusive=True)),
        (errno.EINVAL, lambda files: files.readlink("/etc/hostname")),
        (errno.ENOTDIR, lambda files: files.listdir("/etc/hostname")),
    ],
)
def test_refusals(files: Vfs, number: int, act: Callable[[Vfs], object]) -> None:
    with pytest.raises(OSError) as caught:
        act(files)
    assert caught.value.errno == number


def test_an_attribute_is_made_anew_for_each_open_and_once_for_one(files: Vfs) -> None:
    shown = iter([b"first\n", b"second\n"])
    files.place("/sys/counter", Attribute(lambda: next(shown)), kernel=True)
    handle = files.open("/sys/counter")
    assert (handle.read(3), handle.read()) == (b"fir", b"st\n")
    assert files.read("/sys/counter") == b"second\n"


def test_a_write_reaches_the_attribute_before_it_returns(files: Vfs) -> None:
    written: list[tuple[bytes, int]] = []
    files.place(
        "/sys/data", Attribute(None, lambda data, offset: written.append((data, offset))), kernel=True
    )
    handle = files.open("/sys/data", read=False, write=True)
    handle.write(b"abc")
    assert written == [(b"abc", 0)]
    handle.write(b"de")
    assert written == [(b"abc", 0), (b"de", 3)]


def test_links_lead_through_and_parents_of_links_are_those_of_the_target(files: Vfs) -> None:
    files.place("/deep/down/file", Link("../../etc/link"))
    files.place("/shortcut", Link("/deep/down"))
    assert files.realpath("/shortcut/file") == "/etc/hostname"
    assert files.realpath("/shortcut/..") == "/deep"


def test_writing_through_a_dangling_link_makes_its_target(files: Vfs) -> None:
    files.open("/etc/dangling", write=True, create=True).write(b"x")
    assert files.read("/etc/gone") == b"x"


def test_sparse_writes_are_filled_with_zeros(files: Vfs) -> None:
    handle = files.open("/etc/new", write=True, create=True)
    handle.pwrite(4, b"x")
    assert files.read("/etc/new") == b"\0\0\0\0x"


def test_rename_moves_onto_a_file_but_not_onto_a_directory(files: Vfs) -> None:
    files.place("/target", Directory())
    files.rename("/etc/hostname", "/etc/renamed")
    assert files.read("/etc/renamed") == b"controller-0\n"
    with pytest.raises(IsADirectoryError):
        files.rename("/etc/renamed", "/target")

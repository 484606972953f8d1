"""What an emulated host refuses before it costs the lab: full disks, endless nesting, paths that are none."""

from __future__ import annotations

import errno
import time
from typing import Any

import pytest

from harness.emulator.linear_regex import LinearRegex, is_risky
from harness.emulator.patterns import pattern_regex
from harness.emulator.vfs import Directory, Vfs


@pytest.fixture
def files() -> Vfs:
    found = Vfs()
    found.write("/tmp/d/e/f", b"deep")
    found.write("/tmp/f", b"file")
    found.place("/sys/bus", Directory(kernel=True), kernel=True)
    return found


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda files: files.mkdir("/tmp/."), errno.EEXIST),
        (lambda files: files.mkdir("/tmp/.."), errno.EEXIST),
        (lambda files: files.rmdir("/tmp/d/e/."), errno.EINVAL),
        (lambda files: files.rename("/tmp/d", "/tmp/d/e/x"), errno.EINVAL),
        (lambda files: files.rename("/tmp/d/.", "/tmp/x"), errno.EBUSY),
        (lambda files: files.rename("/sys", "/tmp/x"), errno.EBUSY),
        (lambda files: files.rename("/tmp/d", "/tmp/f"), errno.ENOTDIR),
        (lambda files: files.rename("/tmp/f", "/tmp/d"), errno.EISDIR),
        (lambda files: files.mkdir("/tmp/" + "n" * 256), errno.ENAMETOOLONG),
        (lambda files: files.node("/tmp/" + "../tmp/" * 700), errno.ENAMETOOLONG),
    ],
)
def test_paths_that_cannot_be_are_refused_as_linux_does(files: Vfs, act: Any, code: int) -> None:
    with pytest.raises(OSError) as caught:
        act(files)
    assert caught.value.errno == code
    assert files.read("/tmp/d/e/f") == b"deep"
    assert files.listdir("/tmp") == ["d", "f"]


def test_one_write_far_behind_the_end_takes_no_memory(files: Vfs) -> None:
    with pytest.raises(OSError) as caught:
        files.open("/tmp/f", write=True).pwrite(1 << 62, b"x")
    assert caught.value.errno == errno.ENOSPC
    assert files.read("/tmp/f") == b"file"


def test_room_of_a_removed_file_is_free_again() -> None:
    files = Vfs()
    files.disk.capacity = 1000
    for _ in range(5):
        files.open("/a", write=True, create=True).write(b"x" * 900)
        files.unlink("/a")
    files.open("/b", write=True, create=True).write(b"x" * 900)
    with pytest.raises(OSError) as caught:
        files.open("/c", write=True, create=True).write(b"x" * 900)
    assert caught.value.errno == errno.ENOSPC


def test_full_disk_of_a_host(console: Any) -> None:
    console.host.condition("disk-full", True)
    done = console.run("echo more > /tmp/x")
    assert (done.code, done.err) == (1, "bash: line 1: echo: write error: No space left on device\n")
    assert console.run("df -P -k /tmp").out.splitlines()[1].split()[3] == "0"
    assert console.run("flock -n /run/lock/x.lock cat /etc/hostname").code == 0
    console.host.condition("disk-full", False)
    assert console.run("echo more > /tmp/x; cat /tmp/x").out == "more\n"
    assert int(console.run("df -P -k /tmp").out.splitlines()[1].split()[3]) > 100_000


def test_read_only_disk_of_a_host(console: Any) -> None:
    console.run("echo old > /tmp/x")
    console.host.condition("disk-read-only", True)
    for command in ("echo new > /tmp/x", "rm /tmp/x", "mkdir /tmp/y", "mv /tmp/x /tmp/y"):
        done = console.run(command)
        assert (done.code, "Read-only file system" in done.err) == (1, True), command
    assert console.run("cat /tmp/x").out == "old\n"
    assert console.run("echo 1 > /run/lock/x && cat /run/lock/x").out == "1\n"
    console.host.condition("disk-read-only", False)
    assert console.run("rm /tmp/x").code == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('x=\'eval "$x"\'; eval "$x"', "maximum nesting level exceeded"),
        ("echo 'sh /tmp/again' > /tmp/again; sh /tmp/again", "maximum nesting level exceeded"),
        (" ".join(["env"] * 500), "maximum nesting level exceeded"),
        (" | ".join(["true"] * 100), "fork: Resource temporarily unavailable"),
        ("x=aaaaaaaa; " + 'x="$x$x"; ' * 30, "Argument list too long"),
        ("echo /*/../*/../*/../*/../*", "Argument list too long"),
    ],
)
def test_what_would_never_end_is_given_up(console: Any, command: str, said: str) -> None:
    began = time.process_time()
    done = console.run(command)
    assert done.code != 0
    assert said in done.err
    assert time.process_time() - began < 2.0
    assert console.host.processes.all() == []


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("echo a\r", 0, ""),
        ("echo x 5>/tmp/g; echo y >&7", 1, "7: Bad file descriptor"),
        ("kill -2147483648 $$", 1, "invalid signal specification"),
        ("head -n x /etc/hostname", 1, "invalid number of lines"),
        ("mv one", 1, "missing operand"),
        ("sleep nan", 1, "invalid time interval"),
        ("pgrep '('", 2, "unterminated"),
        ("printf '%99999999999s' x", 0, ""),
    ],
)
def test_words_that_do_not_fit_are_complained_of(console: Any, command: str, code: int, said: str) -> None:
    done = console.run(command)
    assert done.code == code
    assert said in done.err


def test_patterns_and_repetitions_take_linear_time() -> None:
    began = time.process_time()
    assert pattern_regex("*a" * 30 + "b").fullmatch("a" * 4000) is None
    assert not LinearRegex("(a+)+b").search(b"a" * 4000)
    assert LinearRegex("(a|b)*c", whole=True).search(b"abba" * 500 + b"c")
    assert time.process_time() - began < 2.0
    assert [is_risky(pattern) for pattern in ("a*", "(a)*", "a*b*", r"a\*b*")] == [False, True, True, False]

"""An emulated host: its shell's command lines, its file system's paths, and SFTP packets."""

from __future__ import annotations

import posixpath
import random
import re
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import paramiko
from paramiko import sftp as words
from support.fuzz.engine import Target
from support.fuzz.mutate import NUMBERS, SNIPPETS, Mutator, TextMutator
from support.fuzz.seeds import ADDRESS, new_host, run_on

from harness.emulator.host import EmulatedHost
from harness.emulator.patterns import has_magic, pattern_regex, quote_pattern, unescape
from harness.emulator.programs.registry import PROGRAMS
from harness.emulator.sftp import HostSftp, SftpServer
from harness.emulator.shell_builtins import BUILTINS
from harness.emulator.shell_limits import BROKEN
from harness.emulator.shell_syntax import ShellSyntaxError, parse
from harness.emulator.vfs import Directory, Link, Vfs

#: After so many seconds a command is killed, as a person would; it must be gone at once then.
_PATIENCE = 0.2
#: What of the real machine a command of an emulated host has no business with (:func:`sys.addaudithook`).
_REAL = re.compile(r"open|os\.|shutil\.|subprocess\.|socket\.|glob\.|pty\.|ctypes\.|tempfile\.")
_HARMLESS = re.compile(r"os\.putenv|os\.listdrives|socket\.__new__|socket\.gethostname")


def _split(text: str) -> Sequence[str]:
    return text.split()


class _Audit:
    """Notes what the process does with the real machine while it is on, but for loading Python modules."""

    def __init__(self) -> None:
        self.seen: list[str] | None = None
        self.installed = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.seen is None or not _REAL.match(event) or _HARMLESS.match(event):
            return
        path = str(arguments[0]) if arguments else ""
        modules = path.startswith((sys.prefix, sys.base_prefix)) or path.endswith((".py", ".pyc"))
        if event == "open" and modules:
            return
        if event in ("os.listdir", "os.scandir"):  # so does what imports modules
            return
        self.seen.append(f"{event} {path}")


_AUDIT = _Audit()


@contextmanager
def _contained() -> Iterator[None]:
    """Hold what runs here to the emulated host: nothing of the real machine, and no thread that goes on."""
    if not _AUDIT.installed:
        sys.addaudithook(_AUDIT)
        _AUDIT.installed = True
    before = set(threading.enumerate())
    failed: list[str] = []
    hook = threading.excepthook
    threading.excepthook = lambda args: failed.append(f"{args.exc_type.__name__}: {args.exc_value}"[:200])
    _AUDIT.seen = seen = []
    try:
        yield
    finally:
        _AUDIT.seen = None
        threading.excepthook = hook
    assert not seen, f"the real machine was reached: {seen[0]}"
    until = time.monotonic() + 5.0
    while left := [each for each in set(threading.enumerate()) - before if each.name != "lab-clock"]:
        for thread in left:
            assert time.monotonic() < until, f"the thread {thread.name} goes on after the command"
            if thread.ident is None:  # another one is just starting it
                time.sleep(0)
            else:
                thread.join(max(0.0, until - time.monotonic()))
    assert not failed, f"a thread died of {failed[0]}"


def _assert_sound(files: Vfs) -> None:
    """Every node of the tree is reached by one path, every name is one, and no loop holds the walk."""
    seen: set[int] = set()
    pending = [("", files.root)]
    while pending:
        path, folder = pending.pop()
        assert id(folder) not in seen, f"{path} is also elsewhere"
        seen.add(id(folder))
        for name, node in folder.children.items():
            assert name not in ("", ".", ".."), f"{path!r} holds a file called {name!r}"
            assert "/" not in name, f"{path!r} holds a file called {name!r}"
            if isinstance(node, Directory):
                pending.append((f"{path}/{name}", node))


# -- command lines --------------------------------------------------------------------------------

_COMMANDS = (
    "cat /etc/hostname",
    "grep -H '' /sys/bus/pci/devices/*/uevent /proc/sys/kernel/random/boot_id /nope",
    f"echo hil-pid:$$; LC_ALL=C.UTF-8 exec flock -F -n -E 75 /run/lock/hil-x.lock cat /tmp/f {ADDRESS}",
    f"sh -c 'echo 1 > /tmp/loading && cat /tmp/f > /tmp/data && echo 0 > /tmp/loading' {ADDRESS}",
    "lspci -Dnn -d 8086:0b30 && dmesg | tail -n 3 || echo none",
    "if [ -e /tmp/f ]; then echo yes; elif test -d /tmp -a 1 -lt 2; then echo no; else :; fi",
    "for x in a 'b c' $HOME /tmp/*; do echo \"$x\" ${y:-none} ${x:+set}; done > /tmp/out 2>&1",
    'while read line; do echo "<$line>"; done < /tmp/f; until false; do break; done',
    "(cd /tmp; pwd; exit 3); echo $?; { echo a; echo b; } | sort -r | head -1",
    "x=$(echo `echo deep`); y=\"$x $(cat /tmp/f | wc -l)\"; export y; env | grep '^y='; unset x",
    "printf '%s-%d\\n' a 1 b 0x10; printf '%5.2s|%%|%b' abc 'x\\ny'; echo -e 'a\\tb' -n",
    "mkdir -p /tmp/a/b; cp /tmp/f /tmp/a; mv /tmp/a/f /tmp/g; rm -rf /tmp/a; ls -la /tmp; rmdir /tmp",
    "stat -c '%s %F' /tmp/f; sha256sum /tmp/f; readlink -f /tmp/../bin/cat; realpath /var/lock; touch /tmp/t",
    "sleep 2 & wait; kill -TERM $!; kill -0 $$; pgrep -a sh; ps; jobs",
    "set -- a b c; shift; echo $# $* \"$@\" $1; eval 'echo $2'; . /tmp/script; command -v cat; type cd",
    "date +%s; uname -a; id -u; uptime; which cat sh; systemctl status sshd; hostname; nohup true",
    "head -c 5 /tmp/f; tail -n +2 /tmp/f; wc /tmp/f; tee /tmp/h < /tmp/f; basename /a/b.c .c; dirname /a/b",
    "find /tmp -name '*' -type f; grep -rn -e a -e b /tmp; grep -E '^(a|b)+[[:digit:]]?$' /tmp/f",
    "mktemp -d",
    f"fpgainfo fme {ADDRESS}; fpgasupdate -y /tmp/f {ADDRESS}; rsu bmcimg {ADDRESS}",
    "chmod 755 /tmp/f; /tmp/f; df -P -k /tmp; dmesg -c; reboot -f; exit 7",
)
_OPERATORS = (
    *_split(
        "&& || ; ;; & | ( ) < > >> >& 2>&1 <& 5> << ! $( ` ${ } ${x:- $x $@ $# $(( ' \" \\ # ~ * ? [a-z]"
    ),
    *("{ ", " }", "\n", "x=", "f() ", "if ", "then ", "else ", "fi", "for x in ", "do ", "done", "esac"),
    *("while :; do ", "until ", "case x in ", "exec ", "eval ", ". ", "read x y", "sleep inf", "sleep 1e400"),
    *_split(
        "/*/../*/../*/../*/.. [z-a] [] [!] *a*a*a*a*a*a*a*a*b - -- -n -c -e /dev/null /tmp/f /tmp/.. /tmp/."
    ),
    *_split("/sys /proc/version /tmp/new/ // '' \"\" %9999999d %c"),
    *("kill -9 $$", "sleep nan", "kill -s", "test -a", "printf %d", "head -n x"),
)


def _command_mutator() -> TextMutator:
    programs = [f" {name} " for name in (*PROGRAMS, *BUILTINS)]
    return TextMutator((*_OPERATORS, *_OPERATORS, *programs, *NUMBERS, *SNIPPETS), blow_up=1 << 15)


def _commands() -> Sequence[bytes]:
    return [command.encode() for command in _COMMANDS]


def check_syntax(data: bytes) -> str:
    """A text is a script or none; nothing else is raised, however deep it is nested."""
    try:
        script = parse(data.decode("utf-8", "surrogateescape"))
    except ShellSyntaxError as problem:
        return re.sub(r'"[^"]*"', '""', str(problem))[:40]
    return f"{min(len(script), 9)}"


def check_command(data: bytes) -> str:
    """A command ends, by itself or when it is killed, with a status; and the host is one afterwards."""
    text = data.decode("utf-8", "surrogateescape")
    host = new_host(int(data[-1:] in b"aeiou" and len(data) % 3 == 0))
    host.vfs.disk.capacity = 8 << 20
    host.vfs.write("/tmp/f", b"alpha\nbeta 12\n\n")
    host.vfs.write("/tmp/script", b"echo script $1\n")
    done = threading.Event()
    killer = threading.Thread(target=_kill_after, args=(host, done), name="killer")
    try:
        with _contained():
            killer.start()
            status, out, err = run_on(host, text, b"one\ntwo three\n")
            done.set()
            killer.join()
        assert -64 <= status <= 255, f"the status is {status}"
        broken = re.search(BROKEN.encode() + b": .*", err)
        assert broken is None, f"a program failed by itself: {broken[0].decode() if broken else ''}"
        assert not host.processes.all(), f"still there: {host.processes.all()[0].argv}"
        _assert_sound(host.vfs)
        host.power_on()
        assert host.clock.now() < 1e12, "lab time has run away"
        assert run_on(host, "echo alive; exit 4")[:2] == (4, b"alive\n")
    finally:
        done.set()
        host.clock.close()
    return f"{status if status in (0, 1, 2, 126, 127, 130, 137) else 'other'} {bool(out)} {bool(err)}"


def _kill_after(host: EmulatedHost, done: threading.Event) -> None:
    while not done.wait(_PATIENCE):
        for process in host.processes.all():
            process.send(signal.SIGKILL)


def _hard_commands() -> Sequence[bytes]:
    return (
        b"(" * 5000,
        b"echo " + b"$(" * 3000,
        b"{ " * 3000,
        b"if " * 3000,
        b"echo " + b"x " * 30_000,
        b"echo " + b"/*/../" * 12 + b"*",
        b"echo " + b"*a" * 40 + b"b",
        b"echo '" + b"a" * 3000 + b"' > /tmp/g; grep -E '(a+)+b' /tmp/g; grep -E '(a|a)*b' /tmp/g",
        b"echo 'eval \"$x\"' > /tmp/g; x='. /tmp/g'; eval \"$x\"",
        b"printf '%99999999999s' x; printf '%.99999999999d' 1",
        b"while :; do :; done",
        b"until false; do sleep 1; done | cat",
        b"cat | cat | cat",
        b"x=aaaaaaaaaaaaaaaa; " + b'x="$x$x"; ' * 40 + b"echo done",
    )


# -- paths ----------------------------------------------------------------------------------------

_PLACES = (
    *("/", "/tmp", "/tmp/f", "/tmp/d", "/tmp/d/e", "/tmp/d/e/g", "/tmp/l", "/tmp/loop", "/tmp/up", "/etc/x"),
    *("/sys/bus", "/sys/bus/pci/rescan", "/proc/version", "/dev/null", "/bin/cat", "/tmp/dangling"),
)
_ACTS = _split("open create write read mkdir rmdir unlink rename list stat glob link")


def _path_seeds() -> Sequence[bytes]:
    pairs = list(zip(_PLACES, _PLACES[3:], strict=False))
    rows = [f"{act} {first} {second}" for act in _ACTS for first, second in pairs]
    return ["\n".join(rows[start : start + 8]).encode() for start in range(0, len(rows), 8)]


def _path_mutator() -> TextMutator:
    pieces = ("..", ".", "/", "//", "/../", "/./", "*", "?", "[", "[!a]", "\\", *_PLACES, *_ACTS, *SNIPPETS)
    return TextMutator((*pieces, *(f"{act} " for act in _ACTS)), blow_up=1 << 15)


def check_paths(data: bytes) -> str:
    """Every act on a path ends with a result or an errno; the tree stays one; nothing of this machine."""
    files = Vfs()
    files.disk.capacity = 1 << 20
    for path, content in (("/tmp/f", b"file"), ("/tmp/d/e/g", b"deep"), ("/etc/x", b"x")):
        files.write(path, content)
    links = {"l": "f", "loop": "loop", "up": "../..", "dangling": "d/new", "abs": "/etc"}
    for path, target in links.items():
        files.place(f"/tmp/{path}", Link(target))
    files.place("/sys/bus", Directory(kernel=True), kernel=True)
    codes = set()
    with _contained():
        for row in data.decode("utf-8", "surrogateescape").split("\n")[:40]:
            act, _, rest = row.partition(" ")
            first, _, second = rest.partition(" ")
            try:
                _act(files, act, first, second)
                codes.add(act if act in _ACTS else "none")
            except OSError as error:
                assert error.errno, f"no errno for {act}"
                codes.add(str(error.errno))
    _assert_sound(files)
    assert files.node("/sys/bus") is not None
    return " ".join(sorted(codes)[:4])


def _act(files: Vfs, act: str, path: str, other: str) -> None:
    if act == "open":
        files.open(path).read()
    elif act == "create":
        files.open(path, write=True, create=True, exclusive=bool(other)).write(b"new")
    elif act == "write":
        offset = int(other) if other.isdecimal() and len(other) < 25 else len(other)
        files.open(path, write=True).pwrite(offset, b"written")
    elif act == "read":
        files.open(path).pread(len(other), 4)
    elif act in ("mkdir", "rmdir", "unlink"):
        getattr(files, act)(path)
    elif act == "rename":
        files.rename(path, other)
    elif act == "list":
        assert all(name and "/" not in name for name in files.listdir(path))
    elif act == "stat":
        files.status(path, follow=not other)
        real = files.realpath(path)
        assert posixpath.normpath(real) == real
        assert files.node(real) is files.node(path)
    elif act == "glob":
        for found in files.glob(path):
            files.node(found, follow=False)
    elif act == "link":
        files.readlink(path)


def check_pattern(data: bytes) -> str:
    """A pattern matches in linear time; a quoted one matches itself and nothing else."""
    pattern, _, name = data.decode("utf-8", "replace").partition("\n")
    matched = pattern_regex(pattern).fullmatch(name) is not None
    quoted = quote_pattern(name)
    assert not has_magic(quoted)
    assert unescape(quoted) == name
    assert pattern_regex(quoted).fullmatch(name)
    if not has_magic(pattern):
        assert matched == (unescape(pattern) == name)
    return f"{has_magic(pattern)} {matched}"


def _patterns() -> Sequence[bytes]:
    some = (b"*.txt\na.txt", b"[a-c]?*[!x]\nabcd", b"\\*\\[x\n*[x", b"[]]\n]")
    return [*some, b"dfl-fme.*\ndfl-fme.0", b"[!]a]\nb"]


def _hard_patterns() -> Sequence[bytes]:
    return (b"*a" * 30 + b"b\n" + b"a" * 5000, b"[" * 20_000 + b"\nx", b"?*" * 300 + b"\n" + b"x" * 400)


# -- SFTP -----------------------------------------------------------------------------------------


class _Wire:
    """A channel that gives packets and takes the answers."""

    def __init__(self, packets: bytes) -> None:
        self._packets = packets
        self.answers = bytearray()

    def recv(self, size: int) -> bytes:
        piece, self._packets = self._packets[:size], self._packets[size:]
        return piece

    def send(self, data: bytes) -> int:
        self.answers += data
        return len(data)

    def get_name(self) -> str:
        return "wire"

    def get_transport(self) -> Any:
        return self

    def close(self) -> None:
        self._packets = b""

    def get_log_channel(self) -> str:
        return ""

    get_hexdump = get_log_channel

    def _log(self, *words: object) -> None:
        """Paramiko's way to say that a session was broken off."""


def _packet(kind: int, number: int, *parts: str | bytes | int | tuple[int]) -> bytes:
    """Return one request: text as a string, numbers as 32 bits, a number in a tuple as 64."""
    message = paramiko.Message()
    message.add_int(number)
    for part in parts:
        if isinstance(part, tuple):
            message.add_int64(part[0])
        elif isinstance(part, int):
            message.add_int(part)
        else:
            message.add_string(part)
    body = bytes([kind]) + message.asbytes()
    return struct.pack(">I", len(body)) + body


_HELLO = struct.pack(">IBI", 5, words.CMD_INIT, 3)


@cache
def _sessions() -> Sequence[bytes]:
    handle = b"hx1"
    acts = [
        [
            _packet(words.CMD_OPEN, 1, "/tmp/n", 0x1A, 0),
            _packet(words.CMD_WRITE, 2, handle, (0,), b"data" * 40),
        ],
        [_packet(words.CMD_OPEN, 1, "/tmp/f", 1, 0), _packet(words.CMD_READ, 2, handle, (0,), 32768)],
        [_packet(words.CMD_OPENDIR, 1, "/tmp"), _packet(words.CMD_READDIR, 2, handle)],
        [_packet(words.CMD_STAT, 1, "/tmp/../etc"), _packet(words.CMD_LSTAT, 2, "/bin")],
        [_packet(words.CMD_REALPATH, 1, "../../.."), _packet(words.CMD_READLINK, 2, "/bin")],
        [_packet(words.CMD_MKDIR, 1, "/tmp/new", 0), _packet(words.CMD_RMDIR, 2, "/tmp/new")],
        [_packet(words.CMD_RENAME, 1, "/tmp/f", "/tmp/g"), _packet(words.CMD_REMOVE, 2, "/tmp/g")],
        [_packet(words.CMD_SETSTAT, 1, "/tmp/f", 4, 0o755), _packet(words.CMD_FSETSTAT, 2, handle, 1, (5,))],
        [_packet(words.CMD_SYMLINK, 1, "/etc", "/tmp/s"), _packet(words.CMD_FSTAT, 2, handle)],
        [_packet(words.CMD_EXTENDED, 1, "posix-rename@openssh.com", "/tmp/f", "/etc/x")],
        [
            _packet(words.CMD_OPEN, 1, "/tmp/f", 1, 0),
            _packet(words.CMD_EXTENDED, 2, "check-file", handle, "sha1,md5", (0,), (0,), 256),
        ],
    ]
    sessions = [_HELLO + b"".join(act) + _packet(words.CMD_CLOSE, 9, handle) for act in acts]
    return [*sessions, _HELLO + b"".join(packet for act in acts for packet in act)]


class _PacketMutator(Mutator):
    """Mutates packets so that they still arrive: lengths are made right again, most of the time."""

    def __init__(self) -> None:
        numbers = [struct.pack(">Q", n) for n in (0, 1, 1 << 31, 1 << 32, 1 << 40, 1 << 62, (1 << 64) - 1)]
        places = (*_PLACES, "/tmp/../..", "..", ".", "", "/tmp/f/")
        paths = [f"\0\0\0{chr(len(path))}{path}" for path in places]
        super().__init__([*numbers, *paths, b"check-file", b"hx1", b"hx2", bytes([200]), b"\0\0\0\x1a"])

    def mutate(self, rng: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
        if rng.random() < 0.2:
            return super().mutate(rng, data, pool)
        packets = list(_bodies(data))
        if not packets:
            return data
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(len(packets))
            act = rng.randrange(6)
            if act == 0:
                packets.insert(at, rng.choice(list(_bodies(rng.choice(pool))) or [b"\x03"]))
            elif act == 1 and len(packets) > 1:
                del packets[at]
            elif act == 2 and packets[at]:
                kind = rng.choice((*range(1, 21), 200, 201, 255))
                packets[at] = bytes([kind]) + packets[at][1:]
            else:
                packets[at] = super().mutate(rng, packets[at], packets)[:4096]
        return b"".join(struct.pack(">I", len(body)) + body for body in packets)


def _bodies(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 4 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def check_sftp(data: bytes) -> str:
    """Every request gets an answer or the session ends; the file system stays whole, and stays small."""
    host = new_host(0)
    host.vfs.write("/tmp/f", b"content" * 100)
    host.vfs.disk.capacity = 1 << 20
    wire: Any = _Wire(data)
    server: Any = SftpServer(wire, "sftp", paramiko.ServerInterface(), HostSftp, files=host.vfs, home="/root")
    try:
        with _contained():
            server._run()  # as paramiko has it run: a session that is broken off ends with a note in its log
    finally:
        host.clock.close()
    _assert_sound(host.vfs)
    answers = list(_bodies(bytes(wire.answers)))
    assert sum(len(answer) + 4 for answer in answers) == len(wire.answers), "half an answer"
    kinds = sorted({answer[0] for answer in answers if answer})
    codes = {answer[8] for answer in answers if answer[:1] == bytes([words.CMD_STATUS]) and len(answer) > 8}
    return f"{kinds} {sorted(codes)}"


def _hard_sftp() -> Sequence[bytes]:
    opened = _HELLO + _packet(words.CMD_OPEN, 1, "/tmp/f", 0x1A, 0)
    far = _packet(words.CMD_WRITE, 2, b"hx1", (1 << 62,), b"x")
    check = _packet(words.CMD_EXTENDED, 2, "check-file", b"hx1", "md5", (0,), (1 << 40,), 0)
    full = b"".join(_packet(words.CMD_WRITE, n, b"hx1", (n << 30,), b"x") for n in range(40))
    return (opened + far, opened + check, opened + full, _HELLO + b"\0\xff\xff\xff", _HELLO * 2000)


TARGETS = (
    Target("shell-syntax", _commands, check_syntax, _command_mutator, share=12, hard=_hard_commands),
    Target("shell", _commands, check_command, _command_mutator, share=3, short=120, hard=_hard_commands),
    Target("paths", _path_seeds, check_paths, _path_mutator, share=8, short=200),
    Target("pattern", _patterns, check_pattern, _path_mutator, share=8, hard=_hard_patterns),
    Target("sftp", _sessions, check_sftp, _PacketMutator, share=3, short=120, hard=_hard_sftp),
)

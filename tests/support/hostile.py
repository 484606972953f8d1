"""What an attack is made of: images that lie, words that are commands, objects that pretend to be others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from harness.images.recipes import build, load_recipes

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
#: Bytes of a payload: what an image is does not lie in it.
_SMALL = 256
#: Where fields begin that say what an image is (n3000.md 2.2, 2.4).
_FIELDS = (
    0,
    3,
    4,
    7,
    8,
    9,
    0x0A,
    0x0B,
    0x10,
    0x30,
    0x60,
    0x80,
    0x90,
    0x94,
    0x114,
    0x118,
    0x198,
    0x1FC,
    0x400,
)
_GBS = b"XeonFPGA\xb7GBSv001"


@cache
def images() -> dict[str, bytes]:
    """Return every recipe's image, with a small payload."""
    return {name: build(replace(recipe, size=_SMALL)) for name, recipe in RECIPES.items()}


def hostile_images(seed: int) -> Iterator[bytes]:
    """Yield images for ever: real ones, and ones that were damaged to pass for something else."""
    rng = Random(seed)
    pool = sorted(images().items())
    keys = [data for name, data in pool if name.startswith(("root-key", "cancel"))]
    every = [data for _, data in pool]
    while True:
        data = bytearray(rng.choice(keys if rng.random() < 0.5 else every))
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            data = rng.choice(_DAMAGES)(rng, data, rng.choice(every))
        yield bytes(data)


def _flip_type(rng: Random, data: bytearray, other: bytes) -> bytearray:
    if len(data) > 9:
        data[rng.choice((8, 9))] = rng.choice((0, 0, 1, 2, 3, 4, 0x80, 0xFF))
    return data


def _flip_field(rng: Random, data: bytearray, other: bytes) -> bytearray:
    at = rng.choice(_FIELDS)
    if at < len(data):
        data[at] ^= 1 << rng.randrange(8)
    return data


def _lie_about_size(rng: Random, data: bytearray, other: bytes) -> bytearray:
    sizes = (0, 1, 127, 128, 129, 256, 4096, len(data), len(data) - 1024)
    # A card that is told of a whole staging area reads one: dear, and the same each time.
    lie = rng.choice((0x3800000, 0xFFFFFFFF)) if rng.random() < 0.002 else rng.choice(sizes)
    data[4:8] = (lie & 0xFFFFFFFF).to_bytes(4, "little")
    return data


def _truncate(rng: Random, data: bytearray, other: bytes) -> bytearray:
    return data[: rng.choice((0, 3, 4, 9, 10, 127, 1023, 1024, 1151, 1152, rng.randrange(len(data) + 1)))]


def _extend(rng: Random, data: bytearray, other: bytes) -> bytearray:
    return data + rng.choice((b"\0", b"\xff" * 64, rng.randbytes(rng.randrange(300)), other))


def _prepend(rng: Random, data: bytearray, other: bytes) -> bytearray:
    before = (
        b"\0",
        b"\xef\xbb\xbf",
        rng.randbytes(rng.randrange(1, 130)),
        other,
        _GBS + b"\2\0\0\0{}",
        other[:1024],
    )
    return bytearray(rng.choice(before)) + data


def _swap_header(rng: Random, data: bytearray, other: bytes) -> bytearray:
    upto = rng.choice((4, 8, 10, 16, 128, 1024))
    return bytearray(other[:upto]) + data[upto:]


def _noise(rng: Random, data: bytearray, other: bytes) -> bytearray:
    at = rng.randrange(len(data) + 1)
    data[at : at + rng.randrange(8)] = rng.randbytes(rng.randrange(8))
    return data


_DAMAGES: tuple[Callable[[Random, bytearray, bytes], bytearray], ...] = (
    _flip_type, _flip_type, _flip_field, _lie_about_size, _truncate, _extend, _prepend, _swap_header, _noise,
)  # fmt: skip

# -- words --------------------------------------------------------------------------------------------

#: Texts that a shell, a path or a tool may take for more than they look like.
TEXTS = (
    "", " ", "-", "--", "\n", "a\nrm -rf /", "a\0b", ";", "; reboot", "| tee /x", "&& reboot",
    "$(reboot)", "`reboot`", "${IFS}", "$HOME", "*", "?", "[!x]", "/*", "/d?v/watchdog",
    "/[[:alpha:]]ev/watchdog", "/[[=d=]]ev/watchdog", "/d[d-f]v/watchdog", "/../dev/watchdog",
    "/sys/../dev/watchdog", "//dev//watchdog", "/./dev/watchdog", "~", "~root", "/proc/self/root/dev/x",
    "/proc/1/fd/3", "/proc/1/task/1/root/x", "/proc/bus/pci/b2/00.0", "/proc/kmsg", "/sys/kernel/debug/x",
    "/sys/kernel/d*g/x", "/sys/bus/pci/devices/0000:b2:00.0/resource0",
    "/sys/bus/pci/devices/0000:b2:00.0/r?m", "/sys/bus/pci/devices/0000:b2:00.0/*",
    "/sys/class/firmware/x/data", "{a,/dev/x}", "!!", "\\", "'", '"', "'; reboot; '", ">", "> /x",
    "<(reboot)", "\u202e", "\uff0fdev\uff0fx", "\u2215dev", "rm\u00a0-rf", "fpgasupdat\u0435", "\ud800",
    "/etc/passwd", "/tmp/hil-0011.bin", "0000:b2:00.0", "b2:00.0", "%s%n", "a"*300, "/x\r", "\t", "=",
    "a=b", "@file", "+%s", "12312359", "http://controller/device_images/a.bit",
    "http://controller/device_images/../x", "http://evil/device_images/a", "file:///etc/passwd",
)  # fmt: skip
#: Options by which some program writes, acts or runs another; and every letter.
OPTIONS = (
    *(f"-{letter}" for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
    "-delete", "-exec", "-execdir", "-ok", "-okdir", "-fls", "-fprint", "-fprint0", "-fprintf",
    "-files0-from", "-xx", "-xxx", "-xxxx", "-vv", "-vvv", "-Tc", "-sS", "-so", "-sSo", "-an", "-H1",
    "-M", "--clear", "--read-clear", "--set", "--set=x", "--output", "--output=/x", "-o/x", "--version",
    "--help", "--host=x", "-Hx", "--rotate", "--vacuum-size=1", "--flush", "--sync", "--cursor-file=/x",
    "--force", "--yes", "-y", "--log-level", "--format", "--format={{.ID}}", "--os-region-name",
    "--os-password", "--nowrap", "--uuid", "-n=k8s.io", "-n=other", "-printf", "-name", "-type",
    "-maxdepth", "-xdev", "--no-pager", "--file=/x", "-f/x", "--config=/x", "-K/x",
)  # fmt: skip
VERBS = (
    "start", "stop", "restart", "reboot", "status", "show", "cat", "list", "is-active", "mask", "edit",
    "images", "run", "exec", "rmi", "rm", "pull", "containers", "tasks", "device-image-list",
    "device-image-apply", "host-reboot", "host-device-image-update", "alarm-list", "alarm-delete",
    "fw-update-strategy", "subcloud", "apply", "create", "errors", "fme", "security", "all", "port",
    "bmc", "-c", "bmcimg", "update", "delete", "strategy-step",
)  # fmt: skip
PROGRAMS = (
    "rm", "sh", "bash", "dd", "tee", "cp", "mv", "ln", "fpgasupdate", "rsu", "flock", "env", "sudo",
    "nohup", "xargs", "sed", "awk", "python3", "perl", "setpci", "modprobe", "echo", "printf", "kill",
    "touch", "chmod", "source", ".", "eval", "exec", "cat;rm", "/tmp/cat", "./cat", "../bin/cat",
    "/usr/bin/../../tmp/cat", "CAT", "cat\n", "c\u0430t", "busybox", "tar", "rsync", "mount", "umount",
    "ip", "mknod", "truncate", "install", "shred", "wget", "nc", "ssh",
)  # fmt: skip


class Pretender(str):
    """A text that says that it is another one, in every way in which a text can be asked."""

    __slots__ = ("looks",)
    looks: str

    def __new__(cls, real: str, looks: str) -> Pretender:
        made = super().__new__(cls, real)
        made.looks = looks
        return made

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return hash(self.looks)

    def __repr__(self) -> str:
        return repr(self.looks)

    def __str__(self) -> str:
        return self.looks

    def __format__(self, spec: str) -> str:
        return self.looks

    def __getitem__(self, at: Any) -> str:
        return self.looks[at]

    def __contains__(self, part: object) -> bool:
        return False

    def startswith(self, *_: Any) -> bool:  # type: ignore[override]
        return self.looks.startswith("-")

    def replace(self, *_: Any) -> str:  # type: ignore[override]
        return self.looks

    def lower(self) -> str:
        return self.looks

"""What every emulated program is given, and how it takes its options."""

from __future__ import annotations

import getopt
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.emulator.process import In, Out, Process, tell
from harness.emulator.vfs import Regular, Vfs

if TYPE_CHECKING:
    from harness.emulator.host import EmulatedHost


@dataclass(frozen=True, slots=True)
class Streams:
    """Standard input, output and error of a command."""

    stdin: In
    stdout: Out
    stderr: Out


class ProgramExit(Exception):
    """Ends a program from within, with an exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of a program: its words, environment, directory and streams.

    ``mounts``: in a container, path there and where on the host it leads. ``depth``: how many scripts and
    programs run each other, down to this one.
    """

    host: EmulatedHost
    process: Process
    argv: list[str]
    env: dict[str, str]
    cwd: str
    streams: Streams
    mounts: tuple[tuple[str, str], ...] = ()
    depth: int = 0

    @property
    def name(self) -> str:
        """The name that the program calls itself in its messages."""
        return self.argv[0].rpartition("/")[2]

    @property
    def vfs(self) -> Vfs:
        """The host's file system."""
        return self.host.vfs

    def path(self, path: str) -> str:
        """Return ``path`` as an absolute one of the host's."""
        path = path if path.startswith("/") else f"{self.cwd.rstrip('/')}/{path}"
        for target, source in self.mounts:
            if path == target or path.startswith(f"{target}/"):
                return f"{source}{path.removeprefix(target)}"
        return path

    def out(self, text: str) -> None:
        """Write ``text`` to standard output."""
        self.streams.stdout.write(text.encode("utf-8", "surrogateescape"))

    def err(self, text: str) -> None:
        """Write ``text`` to standard error."""
        tell(self.streams.stderr, text)

    def complain(self, message: str) -> None:
        """Write ``message`` to standard error behind the program's name."""
        self.err(f"{self.name}: {message}\n")

    def quoted(self, word: str) -> str:
        """Return ``word`` between the quotation marks that GNU programs use in this locale."""
        locale = self.env.get("LC_ALL") or self.env.get("LANG", "")
        return f"\u2018{word}\u2019" if "UTF-8" in locale.upper() else f"'{word}'"

    def integer(self, text: str, complaint: str, *, status: int = 1) -> int:
        """Return the whole number ``text``. :raises ProgramExit: it is none, after ``complaint``."""
        if re.fullmatch(r"[-+]?[0-9]{1,18}", text) is None:
            self.complain(complaint)
            raise ProgramExit(status)
        return int(text)

    def operands(self, words: list[str], least: int) -> list[str]:
        """Return ``words``. :raises ProgramExit: they are fewer than ``least``, after the complaint."""
        if len(words) < least:
            self.complain(f"missing operand after '{words[-1]}'" if words else "missing operand")
            self.err(f"Try '{self.name} --help' for more information.\n")
            raise ProgramExit(1)
        return words

    def with_words(self, argv: list[str]) -> Invocation:
        """Return the same invocation with other words, as for a program that runs another."""
        return replace(self, argv=argv)

    def options(
        self, short: str, long: tuple[str, ...] = (), *, permute: bool = True, status: int = 1
    ) -> tuple[dict[str, str], list[str]]:
        """Return options (``-x`` or ``--long`` -> value, the last one wins) and the other words.

        :raises ProgramExit: an unknown option, after the complaint that GNU programs make.
        """
        parse = getopt.gnu_getopt if permute else getopt.getopt
        try:
            pairs, words = parse(self.argv[1:], short, long)
        except getopt.GetoptError as problem:
            option = problem.opt or ""
            if "not recognized" in problem.msg:
                kind = (
                    f"invalid option -- '{option}'"
                    if len(option) == 1
                    else f"unrecognized option '--{option}'"
                )
            else:
                kind = f"option requires an argument -- '{option}'"
            self.complain(kind)
            self.err(f"Try '{self.name} --help' for more information.\n")
            raise ProgramExit(status) from None
        return dict(pairs), words


Main = Callable[[Invocation], int]


class Executable(Regular):
    """The file of an emulated program: executable, with some bytes in it."""

    __slots__ = ("main",)

    def __init__(self, name: str, main: Main) -> None:
        super().__init__(b"\x7fELF emulated " + name.encode() + b"\n", 0o755)
        self.main = main


def reason(error: OSError) -> str:
    """Return the text for ``error``: the C library's, unless it has one of its own."""
    return error.strerror or os.strerror(error.errno or 0)

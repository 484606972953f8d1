"""A login on the controller of an emulated StarlingX system, in the memory of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from support.starlingx_lab import PASSWORD, Lab

from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Streams
from harness.emulator.starlingx.controllers import install_commands
from harness.emulator.starlingx.listening import Listening

OPENRC = "source /etc/platform/openrc; "


@dataclass
class Shell:
    """The login, with the commands in its path and a service to talk to. ``prefix``: of every line."""

    lab: Lab
    prefix: str = OPENRC + "system "

    def run(self, words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        out, err = Buffer(), Buffer()
        code = self.lab.machine.run(self.prefix + words, Streams(Bytes(stdin), out, err))
        return code, out.data.decode(), err.data.decode()

    def shown(self, words: str) -> str:
        """Return what a command shows that must end well."""
        code, out, err = self.run(words)
        assert (code, err) == (0, "")
        return out

    def cells(self, words: str) -> list[list[str]]:
        """Return the rows of the one table that a command shows, without its header."""
        lines = self.shown(words).splitlines()
        assert lines[0].startswith("+-")
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[3:-1]]

    def properties(self, words: str) -> dict[str, str]:
        """Return the properties that a command shows."""
        return dict(self.cells(words))


@contextmanager
def shell_on(lab: Lab, release: str = "head") -> Iterator[Shell]:
    """Give a lab its commands and its service, for as long as the context lasts."""
    listening = Listening()
    url = listening.add("system1", lambda fetch: lab.system)
    listening.serve()
    install_commands(lab.hosts, release, url, PASSWORD)
    try:
        yield Shell(lab)
    finally:
        listening.close()

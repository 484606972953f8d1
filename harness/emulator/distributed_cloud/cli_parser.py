"""The parser of an emulated command's words: argparse, which complains on the command's own streams."""

from __future__ import annotations

import argparse
from typing import ClassVar, NoReturn

from harness.emulator.programs.base import Invocation, ProgramExit


class Parser(argparse.ArgumentParser):
    """The parser of one run; made by :func:`parser_of`."""

    run: ClassVar[Invocation]

    def _print_message(self, message: str, file: object = None) -> None:
        self.run.out(message)

    def error(self, message: str) -> NoReturn:
        """Complain, and end the command with 2."""
        self.run.err(f"{self.format_usage()}{self.prog}: error: {message}\n")
        raise ProgramExit(2)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End the command."""
        raise ProgramExit(status)


def parser_of(invocation: Invocation, prog: str) -> Parser:
    """Return a parser for one run of the command ``prog``; its subparsers are of the same run."""

    class Here(Parser):
        run = invocation

    return Here(prog=prog)

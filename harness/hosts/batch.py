"""Several commands in one exchange with a host: composed into one shell line, and told apart again.

An exchange costs more than most of what is asked for, so that what is asked together is asked at once. Each
command is checked as if it ran alone.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache

from harness.errors import HarnessBug
from harness.hosts.commands import permitted_line, plain_words, read_only_line
from harness.hosts.permits import genuine
from harness.hosts.protocol import Asked, CommandResult

#: What ends one command's output: a word that nothing a host shows has by itself. One for all, so that the
#: line for the same commands is the same.
_MARK = f"hil-{secrets.token_hex(12)}"
_ENDED = re.compile(rf"{_MARK}:(\d+)\n")


class Batch:
    """One shell line for several ``commands`` on ``host``.

    :param tools: program name -> path on the host.
    :raises RefusedError: one is neither declared read-only nor permitted.
    """

    def __init__(self, host: str, commands: Sequence[Asked], tools: Mapping[str, str]) -> None:
        # Plain copies: what is checked is what is run.
        commands = [Asked(tuple(plain_words(a.argv)), a.permit, a.guard) for a in commands]
        self.only_reads = all(asked.permit is None for asked in commands)
        self._commands = commands
        end = f"code=$?; echo {_MARK}:$code; echo {_MARK} >&2"
        self.line = "; ".join(
            f"{_line(host, asked, tools)}; {end}{'; [ $code = 0 ] || exit 0' if asked.guard else ''}"
            for asked in commands
        )
        self._permits = [asked.permit for asked in commands if asked.permit is not None]

    def spend(self) -> None:
        """Use up the permits of the commands that need one. :raises RefusedError: one was used before."""
        for permit in self._permits:
            permit.spend()

    def results(self, out: str, err: str, seconds: float) -> list[CommandResult]:
        """Return the result of each command that came to its end, in order, from what all printed."""
        pieces = _ENDED.split(out)
        ended = zip(self._commands, pieces[::2], pieces[1::2], err.split(f"{_MARK}\n"), strict=False)
        return [
            CommandResult(tuple(asked.argv), int(code), said, complained, seconds)
            for asked, said, code, complained in ended
        ]

    def complete(self, results: Sequence[CommandResult]) -> bool:
        """Return whether all commands came to their end that were to be run."""
        if len(results) == len(self._commands):
            return True
        return bool(results) and self._commands[len(results) - 1].guard and results[-1].exit_code != 0


def _line(host: str, asked: Asked, tools: Mapping[str, str]) -> str:
    if asked.permit is None:
        return _reading(tuple(asked.argv), tuple(tools.items()))
    permit = genuine(asked.permit)
    permit.check_command(host, asked.argv)
    if permit.argv[0] == "sh":
        raise HarnessBug(f"The script of a permit to {permit.act} runs alone, not among other commands.")
    return permitted_line(permit.argv)


@lru_cache(maxsize=1024)
def _reading(argv: tuple[str, ...], tools: tuple[tuple[str, str], ...]) -> str:
    """Return the shell line for what only reads; the same is asked again and again."""
    return read_only_line(argv, dict(tools))

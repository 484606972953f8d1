"""Several commands in one exchange with a host: composed into one shell line, and told apart again.

An exchange costs more than most of what is asked for, so that what is asked together is asked at once. Each
command is checked as if it ran alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from harness.errors import HarnessBug
from harness.hosts.commands import permitted_line, read_only_line
from harness.hosts.permits import genuine
from harness.hosts.protocol import Asked, CommandResult


class Batch:
    """One shell line for several ``commands`` on ``host``.

    :param tools: program name -> path on the host.
    :raises RefusedError: one is neither declared read-only nor permitted.
    """

    def __init__(self, host: str, commands: Sequence[Asked], tools: Mapping[str, str]) -> None:
        self.only_reads = all(asked.permit is None for asked in commands)
        self._commands = commands
        # They are told apart by a word that nothing on the host can know beforehand.
        self._mark = f"hil-{secrets.token_hex(12)}"
        end = f"code=$?; echo {self._mark}:$code; echo {self._mark} >&2"
        self.line = "; ".join(
            f"{_line(host, asked, tools)}; {end}{'; [ $code = 0 ] || exit 0' if asked.guard else ''}"
            for asked in commands
        )

    def results(self, out: str, err: str, seconds: float) -> list[CommandResult]:
        """Return the result of each command that came to its end, in order, from what all printed."""
        said, *rest = out.split(f"{self._mark}:")
        errors = err.split(f"{self._mark}\n")
        results = []
        for asked, following, complained in zip(self._commands, rest, errors, strict=False):
            code, end, following = following.partition("\n")
            if not end or not code.isdecimal():
                break
            results.append(CommandResult(tuple(asked.argv), int(code), said, complained, seconds))
            said = following
        return results

    def complete(self, results: Sequence[CommandResult]) -> bool:
        """Return whether all commands came to their end that were to be run."""
        if len(results) == len(self._commands):
            return True
        return bool(results) and self._commands[len(results) - 1].guard and results[-1].exit_code != 0


def _line(host: str, asked: Asked, tools: Mapping[str, str]) -> str:
    if asked.permit is None:
        return read_only_line(asked.argv, tools)
    permit = genuine(asked.permit)
    permit.check_command(host, asked.argv)
    if permit.argv[0] == "sh":
        raise HarnessBug(f"The script of a permit to {permit.act} runs alone, not among other commands.")
    return permitted_line(permit.argv)

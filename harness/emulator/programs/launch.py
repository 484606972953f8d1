"""How a program of an emulated host runs another one, or a builtin of the shell under its own name."""

from __future__ import annotations

from harness.emulator.programs.base import Invocation
from harness.emulator.shell import SIGNAL_BASE, ProgramNotFound, Shell, run_script
from harness.emulator.shell_builtins import BUILTINS

__all__ = ["ProgramNotFound", "execute", "run_builtin", "run_script"]


def execute(invocation: Invocation, words: list[str], env: dict[str, str], *, replace_process: bool) -> int:
    """Run the program ``words`` for another program, as ``env`` and ``flock`` do; return its status.

    Where it does not replace the caller's process, death by a signal is 128 plus its number.

    :raises ProgramNotFound: there is no such program.
    """
    shell = _shell(invocation, env)
    status = shell.run_program(words, invocation.streams, replace_shell=replace_process, report_missing=False)
    return status if status >= 0 or replace_process else SIGNAL_BASE - status


def _shell(invocation: Invocation, env: dict[str, str]) -> Shell:
    return Shell(
        invocation.host,
        invocation.process,
        invocation.streams,
        env,
        cwd=invocation.cwd,
        depth=invocation.depth,
    )


def run_builtin(invocation: Invocation) -> int:
    """Run a builtin as the program of the same name (``/usr/bin/echo``), whose ways are bash's."""
    shell = _shell(invocation, invocation.env)
    shell.messages.prefix = ""
    return BUILTINS[invocation.name](shell, [invocation.name, *invocation.argv[1:]])

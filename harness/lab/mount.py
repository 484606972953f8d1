"""Runs a command of this machine where an emulated host's cards can be seen, and hands on how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Final, Literal

from harness.errors import BlockedError, InfrastructureError
from harness.lab.emulator import Doors

Face = Literal["fuse", "umockdev"]

_PROGRAMS: Final[dict[Face, str]] = {
    "fuse": "harness.emulator.faces.namespace",
    "umockdev": "harness.emulator.faces.umockdev_testbed",
}
_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_END_SECONDS: Final = 5.0
_SI_USER: Final = 0  # si_code of a signal that a process sent; those from the keyboard have SI_KERNEL


def run_mounted(
    doors: Doors, host: str, command: Sequence[str], *, face: Face = "fuse", private_network: bool = True
) -> int:
    """Run ``command`` where ``host`` of the emulated lab behind ``doors`` is mounted; return its exit code.

    A signal that ended it gives 128 and its number. Signals that come for us are handed on to it; a second
    one, or five seconds, end it. Nothing of it stays, also where we are killed.

    :param face: ``fuse`` mounts the host in namespaces of its own; ``umockdev`` leads libraries to a tree of
        plain files, in which cards are found and their events heard, but nothing can be flashed.
    :param private_network: with ``fuse``, give it a network of its own, in which udev's events are forged.
    :raises BlockedError: this machine lacks what that needs, or does not allow it; the message says what.
    :raises InfrastructureError: the command could not be started for another reason.
    """
    report, reports = os.pipe()
    lifeline, held = os.pipe()
    config = {
        "host": host,
        "door": str(doors.faces),
        "command": list(command),
        "private_network": private_network,
        "scratch": str(doors.runtime),
        "report": reports,
        "lifeline": lifeline,
    }
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {*_STOPS, signal.SIGCHLD})
    try:
        with subprocess.Popen(
            [sys.executable, "-m", _PROGRAMS[face], json.dumps(config)], pass_fds=(reports, lifeline)
        ) as process:
            try:
                os.close(reports)
                os.close(lifeline)
                _check_ready(report)
                return _wait(process, held)
            finally:
                os.close(held)  # the end of all that it started
                os.close(report)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _check_ready(report: int) -> None:
    with open(report, encoding="utf-8", closefd=False) as lines:
        line = lines.readline()
    if not line:
        raise InfrastructureError("The mounted host did not start; what its process said stands above.")
    answer = json.loads(line)
    if "error" in answer:
        raise BlockedError(answer["error"], hint=answer["hint"])


def _wait(process: subprocess.Popen[bytes], held: int) -> int:
    """Wait for the end of ``process`` and return its exit code; hand signals on by the pipe ``held``."""
    stopping = False
    while process.poll() is None:
        waited = {*_STOPS, signal.SIGCHLD}
        if not stopping:
            came = signal.sigwaitinfo(waited)
        elif (found := signal.sigtimedwait(waited, _END_SECONDS)) is not None:
            came = found
        else:
            break
        if came.si_signo == signal.SIGCHLD:
            continue
        if stopping and came.si_code == _SI_USER:
            break
        # From the keyboard it has reached the command already.
        if came.si_signo not in (signal.SIGINT, signal.SIGQUIT) or came.si_code == _SI_USER:
            os.write(held, bytes([came.si_signo]))
            stopping = True
    return process.returncode if process.returncode is not None else 128 + signal.SIGKILL

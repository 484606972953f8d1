"""Switches power by command lines of the inventory, on the harness's own machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence

from harness.errors import DeadlineError, InfrastructureError
from harness.lab.power.access import CommandAccess
from harness.lab.power.switch import Power, Reading

_STATE = re.compile(r"\b(on|off)\b\W*$", re.IGNORECASE)


class Commands:
    """Two command lines, and a third one that says what the power is, where the inventory has it."""

    def __init__(self, name: str, access: CommandAccess) -> None:
        self._name = name
        self._access = access

    @property
    def where(self) -> str:
        """Who is asked, for messages."""
        return "the command"

    @property
    def sees(self) -> bool:
        """Whether there is a command that says what the power is."""
        return bool(self._access.status)

    def state(self, seconds: float) -> Reading:
        """Return what the status command says in its last line. :raises InfrastructureError: it fails."""
        said = outcome(f"tells the power of {self._name}", self._access.status, seconds)
        return reading(said)

    def ask(self, to: Power, seconds: float) -> None:
        """Run the command. :raises InfrastructureError: it fails, or is not there."""
        command = self._access.off if to == "off" else self._access.on
        outcome(f"switches {self._name} {to}", command, seconds)

    def close(self) -> None:
        """Nothing is open."""


def reading(said: str) -> Reading:
    """Return what a text such as ``Chassis Power is on`` says in its last line."""
    lines = said.strip().splitlines()
    last = lines[-1].strip()[-200:] if lines else ""
    match = _STATE.search(last)
    return Reading("on" if match[1].lower() == "on" else "off", last) if match else Reading(None, last)


def outcome(
    does: str, command: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None
) -> str:
    """Return what ``command``, which ``does`` something, prints.

    :raises InfrastructureError: it fails, or is not there. :raises DeadlineError: it does not end in time.
    """
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env=None if environment is None else os.environ | environment,
        )
    except OSError as error:
        raise InfrastructureError(
            f"The command that {does} cannot be run: {command[0]!r}: {error.strerror}.",
            hint="Is it installed on this machine, and right in the inventory?",
        ) from None
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"The command that {does} did not end within {seconds:g} s.") from None
    if result.returncode:
        said = (result.stderr or result.stdout).strip()[-300:]
        raise InfrastructureError(f"The command that {does} failed: exit code {result.returncode}: {said}")
    return result.stdout

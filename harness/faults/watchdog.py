"""A process beside the harness that takes a fault back where the harness dies before it does."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from harness.errors import InfrastructureError

_ARMED, _DONE = b"armed\n", b"done\n"
_START_SECONDS = 20.0
_COMMAND_SECONDS = 600.0
_TRIES = 3


class Watchdog:
    """Runs a command unless it is told in time that nobody needs it; armed once it is made."""

    def __init__(self, command: Sequence[str], told: str = "") -> None:
        """Arm it. :param command: takes the fault back. :param told: goes to its standard input.

        :raises InfrastructureError: it does not come up; then the fault must not be brought about.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for the harness, and so is a signal to its group
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"command": list(command), "told": told}).encode() + b"\n")
            self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], _START_SECONDS)
        if not ready or self._process.stdout.readline() != _ARMED:
            self.stand_down()
            raise InfrastructureError("The watchdog of a fault does not start; nothing was disturbed.")

    def stand_down(self) -> None:
        """End it without its command: the fault was taken back. May be called twice."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is not None and not stdin.closed:
            with suppress(BrokenPipeError):
                stdin.write(_DONE)
                stdin.close()
        try:
            self._process.wait(_START_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if stdout is not None:
            stdout.close()

    def take_back(self) -> None:
        """Have it run its command now, and wait for that."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is not None:
            with suppress(BrokenPipeError):
                stdin.close()
        self._process.wait()
        if stdout is not None:
            stdout.close()


def main() -> None:
    """Be the watchdog: the command comes first on standard input; its end without a word is the alarm."""
    order = json.loads(sys.stdin.buffer.readline())
    sys.stdout.buffer.write(_ARMED)
    sys.stdout.buffer.flush()
    if sys.stdin.buffer.readline() == _DONE:
        return
    for _ in range(_TRIES):
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                order["command"],
                input=order["told"].encode(),
                capture_output=True,
                timeout=_COMMAND_SECONDS,
                check=True,
            )
            return


if __name__ == "__main__":
    main()

"""A process that runs trials: what its pytest is told, and how it is ended so that it undoes and judges."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

from harness.errors import ConfigurationError
from harness.interruption import uninterrupted

#: Plugins of pytest that may be installed, and only cost time in a trial.
_NOT_NEEDED: Final = ("allure_pytest", "hypothesispytest", "labgrid", "xdist")
#: Arguments of pytest for every trial: what it prints, only a trouble needs.
QUIET: Final = (
    *(word for name in _NOT_NEEDED for word in ("-p", f"no:{name}")),
    *("-qq", "-rN", "--tb=short", "--no-header"),
)
#: One that was told to end has so many seconds to undo and to judge.
_END_SECONDS: Final = 60.0


def wrong_plan(said: str) -> ConfigurationError:
    """Return the error of what pytest said of a file or option that it does not take, with its own hint."""
    message, _, hint = said.removeprefix("ERROR: ").partition("\n  hint: ")
    return ConfigurationError(message, hint=hint or "`hil run` says more.")


def end_in_order(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Tell them to end, as Ctrl-C does, and return when they have: they undo first what they did.

    One that takes too long is killed, and all are at a third Ctrl-C; those before it wait until this is over.
    """
    try:
        with uninterrupted("undo what the trials did"):
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)
            for process in processes:
                wait_for_end(process)
    except KeyboardInterrupt:  # one that waited until now, or the third
        for process in processes:
            process.kill()
            process.wait()


def wait_for_end(process: subprocess.Popen[bytes]) -> None:
    """Return when one that knows that it is to end has ended; it is killed where that takes too long."""
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

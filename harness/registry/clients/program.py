"""Runs a client's program to its end, or to its deadline."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.registry.children import spawn


def run_program(
    argv: Sequence[str | Path], *, environ: Mapping[str, str], folder: Path, deadline: float
) -> tuple[int | None, str]:
    """Return the exit code of ``argv`` and all that it said; no code where it was killed at its deadline.

    It ends with us, and so does what it has started.

    :raises InfrastructureError: it cannot be started.
    """
    process = spawn(argv, environ=environ, folder=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    code: int | None = None
    with _ended(process):
        try:
            said, _ = process.communicate(timeout=deadline)
            code = process.returncode
        except subprocess.TimeoutExpired:
            _kill(process)
            said, _ = process.communicate()
    return code, said.decode(errors="replace")


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Let it not go on alone, however what runs here ends."""
    try:
        yield
    except BaseException:
        _kill(process)
        process.communicate()
        raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End its process group, which is its own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)

"""Standard input and output of `hil` where they are closed, full, or read by nobody any more."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from harness.errors import InfrastructureError

#: As a shell tells of a program that a closed pipe ended (128 + SIGPIPE). It is none of the codes of `hil`
#: itself, so that `hil judge ... | head` is never taken for a run that is not as stated.
EXIT_NO_READER = 141


class Output:
    """Standard output of one run of `hil`, from before anything is printed until its end."""

    def __init__(self) -> None:
        _fill_in_closed()
        self._raw = _Watched(1, "w", closefd=False)
        if _is_original(sys.stdout):
            sys.stdout = _text(self._raw, sys.stdout.encoding)
        if _is_original(sys.stderr):
            sys.stderr = _text(_Lossy(2, "w", closefd=False), sys.stderr.encoding)
        self._stream = sys.stdout

    @property
    def abandoned(self) -> bool:
        """Whether typer found that nobody reads the output any more: it then has put another in its place."""
        return sys.stdout is not self._stream

    def error(self) -> InfrastructureError | None:
        """Return what to tell where standard output could not be written; None where all is well.

        Whatever else is printed is lost; so the interpreter's own last flush has nothing to complain of.
        """
        why = self._raw.error
        if why is None:
            return None
        _point(1, os.O_WRONLY)
        return InfrastructureError(
            f"Standard output takes no more: {why.strerror}.", hint="What was printed is not complete."
        )

    def end(self, code: int) -> int:
        """Write what is still to be written; return the exit code: ``code``, unless nobody could read it.

        :raises InfrastructureError: it cannot be written, such as to a full disk.
        """
        try:
            self._stream.flush()
        except BrokenPipeError:
            self.error()
            return EXIT_NO_READER
        except OSError:
            raise self.error() or InfrastructureError("Standard output takes no more.") from None
        return code


class _Watched(io.FileIO):
    """A file that keeps the error of a write that failed: buffers above it may drop what they held."""

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.error = error
            raise


class _Lossy(io.FileIO):
    """A file that takes what cannot be written all the same: the exit code tells what a message cannot."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _is_original(stream: TextIO) -> bool:
    """Whether ``stream`` is no stand-in of a caller that reads what is printed, as tests do."""
    return stream in (sys.__stdout__, sys.__stderr__)


def _text(raw: io.FileIO, encoding: str) -> io.TextIOWrapper:
    """Return a stream as the interpreter makes them; what its encoding cannot express comes in escapes."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=raw.fileno() == 2 or raw.isatty(),
    )


def _fill_in_closed() -> None:
    """Open standard streams that were closed before `hil` began, lest the next file takes their place.

    Reading or writing results there fails when it is tried; messages go nowhere.
    """
    closed = (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    for number, (name, mode, flags) in enumerate(closed):
        try:
            os.fstat(number)
        except OSError:
            _point(number, flags)
            stream = open(number, mode, closefd=False)  # noqa: SIM115 -- lives as long as the process
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def _point(number: int, flags: int) -> None:
    """Let a standard stream's number lead to /dev/null."""
    target = os.open(os.devnull, flags)
    if target != number:
        os.dup2(target, number)
        os.close(target)

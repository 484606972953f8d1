"""Files as a command's streams, and what the shells say when something cannot be opened or run."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.emulator.programs.base import Streams
from harness.emulator.shell_syntax import Redirect
from harness.emulator.vfs import Handle

if TYPE_CHECKING:
    from harness.emulator.shell import Shell


class FileIn:
    """An open file as standard input."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def read(self, length: int = -1) -> bytes:
        """Return the next bytes."""
        return self._handle.read(None if length < 0 else length)


class FileOut:
    """An open file as standard output or error; every write reaches it at once."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def write(self, data: bytes) -> None:
        """Write ``data``."""
        if data:
            self._handle.write(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """A file is no terminal."""
        return False


class NotReadable(OSError):
    """Standard input was opened for writing only (EBADF)."""


class OneWay:
    """A descriptor that was opened the other way round: it cannot be read, or not be written."""

    def read(self, length: int = -1) -> bytes:
        """:raises NotReadable: always."""
        raise NotReadable(errno.EBADF, os.strerror(errno.EBADF))

    def write(self, data: bytes) -> None:
        """:raises OSError: EBADF, always."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """It is none, and need not be one: nothing comes of it."""
        return False


class RedirectionError(Exception):
    """A file for a redirection cannot be had; ``text`` is what the shell says."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class Messages:
    """The wording of one shell: bash (login) or dash (``sh``)."""

    def __init__(self, name: str) -> None:
        self._dash = name != "bash"
        self.prefix = f"{name}: 1: " if self._dash else f"{name}: line 1: "

    def syntax(self, message: str) -> str:
        """The text for a script that is none."""
        return f"{self.prefix}{message}\n"

    def not_found(self, name: str) -> str:
        """No such program."""
        if self._dash:
            return f"{self.prefix}{name}: not found\n"
        return f"{self.prefix}{name}: {'No such file or directory' if '/' in name else 'command not found'}\n"

    def exec_failed(self, text: str) -> str:
        """``exec`` of a program failed, of which ``text`` is the usual complaint."""
        if self._dash or ": command not found" not in text:
            return text.replace(self.prefix, f"{self.prefix}exec: ", 1) if self._dash else text
        return f"{self.prefix}exec: {text.removeprefix(self.prefix).replace(': command', ':')}"

    def not_executable(self, name: str, is_directory: bool) -> str:
        """There is such a file, but it cannot be run."""
        text = "Is a directory" if is_directory and not self._dash else "Permission denied"
        return f"{self.prefix}{name}: {text}\n"

    def cannot_open(self, target: str, error: OSError, reading: bool) -> RedirectionError:
        """A redirection's file cannot be opened."""
        text = error.strerror or os.strerror(error.errno or 0)
        if not self._dash:
            return RedirectionError(f"{self.prefix}{target}: {text}\n", 1)
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            text = "No such file" if reading else "Directory nonexistent"
        return RedirectionError(
            f"{self.prefix}cannot {'open' if reading else 'create'} {target}: {text}\n", 2
        )

    def bad_descriptor(self, target: str) -> RedirectionError:
        """A redirection names a descriptor that is not open."""
        if self._dash:
            return RedirectionError(f"{self.prefix}{target}: Bad file descriptor\n", 2)
        return RedirectionError(f"{self.prefix}{target}: Bad file descriptor\n", 1)

    def ambiguous(self, target: str) -> RedirectionError:
        """A redirection's pattern matches several files, or nothing is left of it (bash only)."""
        return RedirectionError(f"{self.prefix}{target}: ambiguous redirect\n", 1)

    def write_error(self, builtin: str, error: OSError) -> str:
        """A builtin could not write; dash does not say why."""
        if self._dash:
            return f"{self.prefix}{builtin}: {builtin}: I/O error\n"
        return f"{self.prefix}{builtin}: write error: {error.strerror or os.strerror(error.errno or 0)}\n"


@contextmanager
def redirected(shell: Shell, redirects: tuple[Redirect, ...]) -> Iterator[Streams]:
    """Yield the streams behind ``redirects``. :raises RedirectionError: one cannot be had."""
    slots: dict[int, object] = dict(
        enumerate((shell.streams.stdin, shell.streams.stdout, shell.streams.stderr))
    )
    for redirect in redirects:
        target = _target(shell, redirect)
        if redirect.operator in (">&", "<&"):
            if len(target) != 1 or target not in "0123456789" or int(target) not in slots:
                raise shell.messages.bad_descriptor(target)
            slots[redirect.fd] = slots[int(target)]
            continue
        path = shell.absolute(target)
        try:
            if redirect.operator == "<":
                slots[redirect.fd] = FileIn(shell.host.vfs.open(path))
            else:
                append = redirect.operator == ">>"
                handle = shell.host.vfs.open(
                    path, read=False, write=True, create=True, truncate=not append, append=append
                )
                slots[redirect.fd] = FileOut(handle)
        except OSError as error:
            raise shell.messages.cannot_open(target, error, redirect.operator == "<") from None
    stdin = slots[0] if hasattr(slots[0], "read") else OneWay()
    stdout, stderr = (slots[fd] if hasattr(slots[fd], "write") else OneWay() for fd in (1, 2))
    yield Streams(stdin, stdout, stderr)  # type: ignore[arg-type] # what a slot holds is not in its type


def _target(shell: Shell, redirect: Redirect) -> str:
    """Return where ``redirect`` leads: bash expands patterns in it, dash does not."""
    if shell.name == "sh":
        return shell.expander.single(redirect.target)
    found = shell.expander.fields(redirect.target)
    if len(found) != 1:
        raise shell.messages.ambiguous(" ".join(found))
    return found[0]

"""Reads the files of a registry's store: on this machine, or on a host over SSH by read-only commands."""

from __future__ import annotations

import errno
import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from harness.errors import InfrastructureError
from harness.hosts.protocol import Host
from harness.hosts.remote_errors import os_error

T = TypeVar("T")
#: Repositories have names of up to this many parts, where they are looked for by globs.
_DEEPEST_NAME = 8
#: A link holds one digest; what is larger is none.
_LINK = 1 << 12
#: What stands in the folder of a repository and in no other.
_MARKS = ("_manifests", "_layers")
#: Paths in one command line.
_BATCH = 100
#: What a host hashes at the least, in bytes a second; for deadlines.
_SLOWEST = 20e6
_SUM = re.compile(r"\\?([0-9a-f]{64,128})  (/.*)")


class Store(Protocol):
    """The files below a registry's ``docker/registry/v2``; paths are relative to it."""

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        ...

    def texts(self, paths: Sequence[str]) -> dict[str, bytes | OSError]:
        """Read small files, or say for each why it cannot be."""
        ...

    def read(self, path: str, limit: int) -> bytes:
        """Return a file's content. :raises OSError: it cannot be read, or is larger than ``limit``."""
        ...

    def hashes(self, paths: Sequence[str], algorithm: str) -> dict[str, tuple[int, str] | OSError]:
        """Return size and hash of each file, or why it cannot be read."""
        ...

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted. :raises OSError: it cannot be listed."""
        ...

    def repositories(self) -> list[str]:
        """Return the names of all repositories, sorted. :raises OSError: they cannot be listed."""
        ...


class LocalStore:
    """A store on this machine; ``root`` is the registry's ``rootdirectory``."""

    def __init__(self, root: Path) -> None:
        self._base = root / "docker/registry/v2"
        self.place = str(root)

    def texts(self, paths: Sequence[str]) -> dict[str, bytes | OSError]:
        """Read small files, or say for each why it cannot be."""
        return {path: _tried(partial(self.read, path, _LINK)) for path in paths}

    def read(self, path: str, limit: int) -> bytes:
        """Return a file's content. :raises OSError: it cannot be read, or is larger than ``limit``."""
        with (self._base / path).open("rb") as opened:
            content = opened.read(limit + 1)
        if len(content) > limit:
            raise OSError(errno.EFBIG, f"it is larger than {limit} bytes", path)
        return content

    def hashes(self, paths: Sequence[str], algorithm: str) -> dict[str, tuple[int, str] | OSError]:
        """Return size and hash of each file, or why it cannot be read; in bounded memory."""
        return {path: _tried(partial(self._hash, path, algorithm)) for path in paths}

    def _hash(self, path: str, algorithm: str) -> tuple[int, str]:
        with (self._base / path).open("rb") as opened:
            hashed = hashlib.file_digest(opened, algorithm)
            # What was read, not what the file system says of it.
            return opened.tell(), hashed.hexdigest()

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted. :raises OSError: it cannot be listed."""
        return sorted(entry.name for entry in (self._base / path).iterdir())

    def repositories(self) -> list[str]:
        """Return the names of all repositories, sorted. :raises OSError: they cannot be listed."""
        top = self._base / "repositories"
        return sorted(self._below(top, top))

    def _below(self, folder: Path, top: Path) -> Iterator[str]:
        entries = [entry for entry in folder.iterdir() if entry.is_dir()]
        if set(_MARKS) & {entry.name for entry in entries}:
            yield str(folder.relative_to(top))
        for entry in entries:
            if not entry.name.startswith("_"):
                yield from self._below(entry, top)


def _tried(read: Callable[[], T]) -> T | OSError:
    try:
        return read()
    except OSError as error:
        return error


class HostStore:
    """A store on a host, read by commands that are declared read-only; content is hashed over there."""

    def __init__(self, host: Host, root: str) -> None:
        self._host = host
        self._base = posixpath.join(root, "docker/registry/v2")
        self.place = f"{host.name}:{root}"

    def texts(self, paths: Sequence[str]) -> dict[str, bytes | OSError]:
        """Read small files of one line each, all by one command."""
        found: dict[str, bytes | OSError] = {}
        for batch in _batches(paths):
            full = {f"{self._base}/{path}": path for path in batch}
            result = self._host.run(["grep", "-H", "", *full])
            # A file that is there and has no line is silent.
            found |= dict.fromkeys(batch, b"")
            for line in result.stdout.splitlines():
                name, _, content = line.partition(":")
                if name in full:
                    found[full[name]] = content.encode()
            found |= self._complaints(result.stderr, full)
        return found

    def read(self, path: str, limit: int) -> bytes:
        """Return a file's content. :raises OSError: it cannot be read, or is larger than ``limit``."""
        content = self._host.read(f"{self._base}/{path}")
        if len(content) > limit:
            raise OSError(errno.EFBIG, f"it is larger than {limit} bytes", path)
        return content

    def hashes(self, paths: Sequence[str], algorithm: str) -> dict[str, tuple[int, str] | OSError]:
        """Return size and hash of each file, or why it cannot be read.

        :raises InfrastructureError: the host cannot hash by this algorithm.
        """
        if algorithm != "sha256":
            raise InfrastructureError(
                f"{self._host.name} is asked for hashes by sha256 only, not {algorithm}."
            )
        found: dict[str, tuple[int, str] | OSError] = {}
        for batch in _batches(paths):
            full = {f"{self._base}/{path}": path for path in batch}
            sizes = {}
            stated = self._host.run(["stat", "-L", "-c", "%s %n", *full])
            for line in stated.stdout.splitlines():
                size, _, name = line.partition(" ")
                sizes[name] = int(size)
            seconds = 60.0 + sum(sizes.values()) / _SLOWEST
            result = self._host.run(["sha256sum", *full], deadline=seconds)
            complaints = self._complaints(result.stderr + stated.stderr, full)
            for line in result.stdout.splitlines():
                summed = _SUM.fullmatch(line)
                if summed and summed[2] in full and summed[2] in sizes:
                    found[full[summed[2]]] = (sizes[summed[2]], summed[1])
            for path in batch:
                if path not in found:
                    found[path] = complaints.get(path, OSError(errno.EIO, "it was not hashed", path))
        return found

    def _complaints(self, said: str, full: dict[str, str]) -> dict[str, OSError]:
        """Return what a command said of files that it could not read: ``TOOL: PATH: REASON``."""
        found = {}
        for line in said.splitlines():
            for name, path in full.items():
                if f" {name}: " in line or f"'{name}': " in line:
                    found[path] = os_error(path, line)
        return found

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted. :raises OSError: it cannot be listed."""
        return self._host.list(f"{self._base}/{path}")

    def repositories(self) -> list[str]:
        """Return the names of all repositories of up to eight parts, sorted.

        :raises OSError: they cannot be listed.
        """
        top = f"{self._base}/repositories"
        self._host.list(top)
        globs = [f"{top}{'/*' * depth}/{mark}" for depth in range(1, _DEEPEST_NAME + 1) for mark in _MARKS]
        listed = self._host.run(["ls", "-1", "-d", *globs]).stdout.splitlines()
        return sorted({posixpath.dirname(line)[len(top) + 1 :] for line in listed if line.startswith(top)})


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    unique = list(dict.fromkeys(paths))
    for at in range(0, len(unique), _BATCH):
        yield unique[at : at + _BATCH]

"""Many files of a host at once, byte for byte, each with what the kernel said where it cannot be read."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.errors import InfrastructureError
from harness.hosts.protocol import CommandResult, Host
from harness.hosts.remote_errors import os_error
from harness.recordings.model import Entry

#: A command line is one word for the host's shell, and Linux limits a word to 128 KiB.
_LONGEST_LINE = 60_000
#: More than any attribute holds; files that are larger are not read.
LARGEST_FILE = 1 << 20
#: Type, permission bits, size, path and target; with NUL, as no path can hold it.
_FORM = "%y %m %s %p\\0%l\\0"

_HEAD = re.compile(
    r"^(?:\S*/)?head: (?:cannot open|error reading) ['‘](?P<path>.*)['’](?: for reading)?: (?P<reason>.+)$"
)
_FIND = re.compile(r"^(?:\S*/)?find: ['‘](?P<path>.*)['’]: (?P<reason>.+)$")
_FOUND = re.compile(r"(?P<type>.) (?P<mode>[0-7]+) (?P<size>[0-9]+) (?P<path>[^\0]+)\0(?P<target>[^\0]*)\0")
_GLOBBED = re.compile(r"[*?\[\]]")


@dataclass(frozen=True, slots=True)
class Found:
    """One path: ``type`` as ``find`` has it (f, d, l, c, ...), permission bits, size, a link's target."""

    path: str
    type: str
    mode: int
    size: int
    target: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What is below some paths. ``failed``: path -> why it could not be looked at."""

    found: tuple[Found, ...]
    failed: dict[str, str]


def list_below(
    host: Host, paths: Sequence[str], *, depth: int | None = None, deadline: float = 60.0
) -> Listing:
    """Return what is at and below ``paths`` on ``host``, ``depth`` levels deep, in one round trip.

    Links are not followed. :raises InfrastructureError: the host has no working GNU `find`.
    """
    limit = [] if depth is None else ["-maxdepth", str(depth)]
    found: list[Found] = []
    failed: dict[str, str] = {}
    for chunk in _chunks(paths):
        result = host.run(["find", *chunk, *limit, "-xdev", "-printf", _FORM], deadline=deadline)
        if result.exit_code not in (0, 1):
            raise _unusable(host, result)
        found += [
            Found(m["path"], m["type"], int(m["mode"], 8), int(m["size"]), m["target"])
            for m in _FOUND.finditer(result.stdout)
        ]
        failed |= dict(_complaints(_FIND, result.stderr))
    return Listing(tuple(found), failed)


def read_files(host: Host, paths: Sequence[str], *, deadline: float = 60.0) -> dict[str, Entry]:
    """Return the content of each of ``paths``, or the errno with which reading it failed.

    :raises InfrastructureError: the host has no working GNU `head`.
    """
    found: dict[str, Entry] = {}
    plain = [path for path in paths if not _GLOBBED.search(path)]
    for chunk in _chunks(plain):
        result = host.run(["head", "-v", "-c", str(LARGEST_FILE), *chunk], deadline=deadline)
        if result.exit_code not in (0, 1):
            raise _unusable(host, result)
        texts = dict(_contents(chunk, result.stdout))
        failed = dict(_complaints(_HEAD, result.stderr))
        for path in chunk:
            if path in failed:
                found[path] = unreadable(os_error(path, failed[path]))
            elif path not in texts:
                raise InfrastructureError(f"`head` on {host.name} said nothing of {path}.")
            elif "\ufffd" not in texts[path]:
                found[path] = Entry("content", texts[path].encode())
    for path in paths:
        if path not in found:  # not a text, or a name that the shell would take for a pattern
            found[path] = _exactly(host, path, deadline)
    return found


def unreadable(error: OSError) -> Entry:
    """Return the entry of a file whose reading failed with ``error``."""
    return Entry("unreadable", text=errno.errorcode.get(error.errno or errno.EIO, "EIO"))


def _exactly(host: Host, path: str, deadline: float) -> Entry:
    try:
        return Entry("content", host.read(path, deadline=deadline))
    except OSError as error:
        return unreadable(error)


def _contents(paths: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield what `head -v` printed of each path: a header, then its content; files are kept apart."""
    at = 0
    remaining = list(paths)
    current = ""
    while remaining:
        header = f"==> {remaining[0]} <==\n"
        if not current and text.startswith(header):
            current, at = remaining.pop(0), len(header)
            continue
        where = text.find(f"\n{header}", at) if current else -1
        if where < 0:
            remaining.pop(0)  # it could not be opened
            continue
        yield current, text[at:where]
        current, at = remaining.pop(0), where + 1 + len(header)
    if current:
        yield current, text[at:]


def _complaints(form: re.Pattern[str], stderr: str) -> Iterator[tuple[str, str]]:
    for line in stderr.splitlines():
        if match := form.match(line):
            yield match["path"], match["reason"]


def _chunks(paths: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    length = 0
    for path in paths:
        if chunk and length + len(path) > _LONGEST_LINE:
            yield chunk
            chunk, length = [], 0
        chunk.append(path)
        length += len(path) + 3  # it may be quoted
    if chunk:
        yield chunk


def _unusable(host: Host, result: CommandResult) -> InfrastructureError:
    said = result.stderr.strip()[-200:] or "it said nothing"
    return InfrastructureError(
        f"`{result.argv[0]}` on {host.name} ended with exit code {result.exit_code}: {said}.",
        hint="Recording needs GNU findutils and coreutils on the host.",
    )

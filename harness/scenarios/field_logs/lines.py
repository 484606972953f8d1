"""Reads pasted files of any bytes line by line: encodings, colours, overlong lines, packed logs."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from harness.errors import ConfigurationError

#: Stands for standard input.
STDIN: Final = "-"
#: Bytes of a line that are kept, so that a file without line ends needs no more memory than another one.
LONGEST: Final = 1 << 16
_CHUNK: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_MARKS: Final = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
#: What steers a terminal; also with the escape written as ``^[``, as pagers and trackers show it.
_STEERING: Final = re.compile(
    r"(?:\x1b|\^\[)\[[0-9;:?]{0,40}[ -/]{0,4}[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|\x1b[@-_]"
)
#: What only looks like a blank, and what is not seen at all.
_BLANKS: Final = dict.fromkeys(map(ord, "\u00a0\u2007\u202f"), " ") | dict.fromkeys(
    map(ord, "\0\u200b\u2060\ufeff")
)


class Bytes(Protocol):
    """What bytes are read from."""

    def read(self, size: int = ..., /) -> bytes | None:
        """Return up to ``size`` bytes; nothing at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Line:
    """One line. ``number``: from 1; ``text``: without line end, colours and what is not seen."""

    file: str
    number: int
    text: str


def read_lines(name: str, troubled: Callable[[str], object]) -> Iterator[Line]:
    """Yield the lines of a file, or of standard input for ``-``; what is packed by gzip is unpacked.

    A line that is redrawn with carriage returns, as progress bars are, gives one line for each drawing, all
    with its number.

    :param troubled: told in words what could not be read, such as the rest of an overlong line.
    :raises ConfigurationError: there is no such file, or it cannot be read.
    """
    shown = "standard input" if name == STDIN else name
    try:
        with _opened(name) as stream:
            yield from lines_of(stream, shown, troubled)
    except OSError as error:
        raise ConfigurationError(
            f"{shown} cannot be read: {error.strerror or error}.",
            hint="Name files with what was pasted, or - for standard input.",
        ) from None


def _opened(name: str) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if name == STDIN else Path(name).open("rb")


def lines_of(stream: IO[bytes], file: str, troubled: Callable[[str], object]) -> Iterator[Line]:
    """Yield the lines of an open ``stream``; the other arguments as :func:`read_lines` has them."""
    began = stream.read(len(_GZIP))
    rest = _Rest(began, stream)
    source: Bytes = gzip.GzipFile(fileobj=rest) if began == _GZIP else rest
    number = 0
    cut = 0
    try:
        for raw, whole in _raw_lines(source):
            number += 1
            cut += not whole
            for part in re.split(r"\r+", raw.rstrip("\r\n")):
                yield Line(file, number, _plain(part))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        troubled(f"{file}: what is packed there breaks off after line {number}: {error}")
    if cut:
        troubled(f"{file}: {cut} lines are longer than {LONGEST} bytes; the rest of each was left out")


class _Rest(io.RawIOBase):
    """A stream of which the beginning was read before."""

    def __init__(self, began: bytes, stream: IO[bytes]) -> None:
        super().__init__()
        self._began = began
        self._stream = stream

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to ``size`` bytes; all that are left for -1."""
        if not self._began:
            return self._stream.read(size)
        taken, self._began = self._began, b""
        return taken + self._stream.read(-1 if size < 0 else max(size - len(taken), 0))


def _raw_lines(stream: Bytes) -> Iterator[tuple[str, bool]]:
    """Yield each line as text, and whether it is whole."""
    rest = b""
    skipping = False
    for chunk in _chunks(stream):
        *ended, rest = (rest + chunk).split(b"\n")
        for raw in ended:
            if not skipping:
                yield _decoded(raw[:LONGEST]), len(raw) <= LONGEST
            skipping = False
        if len(rest) > LONGEST:
            if not skipping:
                yield _decoded(rest[:LONGEST]), False
            skipping, rest = True, b""
    if rest and not skipping:
        yield _decoded(rest), True


def _chunks(stream: Bytes) -> Iterator[bytes]:
    """Yield what is in a stream piece by piece; what states to be UTF-16 as UTF-8."""
    chunk = stream.read(_CHUNK) or b""
    mark, encoding = next(((m, e) for m, e in _MARKS if chunk.startswith(m)), (b"", ""))
    decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding.startswith("utf-16") else None
    chunk = chunk[len(mark) :]
    while chunk:
        yield chunk if decoder is None else decoder.decode(chunk).encode("utf-8", "replace")
        chunk = stream.read(_CHUNK) or b""


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        # One paste, several encodings: what is no UTF-8 is mostly one where each byte is a letter.
        return raw.decode("cp1252", "replace")


def _plain(text: str) -> str:
    if text.isascii() and text.isprintable() and "^[" not in text:
        return text
    return _STEERING.sub("", text).translate(_BLANKS)

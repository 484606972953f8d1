"""Where the body of a message ends, told from its bytes without changing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

#: The size of a chunk with its extensions, or a line of a trailer.
_LONGEST_LINE = 16 << 10


class BrokenBody(Exception):
    """What came is no body of the kind that the head announced."""


class Body(Protocol):
    """A body that is passed on piece by piece. ``passed``: bytes of content so far, without encoding."""

    passed: int

    @property
    def done(self) -> bool:
        """Whether all of it has passed."""
        ...

    def take(self, data: memoryview, limit: int | None = None) -> int:
        """Return how many bytes of ``data``, from its begin, belong to the body.

        :param limit: what ``passed`` may not exceed. :raises BrokenBody: it is not encoded as it says.
        """
        ...


@dataclass(slots=True)
class Counted:
    """A body of a known length."""

    length: int
    passed: int = 0

    @property
    def done(self) -> bool:
        """Whether all of it has passed."""
        return self.passed == self.length

    def take(self, data: memoryview, limit: int | None = None) -> int:
        """Return how many bytes belong to it."""
        count = min(len(data), (self.length if limit is None else min(self.length, limit)) - self.passed)
        self.passed += count
        return count


@dataclass(slots=True)
class UntilClose:
    """A body that ends with its connection."""

    passed: int = 0
    done: bool = False

    def take(self, data: memoryview, limit: int | None = None) -> int:
        """Return how many bytes belong to it: all."""
        count = len(data) if limit is None else min(len(data), limit - self.passed)
        self.passed += count
        return count


@dataclass(slots=True)
class Chunked:
    """A body in chunks (RFC 9112, section 7.1), with its sizes, its ends and its trailer."""

    passed: int = 0
    done: bool = False
    _left: int = 0
    _line: bytes = b""
    _at: str = "size"

    def take(self, data: memoryview, limit: int | None = None) -> int:
        """Return how many bytes belong to it."""
        at = 0
        while at < len(data) and not self.done:
            if self._at == "content":
                count = min(self._left, len(data) - at)
                if limit is not None:
                    count = min(count, limit - self.passed)
                if not count:
                    break
                at += count
                self.passed += count
                self._left -= count
                if not self._left:
                    self._at = "end"
            else:
                if limit is not None and self.passed >= limit:
                    break
                at += self._take_line(data[at:])
        return at

    def _take_line(self, data: memoryview) -> int:
        piece = bytes(data[: _LONGEST_LINE + 1])
        end = piece.find(b"\n")
        count = len(piece) if end < 0 else end + 1
        self._line += piece[:count]
        if len(self._line) > _LONGEST_LINE:
            raise BrokenBody("a line between chunks has no end")
        if end >= 0:
            line, self._line = self._line.rstrip(b"\r\n"), b""
            self._ended(line)
        return count

    def _ended(self, line: bytes) -> None:
        if self._at == "size":
            text = line.partition(b";")[0].strip()
            if not text or len(text) > 16 or text.strip(b"0123456789abcdefABCDEF"):
                raise BrokenBody(f"{line[:40]!r} is not the size of a chunk")
            self._left = int(text, 16)
            self._at = "content" if self._left else "trailer"
        elif self._at == "end":
            if line:
                raise BrokenBody("a chunk is longer than its size")
            self._at = "size"
        elif not line:
            self.done = True

"""Searches a line for a regular expression in linear time, as `grep` does, where Python's would try for ever.

Python goes back and tries again; with several repetitions, or one within another, that takes longer than
anybody waits, and nothing else of the lab runs meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_MOST_STATES = 5000
_DEEPEST = 40
_REPEAT = re.compile(r"[*+?]|\{(\d{0,5})(,?)(\d{0,5})\}")
_ATOM = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]|\\.|.", re.DOTALL)
_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def is_risky(pattern: str) -> bool:
    """Return whether Python could take long to search for ``pattern``: it repeats twice, or a group."""
    repeats = [found for found in _ATOM.findall(pattern) if found in ("*", "+", "{")]
    return len(repeats) > 1 or re.search(r"(?<!\\)\)[*+{]", pattern) is not None


@dataclass(slots=True)
class _State:
    """``bytes_``: those that lead on. ``at``: an assertion. Neither: both ways are open at once."""

    bytes_: frozenset[int] | None = None
    at: str = ""
    on: int = -1
    also: int = -1


class LinearRegex:
    """A pattern of Python's syntax, as far as POSIX has its like. :raises re.error: it is beyond that."""

    def __init__(self, pattern: str, *, ignore_case: bool = False, whole: bool = False) -> None:
        self._pattern = pattern
        self._position = 0
        self._depth = 0
        self._flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
        self._states: list[_State] = []
        self._whole = whole
        self._end = self._new(_State())
        self._start = self._alternatives(self._end)
        if self._position < len(pattern):
            raise re.error("unbalanced parenthesis")

    def search(self, line: bytes) -> bool:
        """Return whether ``line`` matches anywhere (all of it, where the pattern is for a whole line)."""
        now = self._closure([self._start], line, 0)
        for position, byte in enumerate(line):
            if self._end in now and not self._whole:
                return True
            ahead = [s.on for s in map(self._states.__getitem__, now) if s.bytes_ and byte in s.bytes_]
            if not self._whole:
                ahead.append(self._start)
            now = self._closure(ahead, line, position + 1)
        return self._end in now

    def _closure(self, states: Iterable[int], line: bytes, position: int) -> set[int]:
        found: set[int] = set()
        pending = list(states)
        while pending:
            number = pending.pop()
            if number < 0 or number in found:
                continue
            state = self._states[number]
            if state.at and not _holds(state.at, line, position):
                continue
            found.add(number)
            if state.bytes_ is None:
                pending += (state.on, state.also)
        return found

    # What follows builds the states from the end of the pattern to its beginning: each part is given the
    # state that comes after it, and returns the one that it begins with.

    def _new(self, state: _State) -> int:
        if len(self._states) >= _MOST_STATES:
            raise re.error("Regular expression too big")
        self._states.append(state)
        return len(self._states) - 1

    def _alternatives(self, after: int) -> int:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise re.error("Regular expression too big")
        begin = self._sequence(after)
        while self._pattern.startswith("|", self._position):
            self._position += 1
            begin = self._new(_State(on=begin, also=self._sequence(after)))
        self._depth -= 1
        return begin

    def _sequence(self, after: int) -> int:
        pieces: list[tuple[int, int, int, int]] = []
        while self._position < len(self._pattern) and self._pattern[self._position] not in "|)":
            begin = self._position
            self._piece(-1)
            end = self._position
            least, most = 1, 1
            while repeat := _REPEAT.match(self._pattern, self._position):
                least, most = _times(repeat, least, most)
                self._position = repeat.end()
            pieces.append((begin, end, least, most))
        stop = self._position
        for begin, end, least, most in reversed(pieces):
            after = self._repeated(begin, end, least, most, after)
        self._position = stop
        return after

    def _repeated(self, begin: int, end: int, least: int, most: int, after: int) -> int:
        if most < 0:
            loop = self._new(_State(also=after))
            self._states[loop].on = self._piece_at(begin, end, loop)
            after = loop
        for _ in range(most - least if most >= 0 else 0):
            after = self._new(_State(on=self._piece_at(begin, end, after), also=after))
        for _ in range(least):
            after = self._piece_at(begin, end, after)
        return after

    def _piece_at(self, begin: int, end: int, after: int) -> int:
        self._position = begin
        state = self._piece(after)
        assert self._position == end
        return state

    def _piece(self, after: int) -> int:
        if self._pattern.startswith("(", self._position):
            self._position += 3 if self._pattern.startswith("(?:", self._position) else 1
            state = self._alternatives(after)
            if not self._pattern.startswith(")", self._position):
                raise re.error("missing ), unterminated subpattern")
            self._position += 1
            return state
        atom = _ATOM.match(self._pattern, self._position)
        assert atom is not None
        self._position = atom.end()
        if atom[0] in ("^", "$", r"\b", r"\B"):
            return self._new(_State(at=atom[0], on=after))
        if re.fullmatch(r"\\[1-9]", atom[0]):
            raise re.error("Invalid back reference")
        single = re.compile(atom[0].encode("utf-8", "surrogateescape"), self._flags)
        if len(atom[0].encode("utf-8", "surrogateescape")) > 1 and atom[0][0] not in "[\\":
            state = after
            for byte in reversed(atom[0].encode("utf-8", "surrogateescape")):
                state = self._new(_State(bytes_=frozenset([byte]), on=state))
            return state
        bytes_ = frozenset(byte for byte in range(256) if single.fullmatch(bytes([byte])))
        return self._new(_State(bytes_=bytes_, on=after))


def _times(repeat: re.Match[str], least: int, most: int) -> tuple[int, int]:
    """Return how often is meant, where what is repeated is repeated already."""
    if repeat[0] in "*+?":
        low, high = (1 if repeat[0] == "+" else 0), (1 if repeat[0] == "?" else -1)
    else:
        low = int(repeat[1] or "0")
        high = low if not repeat[2] else int(repeat[3]) if repeat[3] else -1
    if 0 <= high < low:
        raise re.error("Invalid content of \\{\\}")
    return least * low, -1 if -1 in (most, high) and 0 not in (most, high) else most * high


def _holds(at: str, line: bytes, position: int) -> bool:
    if at == "^":
        return position == 0
    if at == "$":
        return position == len(line)
    before = position > 0 and line[position - 1] in _WORD
    behind = position < len(line) and line[position] in _WORD
    return (before != behind) is (at == r"\b")

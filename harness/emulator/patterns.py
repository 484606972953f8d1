"""Shell patterns: what is one, how to quote one, and the regular expression of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_MAGIC = re.compile(r"(?<!\\)(?:\\\\)*[*?\[]")


@lru_cache(maxsize=1024)
def has_magic(pattern: str) -> bool:
    """Return whether ``pattern`` holds an unquoted ``*``, ``?`` or ``[``."""
    return _MAGIC.search(pattern) is not None


def unescape(pattern: str) -> str:
    """Return ``pattern`` without its quoting backslashes."""
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL) if "\\" in pattern else pattern


@lru_cache(maxsize=1024)
def pattern_regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of the shell pattern ``pattern`` (``\\`` quotes the next one).

    It matches in linear time, however many stars there are: what a star once passed over is not tried again.
    """
    between: list[list[str]] = [[]]  # what stands between the stars
    position = 0
    brackets = True
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "*":
            between.append([])
        elif character == "?":
            between[-1].append(".")
        elif character == "\\" and position < len(pattern):
            between[-1].append(re.escape(pattern[position]))
            position += 1
        elif character == "[" and brackets and (bracket := _bracket(pattern, position)):
            between[-1].append(bracket[0])
            position = bracket[1]
        else:
            brackets &= character != "["  # one that does not end: none behind it does
            between[-1].append(re.escape(character))
    first, *rest = map("".join, between)
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    atoms = "".join(f"(?>.*?{part})" for part in middle if part)
    return re.compile(f"{first}{atoms}.*{last}", re.DOTALL)


def _bracket(pattern: str, position: int) -> tuple[str, int] | None:
    """Return the regular expression of the bracket whose inside begins at ``position``, and its end.

    None where no bracket ends: then it stands for itself. A range that runs backwards holds nothing.
    """
    negated = pattern[position : position + 1] in ("!", "^")
    position += negated
    members: list[str] = []  # a quoted one with its backslash
    while position < len(pattern) and (pattern[position] != "]" or not members):
        size = 2 if pattern[position] == "\\" and position + 1 < len(pattern) else 1
        members.append(pattern[position : position + size])
        position += size
    if position >= len(pattern):
        return None
    inside = "".join(_members(members))
    if not inside:
        return "." if negated else "(?!)", position + 1
    return f"[{'^' if negated else ''}{inside}]", position + 1


def _members(members: list[str]) -> Iterator[str]:
    at = 0
    while at < len(members):
        low = members[at][-1]
        if members[at + 1 : at + 2] == ["-"] and at + 2 < len(members):
            high = members[at + 2][-1]
            if low <= high:
                yield f"{re.escape(low)}-{re.escape(high)}"
            at += 3
        else:
            yield re.escape(low)
            at += 1


def quote_pattern(text: str) -> str:
    """Return a pattern that matches ``text`` and nothing else."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)

"""Shell patterns: what is one, how to quote one, and the regular expression of one."""

from __future__ import annotations

import re
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
    """Return the regular expression of the shell pattern ``pattern`` (``\\`` quotes the next one)."""
    out: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\" and position + 1 < len(pattern):
            out.append(re.escape(pattern[position + 1]))
            position += 2
            continue
        if character == "[":
            end = pattern.find("]", position + 2 + (pattern[position + 1 : position + 2] == "!"))
            if end > 0:
                body = pattern[position + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
                out.append(f"[^{body[1:]}]" if body[0] in "!^" else f"[{body}]")
                position = end + 1
                continue
        out.append({"*": ".*", "?": "."}.get(character, re.escape(character)))
        position += 1
    return re.compile("".join(out), re.DOTALL)


def quote_pattern(text: str) -> str:
    """Return a pattern that matches ``text`` and nothing else."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)

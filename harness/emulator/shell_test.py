"""Decides the expressions of ``test`` and ``[``."""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.emulator.vfs import Attribute, Device, Directory, Link, Node, Vfs

_MOST_WORDS = 100


class TestSyntaxError(Exception):
    """The words are no expression."""

    __test__ = False  # not a test class, whatever its name begins with


def _executable(node: Node) -> bool:
    return isinstance(node, Directory) or bool(node.mode & 0o111)


_FILE_TESTS: dict[str, Callable[[Node], bool]] = {
    "-e": lambda node: True,
    "-f": lambda node: not isinstance(node, (Directory, Device)),
    "-d": lambda node: isinstance(node, Directory),
    "-c": lambda node: isinstance(node, Device),
    "-s": lambda node: node.size > 0,
    "-r": lambda node: not isinstance(node, Attribute) or node.show is not None,
    "-w": lambda node: True,  # root may write anything; a kernel attribute refuses at open
    "-x": _executable,
}
_STRING_TESTS: dict[str, Callable[[str], bool]] = {"-n": bool, "-z": lambda text: not text}
_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda left, right: left == right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "-eq": lambda left, right: _number(left) == _number(right),
    "-ne": lambda left, right: _number(left) != _number(right),
    "-lt": lambda left, right: _number(left) < _number(right),
    "-le": lambda left, right: _number(left) <= _number(right),
    "-gt": lambda left, right: _number(left) > _number(right),
    "-ge": lambda left, right: _number(left) >= _number(right),
}


def _number(text: str) -> int:
    if re.fullmatch(r"\s*[-+]?[0-9]{1,18}\s*", text, re.ASCII) is None:
        raise TestSyntaxError(f"Illegal number: {text}")
    return int(text)


def evaluate(words: list[str], files: Vfs, absolute: Callable[[str], str]) -> bool:
    """Return whether the expression ``words`` holds.

    :raises TestSyntaxError: it is none.
    """
    if not words:
        return False
    if len(words) > _MOST_WORDS:
        raise TestSyntaxError("too many arguments")
    for operator, combine in (("-o", any), ("-a", all)):
        if operator in words[1:-1]:
            at = words.index(operator, 1)
            halves = (words[:at], words[at + 1 :])
            return combine([evaluate(half, files, absolute) for half in halves])
    if words[0] == "!" and len(words) > 1:
        return not evaluate(words[1:], files, absolute)
    if len(words) == 1:
        return bool(words[0])
    if len(words) == 3 and words[1] in _COMPARISONS:
        return _COMPARISONS[words[1]](words[0], words[2])
    if len(words) == 2:
        return _unary(words[0], words[1], files, absolute)
    raise TestSyntaxError(f"{words[1]}: unexpected operator")


def _unary(operator: str, word: str, files: Vfs, absolute: Callable[[str], str]) -> bool:
    if operator in _STRING_TESTS:
        return _STRING_TESTS[operator](word)
    linked = operator in ("-L", "-h")
    if not linked and operator not in _FILE_TESTS:
        raise TestSyntaxError(f"{operator}: unexpected operator")
    try:
        node = files.node(absolute(word), follow=not linked)
    except OSError:
        return False
    return isinstance(node, Link) if linked else _FILE_TESTS[operator](node)

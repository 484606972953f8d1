"""``find`` (GNU findutils), with what reading a tree takes: depth, names, types, and a form to print."""

from __future__ import annotations

import re
import stat as modes
from collections.abc import Iterator
from dataclasses import dataclass

from harness.emulator import vfs
from harness.emulator.patterns import pattern_regex
from harness.emulator.programs.base import Invocation, Main, ProgramExit, reason

_VALUED = ("-maxdepth", "-mindepth", "-name", "-type", "-printf")
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}
_TYPES = {modes.S_IFREG: "f", modes.S_IFDIR: "d", modes.S_IFLNK: "l", modes.S_IFCHR: "c"}
_DIRECTIVE = re.compile(r"%(.)|\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Match:
    """A path as it is printed, how deep it lies, and what stands there."""

    path: str
    depth: int
    node: vfs.Node


class _Search:
    def __init__(self, run: Invocation) -> None:
        self._run = run
        self.status = 0
        self.roots: list[str] = []
        self.tests: dict[str, str] = {}
        pending = run.argv[1:]
        while pending:
            word = pending.pop(0)
            if word in _VALUED:
                if not pending:
                    raise self._wrong(f"missing argument to `{word}'")
                self.tests[word] = pending.pop(0)
            elif word in ("-xdev", "-mount", "-print", "-P"):
                continue  # nothing is mounted below anything, and links are not followed
            elif word.startswith("-"):
                raise self._wrong(f"unknown predicate `{word}'")
            elif self.tests:
                raise self._wrong(f"paths must precede expression: `{word}'")
            else:
                self.roots.append(word)
        for name in ("-maxdepth", "-mindepth"):
            if re.fullmatch("[0-9]{1,9}", self.tests.get(name, "0")) is None:
                raise self._wrong(f"Expected a positive decimal integer argument to {name}")
        kind = self.tests.get("-type", "f")
        if kind not in "bcdpfls" or len(kind) != 1:
            raise self._wrong(f"Unknown argument to -type: {kind}")

    def _wrong(self, message: str) -> ProgramExit:
        self._run.complain(message)
        return ProgramExit(1)

    def matches(self) -> Iterator[_Match]:
        """Yield what is found, directories before what is in them."""
        for root in self.roots or ["."]:
            try:
                node = self._run.vfs.node(self._run.path(root), follow=False)
            except OSError as error:
                self._complain(root, error)
                continue
            for match in self._walk(_Match(root, 0, node)):
                if self._selects(match):
                    yield match

    def _walk(self, match: _Match) -> Iterator[_Match]:
        yield match
        if not modes.S_ISDIR(match.node.kind) or match.depth >= int(self.tests.get("-maxdepth", "999")):
            return
        try:
            names = self._run.vfs.listdir(self._run.path(match.path))
        except OSError as error:
            self._complain(match.path, error)
            return
        for name in names:
            path = f"{match.path.rstrip('/')}/{name}"
            try:
                node = self._run.vfs.node(self._run.path(path), follow=False)
            except OSError:  # it went while the directory was read
                continue
            yield from self._walk(_Match(path, match.depth + 1, node))

    def _selects(self, match: _Match) -> bool:
        if match.depth < int(self.tests.get("-mindepth", "0")):
            return False
        name = match.path.rstrip("/").rpartition("/")[2]
        if "-name" in self.tests and not pattern_regex(self.tests["-name"]).fullmatch(name):
            return False
        return "-type" not in self.tests or _TYPES.get(match.node.kind) == self.tests["-type"]

    def _complain(self, path: str, error: OSError) -> None:
        self._run.complain(f"{self._run.quoted(path)}: {reason(error)}")
        self.status = 1

    def form(self, match: _Match) -> str:
        """Return what is printed of ``match``."""
        if "-printf" not in self.tests:
            return f"{match.path}\n"
        node = match.node
        values = {
            "%": "%",
            "p": match.path,
            "f": match.path.rstrip("/").rpartition("/")[2] or "/",
            "l": node.target if isinstance(node, vfs.Link) else "",
            "y": _TYPES.get(node.kind, "U"),
            "m": f"{node.mode:o}",
            "s": str(node.size),
            "d": str(match.depth),
        }
        return _DIRECTIVE.sub(
            lambda found: values.get(found[1], found[0]) if found[1] else _ESCAPES.get(found[2], found[0]),
            self.tests["-printf"],
        )


def find(run: Invocation) -> int:
    """Write what is below the given paths."""
    search = _Search(run)
    for match in search.matches():
        run.out(search.form(match))
    return search.status


PROGRAMS: dict[str, Main] = {"find": find}

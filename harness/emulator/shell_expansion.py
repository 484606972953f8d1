"""Expands the words of a shell command: parameters, command substitution, splitting and patterns."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.emulator.patterns import has_magic, quote_pattern, unescape
from harness.emulator.shell_limits import LONGEST_WORDS, TOO_LONG
from harness.emulator.shell_syntax import Substitution, Text, Variable, Word

if TYPE_CHECKING:
    from harness.emulator.shell import Shell

_BLANKS = " \t\n"  # the default IFS; no other is supported
#: Text in which no character means anything but itself.
_PLAIN = re.compile(r"[\w./:=@%+,-]+")


class Expander:
    """Expands words by the variables, the directory and the files of one shell."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def single(self, word: Word) -> str:
        """Return ``word`` as one string: what assignments and redirections use."""
        return self._bounded(["".join(self._plain(part) for part in self._tilde(word))])[0]

    def _bounded(self, words: list[str]) -> list[str]:
        """Return ``words``. :raises ShellExit: they are longer than any command line may be."""
        if sum(map(len, words)) > LONGEST_WORDS:
            raise self._shell.gives_up(TOO_LONG)
        return words

    def fields(self, word: Word) -> list[str]:
        """Return the words that ``word`` becomes: none, one or several."""
        only = word[0] if len(word) == 1 else None
        if isinstance(only, Text) and (only.quoted or _PLAIN.fullmatch(only.text)):
            return self._bounded([only.text])  # as most words
        patterns: list[str] = []
        current: str | None = None
        for part in self._tilde(word):
            if isinstance(part, Text):
                current = (current or "") + (quote_pattern(part.text) if part.quoted else part.text)
            elif part.quoted and isinstance(part, Variable) and part.name == "@":
                for index, argument in enumerate(self._shell.arguments):
                    if index and current is not None:
                        patterns.append(current)
                        current = None
                    current = (current or "") + quote_pattern(argument)
            elif part.quoted:
                current = (current or "") + quote_pattern(self._plain(part))
            else:
                current = self._split(self._plain(part).replace("\\", "\\\\"), patterns, current)
        if current is not None:
            patterns.append(current)
        return self._bounded([field for pattern in self._bounded(patterns) for field in self._paths(pattern)])

    @staticmethod
    def _split(value: str, patterns: list[str], current: str | None) -> str | None:
        """Split ``value`` at blanks behind ``current``; return the word that is still open."""
        pieces = value.split()
        if not pieces:
            if value and current is not None:
                patterns.append(current)
                return None
            return current
        if value[0] in _BLANKS and current is not None:
            patterns.append(current)
            current = None
        patterns.extend([(current or "") + pieces[0], *pieces[1:]])
        return None if value[-1] in _BLANKS else patterns.pop()

    def _tilde(self, word: Word) -> Word:
        if word and isinstance(word[0], Text) and not word[0].quoted and re.match(r"~(/|$)", word[0].text):
            home = self._shell.variables.get("HOME", "/")
            return (Text(home, quoted=True), Text(word[0].text[1:]), *word[1:])
        return word

    def _paths(self, pattern: str) -> list[str]:
        if not has_magic(pattern):
            return [unescape(pattern)]
        prefix = "" if pattern.startswith("/") else self._shell.cwd.rstrip("/") + "/"
        try:
            found = self._shell.host.vfs.glob(quote_pattern(prefix) + pattern)
        except OSError:
            raise self._shell.gives_up(TOO_LONG) from None
        return [path[len(prefix) :] for path in found] or [unescape(pattern)]

    def _plain(self, part: Text | Variable | Substitution) -> str:
        if isinstance(part, Text):
            return part.text
        if isinstance(part, Substitution):
            return self._shell.capture(part.script).decode("utf-8", "surrogateescape").rstrip("\n")
        value = self._value(part.name)
        missing = value is None or (part.operator.startswith(":") and value == "")
        if part.operator.endswith("-") and missing:
            return self.single(part.word)
        if part.operator.endswith("+"):
            return "" if missing else self.single(part.word)
        return value or ""

    def _value(self, name: str) -> str | None:
        shell = self._shell
        if name in ("@", "*"):
            return " ".join(shell.arguments)
        if name == "0":
            return shell.zero
        if name in "123456789":
            index = int(name) - 1
            return shell.arguments[index] if index < len(shell.arguments) else None
        special: dict[str, Callable[[], str]] = {
            "#": lambda: str(len(shell.arguments)),
            "?": lambda: str(shell.status),
            "$": lambda: str(shell.shell_pid),
            "!": lambda: str(shell.last_job or ""),
            "-": lambda: "",
        }
        return special[name]() if name in special else shell.variables.get(name)

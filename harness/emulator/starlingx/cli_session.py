"""One run of a command of a controller: its words, what it asks, and the forms in which it prints."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.emulator.programs.base import Invocation
from harness.emulator.starlingx.cli_client import Client, CommandError
from harness.emulator.starlingx.cli_tables import listing, properties, text_of

#: What ``--format`` may be (section 2.7).
FORMATS: Final = ("table", "yaml", "value")
#: Of the release in which the commands ran with Python 2.
_PYTHON2: Final = "stx-2020-07"


@dataclass(frozen=True, slots=True)
class Given:
    """What stood on the command line: its words, and each option by the name that it was given by."""

    words: Sequence[str]
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        """Return whether an option was given, by any of its names."""
        return any(name in self.options for name in names)

    def last(self, *names: str) -> str | None:
        """Return the value of an option, by any of its names; None where it was not given."""
        return next((self.options[name][-1] for name in names if name in self.options), None)

    def labels(self, start: int) -> list[dict[str, str]]:
        """Return the words from ``start`` on as labels. :raises CommandError: one of them is none."""
        found = []
        for word in self.words[start:]:
            key, equals, value = word.partition("=")
            if not equals:
                raise CommandError(f'Attributes must be a list of NAME=VALUE not "{word}"')
            found.append({key: value})
        return found


@dataclass(frozen=True, slots=True)
class Command:
    """One command: what it does, the least of its words, its long options and its short ones, as getopt's.

    ``earlier``, ``earlier_short``: options that went with static FEC configuration, in June 2026.
    """

    act: Callable[[Session, Given], str]
    least: int = 0
    options: tuple[str, ...] = ()
    short: str = ""
    earlier: tuple[str, ...] = ()
    earlier_short: str = ""


class Session:
    """What a command has while it runs.

    ``release``: that it is of; ``terminal``: how many characters lists are wrapped for, None: they are not.
    ``broken_lists``: its table library is too old for the command's own lists (trap 3 of section 2.7).
    """

    def __init__(
        self,
        run: Invocation,
        client: Client,
        release: str,
        terminal: int | None,
        *,
        broken_lists: bool = False,
    ) -> None:
        self.run = run
        self.ask = client.ask
        self.upload = client.upload
        self.python2 = release == _PYTHON2
        self._terminal = terminal
        self._broken_lists = broken_lists

    def text(self, value: Any) -> str:
        """Return a value as the release's Python shows it."""
        return text_of(value, python2=self.python2)

    def table(self, labels: Sequence[str], rows: Sequence[Sequence[Any]], fields: Sequence[str] = ()) -> str:
        """Return a list with a column for each of ``labels``. ``fields``: the names behind them.

        :raises CommandError: the library for tables is too old.
        """
        if rows and self._broken_lists:
            raise CommandError("_stringify_row() takes 3 positional arguments but 4 were given")
        cells = [[self.text(cell) for cell in row] for row in rows]
        return listing(labels, fields or labels, cells, self._terminal)

    def properties(self, pairs: Iterable[tuple[str, Any]]) -> str:
        """Return a table of properties and values."""
        return properties((name, self.text(value)) for name, value in pairs)

    def several(self, found: Sequence[Mapping[str, Any]], fields: Sequence[str], given: Given) -> str:
        """Return objects with ``fields``, or those of ``--column``, in the form of ``--format``.

        :raises CommandError: they have no such field, which only a table passes over.
        """
        names = given.options.get("--column") or fields
        form = self._form(given)
        if form == "table":
            return self.table(names, [[entry.get(name, "") for name in names] for entry in found])
        for entry in found:
            for name in names:
                if name not in entry:
                    raise CommandError(name)
        picked = [{name: entry[name] for name in names} for entry in found]
        return _yaml(picked) if form == "yaml" else "".join(map(_values, picked))

    def one(self, entry: Mapping[str, Any], fields: Sequence[str], given: Given | None = None) -> str:
        """Return one object in the form of ``--format``; what it does not have is empty."""
        columns = given.options.get("--column") if given else None
        picked = {name: entry.get(name, "") for name in columns or fields}
        form = self._form(given) if given else "table"
        if form == "table":
            return self.properties(sorted(picked.items()))
        return _yaml(picked) if form == "yaml" else _values(picked)

    @staticmethod
    def _form(given: Given) -> str:
        return given.last("--format") or "table"


def _values(entry: Mapping[str, Any]) -> str:
    return " ".join(map(str, entry.values())) + "\n"


def _yaml(shown: Any) -> str:
    """Return YAML as PyYAML's ``safe_dump`` writes it, sorted by key, with the end of line of a ``print``."""
    from ruamel.yaml import YAML  # most runs print tables

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    out = io.StringIO()
    yaml.dump(shown, out)
    return out.getvalue() + "\n"

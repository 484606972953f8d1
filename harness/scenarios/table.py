"""Tables of cells: {state of the card} x {image} -> what documents promise, as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import ConfigurationError
from harness.judgement.records import Promise
from harness.yaml_text import load_plain


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a flash table: ``image`` on a card in ``state``."""

    state: str
    image: str
    given: dict[str, Any]
    promise: Promise

    @property
    def id(self) -> str:
        """Readable node id, such as ``root-A--unsigned``."""
        return f"{self.state}--{self.image}"


def load_cells(path: Path) -> list[Cell]:
    """Read a flash table.

    The file has ``source`` (the documents), ``states`` (name -> state as in
    :meth:`harness.scenarios.given.Given.parse`) and ``cells`` (image -> one word per state: ``lands``,
    ``not-sent``, an authentication code such as ``0x11`` (several allowed ones as ``0x0C/0x14``), or
    ``-`` for no cell).

    :raises ConfigurationError: the file does not say that.
    """
    try:
        data = load_plain(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Cannot read the flash table {path}: {error}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"Cannot read the flash table {path}: {error.message}") from error
    try:
        return list(_cells(data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} is not a flash table: {error}",
            hint="It needs source, states and cells, with one word per state for every image.",
        ) from error


def _cells(data: dict[str, Any]) -> Iterator[Cell]:
    states: dict[str, dict[str, Any]] = data["states"]
    for image, words in data["cells"].items():
        row = words.split()
        if len(row) != len(states):
            raise ValueError(f"the row {image!r} has {len(row)} words for {len(states)} states")
        for (state, given), word in zip(states.items(), row, strict=True):
            if word == "-":
                continue
            yield Cell(state, image, given, _promise(word, data["source"]))


def _promise(word: str, source: str) -> Promise:
    if word == "lands":
        return Promise("lands", source=source)
    if word == "not-sent":
        return Promise("unchanged", source=source)
    codes = tuple(word.split("/"))
    if not all(code.startswith("0x") and len(code) == 4 for code in codes):
        raise ValueError(f"{word!r} is neither lands, not-sent nor an authentication code such as 0x11")
    return Promise("unchanged", codes=codes, source=source)

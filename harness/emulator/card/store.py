"""The card's flash on disk: whatever instant a process dies at, what it leaves loads again.

A page is a file named by its SHA-256; the state file refers to pages by name and is replaced in one step
after they are on disk. So a reader finds either the old state or the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from harness.emulator.card.flash import CardState
from harness.errors import ConfigurationError, InfrastructureError

_PAGES: Final = tuple(f.name for f in fields(CardState) if f.name.endswith("_page"))
_FORMAT: Final = 1


class CardStore:
    """Keeps one card's :class:`CardState` in ``directory``, which is made where it is missing.

    :raises InfrastructureError: on any method, when the disk does not take or give the state.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / "card.json"
        self._written: dict[str, bytes] = {}
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._error("made", error) from error

    def save(self, state: CardState) -> None:
        """Make ``state`` what :meth:`load` returns, now and after a crash."""
        try:
            self._save(state)
        except OSError as error:
            raise self._error("written", error) from error

    def load(self) -> CardState | None:
        """Return the state saved last; None where none ever was."""
        try:
            values: dict[str, Any] = json.loads(self._file.read_text())
            if not isinstance(values, dict) or values.pop("format", None) != _FORMAT:
                raise ValueError(f"its format is not {_FORMAT}")
            pages: dict[str, Any] = {
                name: self._read_page(digest) if (digest := values.pop(name)) else None for name in _PAGES
            }
            return replace(CardState.from_json(values), **pages)
        except FileNotFoundError:
            if self._file.exists():
                raise self._error("read", "a page is missing") from None
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError, ConfigurationError) as error:
            raise self._error("read", error) from error

    def _save(self, state: CardState) -> None:
        pages: dict[str, bytes | None] = {name: getattr(state, name) for name in _PAGES}
        names = {name: self._write_page(page) for name, page in pages.items() if page is not None}
        values = state.to_json(pages=False) | dict.fromkeys(_PAGES) | names | {"format": _FORMAT}
        self._replace(self._file, json.dumps(values).encode())
        self._sweep(set(names.values()))

    def _sweep(self, used: set[str]) -> None:
        """Remove pages of states gone by, and what a process that died had begun to write."""
        for digest in self._written.keys() - used:
            del self._written[digest]
        for path in (*self._directory.glob("*.page"), *self._directory.glob("*.new")):
            if path.stem not in used or path.suffix == ".new":
                path.unlink(missing_ok=True)

    def _write_page(self, page: bytes) -> str:
        for digest, known in self._written.items():
            if known is page:
                return digest
        digest = hashlib.sha256(page).hexdigest()
        if digest not in self._written:
            self._replace(self._page_file(digest), page)
            self._written[digest] = page
        return digest

    def _read_page(self, digest: str) -> bytes:
        page = self._page_file(digest).read_bytes()
        if hashlib.sha256(page).hexdigest() != digest:
            raise ValueError(f"page {digest[:12]} is not what was written")
        self._written[digest] = page
        return page

    def _page_file(self, digest: str) -> Path:
        return self._directory / f"{digest}.page"

    def _replace(self, path: Path, content: bytes) -> None:
        new = path.with_suffix(".new")
        try:
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)  # a disk that is full needs the room
            raise
        handle = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _error(self, what: str, cause: object) -> InfrastructureError:
        return InfrastructureError(
            f"The emulated card's state in {self._directory} could not be {what}: {cause}.",
            hint="Free the disk, or remove the directory to begin with a new card.",
        )

"""Which cards are quarantined, and whose turn it is on a real host that several workers share."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = ".hosts"


class Devices:
    """What the processes of one run know of each other's devices.

    Workers of an emulated lab have a lab each. Those of a real one have the same hosts: they take turns,
    since a power cut or a rescan of the bus concerns every card of a host, and share the quarantine.

    :param run_dir: of the run; the same for all of its processes.
    :param shared: whether there may be other processes at all.
    """

    def __init__(self, run_dir: Path, *, shared: bool) -> None:
        self._folder = run_dir / _FOLDER
        self._shared = shared
        self._quarantined: dict[str, str] = {}

    @contextmanager
    def turn(self, host: str, *, real: bool) -> Iterator[None]:
        """Have ``host`` for ourselves; waits until no other worker of this run has it."""
        if not (self._shared and real):
            yield
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / host).open("a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def quarantine(self, card: str, why: str, *, real: bool) -> None:
        """Keep all that follows in this run from ``card``; the first reason stays."""
        self._quarantined.setdefault(card, why)
        if self._shared and real:
            with suppress(OSError):  # a full disk: the other workers find out for themselves
                self._folder.mkdir(parents=True, exist_ok=True)
                self._note(card).write_text(why, encoding="utf-8")

    def quarantined(self, card: str) -> str:
        """Return why ``card`` is quarantined; empty where it is not."""
        if self._shared and card not in self._quarantined:
            with suppress(OSError):
                self._quarantined[card] = self._note(card).read_text(encoding="utf-8")
        return self._quarantined.get(card, "")

    def forget(self) -> None:
        """Remove what the processes of the run told each other, at its end."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _note(self, card: str) -> Path:
        return self._folder / f"{card.replace('/', '+')}.quarantined"

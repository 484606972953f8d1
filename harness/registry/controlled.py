"""What every registry under control has in common, however it is kept: a name, its restarts, its end."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import Self

from harness.errors import InfrastructureError
from harness.registry.service import Around, Collection, Instance, Restart


class Controlled(ABC):
    """Base of the registries that follow :class:`harness.registry.service.RegistryService`.

    :param name: what it is called in messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._restarts: list[Restart] = []
        # A fault comes from a proxy's thread while the scenario's own looks on.
        self._control = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """What it is called in messages and reports."""
        return self._name

    @property
    def restarts(self) -> tuple[Restart, ...]:
        """Every restart so far, in order."""
        return tuple(self._restarts)

    @property
    @abstractmethod
    def instance(self) -> Instance | None:
        """The process that runs now; None where none does."""

    def _running(self) -> Instance:
        """Return the process that runs now. It may end at any moment: asked twice, the answers may differ.

        :raises InfrastructureError: none does.
        """
        running = self.instance
        if running is None:
            raise InfrastructureError(f"The {self._name} does not run.", hint=self._last_words())
        return running

    def _last_words(self) -> str:
        """Return what may tell why it does not run."""
        return ""

    @abstractmethod
    def restart(self) -> Restart:
        """Restart it, as it is, and return when it answers."""

    @abstractmethod
    def read_only(self, on: bool) -> Restart:
        """Restart it so that it takes no writes, or takes them again."""

    def garbage_collect(
        self,
        *,
        around: Around = "read-only",
        delete_untagged: bool = False,
        dry_run: bool = False,
        deadline: float = 600.0,
    ) -> Collection:
        """Run the registry's own garbage collection on its store; a second process does it."""
        options = [*(["--delete-untagged"] if delete_untagged else []), *(["--dry-run"] if dry_run else [])]
        with self._control:
            restarts = [self.read_only(True)] if around == "read-only" else []
            began = time.monotonic()
            try:
                code, text = self._collected(options, deadline)
                seconds = time.monotonic() - began
            finally:
                if around == "read-only":
                    restarts.append(self.read_only(False))
            if around == "restart":
                restarts.append(self.restart())
            return Collection(code, text, seconds, tuple(restarts))

    @abstractmethod
    def _collected(self, options: list[str], deadline: float) -> tuple[int, str]:
        """Run ``garbage-collect`` with ``options``; return its exit code and what it said."""

    @abstractmethod
    def close(self) -> None:
        """End what this object started and undo what it changed; may be called twice."""

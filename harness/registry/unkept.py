"""A registry that nobody lets us control: it answers at its endpoint, and everything else is blocked."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from harness.errors import BlockedError
from harness.registry.logs import LogEntry
from harness.registry.service import Around, Collection, How, Instance, Restart
from harness.registry.wire import Endpoint, Wire


class UnkeptRegistry:
    """A registry under :class:`harness.registry.service.RegistryService` that can only be looked at.

    What else is asked of it raises :class:`harness.errors.BlockedError` with what the inventory lacks.
    """

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.endpoint = endpoint
        self.restarts: tuple[Restart, ...] = ()

    def _blocked(self, what: str) -> NoReturn:
        raise BlockedError(
            f"The registry {self.name} cannot be {what}: nothing says how it is kept.",
            hint="Give it `host` and `service` in the inventory, such as {systemd: docker-registry.service}.",
        )

    @property
    def storage(self) -> str:
        """Not known. :raises BlockedError: always."""
        self._blocked("looked into")

    @property
    def instance(self) -> Instance | None:
        """Not known. :raises BlockedError: always."""
        self._blocked("told from its next process")

    def start(self, *, deadline: float = 20.0) -> Instance:
        """Blocked."""
        self._blocked("started")

    def wait_ready(self, *, deadline: float = 20.0) -> None:
        """Return when it answers. :raises InfrastructureError: it does not."""
        with Wire(self.endpoint) as wire, wire.get("/v2/", deadline=deadline):
            return

    def stop(self, *, deadline: float = 10.0) -> None:
        """Blocked."""
        self._blocked("stopped")

    def kill(self) -> None:
        """Blocked."""
        self._blocked("killed")

    def restart(
        self,
        how: How = "TERM",
        *,
        held: str = "",
        between: Callable[[], None] | None = None,
        deadline: float = 20.0,
    ) -> Restart:
        """Blocked."""
        self._blocked("restarted")

    def pause(self) -> None:
        """Blocked."""
        self._blocked("paused")

    def resume(self) -> None:
        """Nothing: it was never paused."""

    def read_only(self, on: bool, *, deadline: float = 20.0) -> Restart:
        """Blocked."""
        self._blocked("made read-only")

    def garbage_collect(
        self,
        *,
        around: Around = "read-only",
        delete_untagged: bool = False,
        dry_run: bool = False,
        deadline: float = 120.0,
    ) -> Collection:
        """Blocked."""
        self._blocked("collected")

    def log_mark(self) -> str:
        """Return an empty mark: its log is not seen."""
        return ""

    def logs(self, since: str = "") -> list[LogEntry]:
        """Return nothing: its log is not seen."""
        return []

    def close(self) -> None:
        """Nothing: it is not ours."""

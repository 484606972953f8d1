"""The one protocol by which a registry is started, stopped, disturbed and read, wherever it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from harness.registry.logs import LogEntry
from harness.registry.wire import Endpoint

#: TERM and KILL are the same to a registry without a drain timeout (fact sheet, section 2).
How = Literal["TERM", "KILL"]
#: What is done around a garbage collection: nothing (the registry goes on with its caches), a restart
#: after it, or StarlingX's way: read-only, collect, normal again; a restart each.
Around = Literal["nothing", "restart", "read-only"]


@dataclass(frozen=True, slots=True)
class Instance:
    """One run of a registry. ``number`` counts them from 1; ``started``: seconds since the epoch."""

    pid: int
    number: int
    started: float
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """One instance gave way to another.

    ``how``: the signal that ended the first; for a service manager its own word. ``held``: the request
    that a proxy held meanwhile, in words; empty where none was. ``seconds``: from the signal until the
    second was ready.
    """

    before: Instance
    after: Instance
    how: str
    held: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Collection:
    """One garbage collection: how it ended, what it said, and the restarts around it.

    A non-zero ``exit_code`` is a finding, not an error: a dry run is a cheap check of all manifests.
    """

    exit_code: int
    text: str
    seconds: float
    restarts: tuple[Restart, ...] = ()


class RegistryService(Protocol):
    """A registry under control. Every call has a deadline in seconds.

    They raise :class:`harness.errors.DeadlineError` past it and
    :class:`harness.errors.InfrastructureError` where the registry does not do what was asked.
    """

    @property
    def name(self) -> str:
        """What it is called in messages and reports."""
        ...

    @property
    def endpoint(self) -> Endpoint:
        """Where it answers."""
        ...

    @property
    def storage(self) -> str:
        """The folder of its store, on the machine where it runs."""
        ...

    @property
    def instance(self) -> Instance | None:
        """The process that runs now; None where none does."""
        ...

    @property
    def restarts(self) -> tuple[Restart, ...]:
        """Every restart so far, in order."""
        ...

    def start(self, *, deadline: float = 20.0) -> Instance:
        """Start it and return when it answers."""
        ...

    def wait_ready(self, *, deadline: float = 20.0) -> None:
        """Return when it answers, and it is the process that we started."""
        ...

    def stop(self, *, deadline: float = 10.0) -> None:
        """End it with a TERM and return when it has ended; nothing where it does not run."""
        ...

    def kill(self) -> None:
        """End it with a KILL and return when it has ended; nothing where it does not run."""
        ...

    def restart(
        self,
        how: How = "TERM",
        *,
        held: str = "",
        between: Callable[[], None] | None = None,
        deadline: float = 20.0,
    ) -> Restart:
        """End it, call ``between`` (such as a change of keys), start it and return when it answers."""
        ...

    def pause(self) -> None:
        """Stop its process where it stands (SIGSTOP): connections stay open and nothing is answered."""
        ...

    def resume(self) -> None:
        """Let a paused process go on; nothing where it is not paused."""
        ...

    def read_only(self, on: bool, *, deadline: float = 20.0) -> Restart:
        """Restart it so that it takes no writes, or takes them again."""
        ...

    def garbage_collect(
        self,
        *,
        around: Around = "read-only",
        delete_untagged: bool = False,
        dry_run: bool = False,
        deadline: float = 120.0,
    ) -> Collection:
        """Run the registry's own garbage collection on its store."""
        ...

    def log_mark(self) -> str:
        """Return where its log ends now, for :meth:`logs`."""
        ...

    def logs(self, since: str = "") -> list[LogEntry]:
        """Return what it has logged since a mark; all of it without one."""
        ...

    def close(self) -> None:
        """End what this object started and undo what it changed; may be called twice."""
        ...

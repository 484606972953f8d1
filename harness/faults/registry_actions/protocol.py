"""What an action on a registry is, and what it needs of a bench and of a request that a proxy holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness.errors import BlockedError, ConfigurationError

if TYPE_CHECKING:
    from harness.faults.registry_points import Step
    from harness.registry.assembled import RegistryLab
    from harness.registry.service import RegistryService, Restart
    from harness.registry.token_service import TokenService


class Held(Protocol):
    """A request that is held; its text says which one."""

    @property
    def target(self) -> str:
        """Path and query that it is for."""
        ...

    @property
    def repository(self) -> str:
        """The repository that it is for; empty where it is for none."""
        ...


class Gate(Protocol):
    """What a proxy holds a request at, and how that goes on; the first decision counts."""

    @property
    def held(self) -> Held | None:
        """The request; None where none came yet."""
        ...

    def release(self) -> None:
        """Let it go on."""
        ...

    def reset(self) -> None:
        """Reset the client's connection."""
        ...

    def cut(self) -> None:
        """Close the client's connection without the rest."""
        ...

    def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Answer the client in the registry's place."""
        ...

    def delay(self, seconds: float) -> None:
        """Let it go on after this many seconds."""
        ...


class Bench(Protocol):
    """A registry under control; with its lab where it is one of our own."""

    @property
    def registry(self) -> RegistryService:
        """The registry itself; what it cannot be asked for raises BlockedError."""
        ...

    @property
    def lab(self) -> RegistryLab:
        """Registry, token service, keys and authority. :raises BlockedError: they are not ours."""
        ...


class RegistryAction(Protocol):
    """One disturbance of one registry. An object serves one trial: prepare, fire, undo."""

    #: Whether the registry's store must be a :class:`harness.faults.own_store.OwnStore`.
    needs_own_store: bool
    #: Whether it is done to a request that is held, and so only at a point.
    needs_request: bool
    #: The step before which alone it makes sense; None: anywhere.
    strikes_in: Step | None
    #: Whether only the next push of the same image shows what it did.
    pushed_again: bool

    @property
    def name(self) -> str:
        """What it is asked for by."""
        ...

    @property
    def about(self) -> str:
        """What it does, in one line."""
        ...

    def check(self, bench: Bench) -> None:
        """Return if it can be done on ``bench``; nothing is touched.

        :raises BlockedError: the bench or this machine lacks something; it says what.
        :raises ConfigurationError: it makes no sense there.
        """
        ...

    def prepare(self, bench: Bench) -> None:
        """Put in place what must be there before the push begins; nothing for most."""
        ...

    def fire(self, bench: Bench, gate: Gate | None) -> str:
        """Disturb; return what was done, with the processes of a restart and the request held."""
        ...

    def undo(self, bench: Bench) -> None:
        """Take back what was done. May be called twice, and where ``fire`` was not called or failed."""
        ...


class Base:
    """What most actions have in common: they need nothing, prepare nothing and leave nothing."""

    needs_own_store = False
    needs_request = False
    strikes_in: Step | None = None
    pushed_again = False

    def __init__(self, name: str, about: str) -> None:
        self.name = name
        self.about = about

    def check(self, bench: Bench) -> None:
        """Return: nothing special is needed."""

    def prepare(self, bench: Bench) -> None:
        """Nothing is needed before the push."""

    def undo(self, bench: Bench) -> None:
        """Nothing lasts, so nothing is undone."""


def while_held(gate: Gate | None) -> str:
    """Return `` while REQUEST was held``; nothing where none is."""
    return f" while {gate.held} was held" if gate is not None and gate.held is not None else ""


def words_of(gate: Gate | None) -> str:
    """Return the request that is held, in words; empty where none is."""
    return str(gate.held) if gate is not None and gate.held is not None else ""


def told(done: Restart, what: str = "restarted the registry") -> str:
    """Return a restart in words: both processes, and the request that was held meanwhile."""
    held = f" while {done.held} was held" if done.held else ""
    return (
        f"{what} by {done.how}: process {done.before.pid} gave way to {done.after.pid} "
        f"after {done.seconds:.2f} s{held}"
    )


def tokens_of(bench: Bench) -> TokenService:
    """Return the token service whose tokens the registry takes.

    :raises BlockedError: it is not ours. :raises ConfigurationError: the registry asks for no tokens.
    """
    if bench.lab.registry.settings.tokens is None:
        raise ConfigurationError(
            f"The {bench.registry.name} asks for no tokens.",
            hint="Give it a token service, or another fault.",
        )
    return bench.lab.tokens


def store_of(bench: Bench) -> Path:
    """Return the folder of the registry's store on this machine.

    :raises BlockedError: it is elsewhere, or there is none.
    """
    root = Path(bench.lab.registry.storage)
    if not root.is_dir():
        raise BlockedError(
            f"The {bench.registry.name} has no store in {root} on this machine.",
            hint="Start the registry first.",
        )
    return root

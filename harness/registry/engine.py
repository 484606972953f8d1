"""What the harness needs of a Docker engine, whichever one runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from docker import DockerClient

    from harness.registry.logs import LogEntry


class Engine(Protocol):
    """A running Docker engine."""

    @property
    def name(self) -> str:
        """What it is called in messages, such as ``private engine`` or ``the machine's engine``."""
        ...

    @property
    def url(self) -> str:
        """Where it answers, such as ``unix:///run/hil/docker.sock``."""
        ...

    @property
    def version(self) -> str:
        """Its version, such as ``20.10.24``."""
        ...

    def client(self, *, timeout: float = 60.0) -> DockerClient:
        """Return a new SDK client; the caller closes it."""
        ...

    def trust(self, registry: str, ca_file: Path) -> None:
        """Have the engine check the certificate of ``registry`` (``host:port``) against ``ca_file``.

        A registry that the engine would take without a check (127.0.0.0/8) is refused: its pushes would
        hide every fault of TLS (fact sheet of the registry, section 1).

        :raises ConfigurationError: the name leads to such an address.
        :raises BlockedError: this engine's configuration is not ours to change.
        """
        ...

    def registry_host(self) -> str:
        """The host name by which the engine reaches a registry on this machine with real TLS checks."""
        ...

    def log_mark(self) -> str:
        """Return where its log ends now, for :meth:`logs`."""
        ...

    def logs(self, since: str = "") -> list[LogEntry]:
        """Return what it has logged since a mark; empty where its log cannot be read."""
        ...

    def pid_here(self, pid: int) -> int:
        """Return what a process that it names is called on this machine, for signals.

        :raises InfrastructureError: it has ended.
        """
        ...

"""The machine's own Docker engine: it is used as it is found, and nothing of it is changed."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.registry.engines.answering import AnsweringEngine, check_is_checked
from harness.registry.logs import LogEntry
from harness.registry.tls import LAB_NAMES

_SOCKET = "unix:///var/run/docker.sock"
_CERTIFICATES = Path("/etc/docker/certs.d")


class MachineEngine(AnsweringEngine):
    """The engine at ``url``; by default where DOCKER_HOST says, else the machine's socket.

    :param certificates: the folder in which it looks for the authorities of registries.
    :raises InfrastructureError: none answers there.
    """

    def __init__(self, url: str = "", *, certificates: Path = _CERTIFICATES) -> None:
        super().__init__(url or os.environ.get("DOCKER_HOST") or _SOCKET, "machine's engine")
        self._certificates = certificates
        self._info  # noqa: B018 -- asked once, so that an object is an engine that answered

    def trust(self, registry: str, ca_file: Path) -> None:
        """Return if it checks the certificate of ``registry`` (``host:port``) against ``ca_file``.

        :raises ConfigurationError: the name leads to where it checks nothing, or the file cannot be read.
        :raises BlockedError: it does not, and its configuration is not ours to change.
        """
        check_is_checked(registry)
        place = self._certificates / registry / "ca.crt"
        try:
            wanted = ca_file.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"The authority {ca_file} cannot be read: {error.strerror}.") from None
        try:
            trusted = place.read_bytes() == wanted
        except OSError:
            trusted = False
        if not trusted:
            raise BlockedError(
                f"The {self.name} does not trust the authority of {registry}.",
                hint=f"Have it trusted:  sudo install -D -m 644 {ca_file} {place}",
            )

    def registry_host(self) -> str:
        """The name by which it reaches a registry on ::1 of this machine.

        :raises BlockedError: it is another machine's engine, or no such name is known here.
        """
        if not self.url.startswith("unix:"):
            raise BlockedError(
                f"The engine at {self.url} does not reach a registry on the loopback of this machine.",
                hint="Run as root with the package docker.io, for a private engine.",
            )
        for name in LAB_NAMES:
            try:
                check_is_checked(f"{name}:443")
            except ConfigurationError:
                continue
            return name
        raise BlockedError(
            f"The {self.name} checks no certificate at 127.0.0.0/8, and no name of the lab leads elsewhere.",
            hint=f"Name ::1:  echo '::1 {LAB_NAMES[0]}' | sudo tee -a /etc/hosts",
        )

    def pid_here(self, pid: int) -> int:
        """Return what a process that it names is called on this machine: the same."""
        if not Path(f"/proc/{pid}").exists():
            raise InfrastructureError(f"The process {pid} of the {self.name} is not one of this machine.")
        return pid

    def log_mark(self) -> str:
        """Return nothing: its log is the machine's."""
        return ""

    def logs(self, since: str = "") -> list[LogEntry]:
        """Return nothing: its log is the machine's."""
        return []

    def close(self) -> None:
        """Leave it as it is."""

"""What every engine is to the harness once it answers: a URL, a version, and SDK clients."""

from __future__ import annotations

import ipaddress
import socket
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.errors import ConfigurationError, InfrastructureError

if TYPE_CHECKING:
    from docker import DockerClient

#: What an engine takes without any check of certificates (fact sheet of the registry, section 1).
_INSECURE = ipaddress.ip_network("127.0.0.0/8")


class AnsweringEngine:
    """An engine that answers at ``url``. :param name: what it is called in messages."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self._name

    @property
    def url(self) -> str:
        """Where it answers."""
        return self._url

    @property
    def version(self) -> str:
        """Its version, such as ``20.10.24``."""
        return str(self._info["ServerVersion"])

    @property
    def storage_driver(self) -> str:
        """What it keeps images with: ``overlay2``, or ``vfs`` where the file system cannot do that."""
        return str(self._info["Driver"])

    @cached_property
    def _info(self) -> dict[str, Any]:
        """What it says about itself. :raises InfrastructureError: it does not answer."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            client = self.client(timeout=10.0)
            try:
                found: dict[str, Any] = client.info()
                return found
            finally:
                client.close()
        except (DockerException, RequestException) as error:
            raise InfrastructureError(f"The {self._name} does not answer at {self._url}: {error}.") from None

    def client(self, *, timeout: float = 60.0) -> DockerClient:
        """Return a new SDK client; the caller closes it. ``timeout``: seconds of silence that it bears."""
        from docker import DockerClient

        # The SDK's stub says int; it hands the value to requests, which takes fractions.
        return DockerClient(base_url=self._url, timeout=timeout)  # type: ignore[arg-type]


def check_is_checked(registry: str, own_names: tuple[str, ...] = ()) -> None:
    """Return if an engine checks certificates at ``registry``, a ``host:port``.

    :param own_names: those that lead elsewhere for the engine than for this machine.
    :raises ConfigurationError: it does not, or the name cannot be resolved.
    """
    host = (registry.rpartition(":")[0] or registry).strip("[]")
    if host in own_names:
        return
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        raise ConfigurationError(
            f"{registry!r} is no registry: {host!r} cannot be resolved.", hint="It has the form host:port."
        ) from None
    for text in found:
        address = ipaddress.ip_address(str(text).partition("%")[0])
        if address in _INSECURE:
            raise ConfigurationError(
                f"{registry} leads to {address}, and an engine checks no certificate at {_INSECURE}: "
                "its pushes would succeed whatever the registry shows.",
                hint="Use a name that leads to another address; registry.local is ::1 to a private engine.",
            )

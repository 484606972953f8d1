"""What scenarios push to, emulated or real: clients opened once, where they push, what is true there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from harness.errors import BlockedError
from harness.registry.clients.catalogue import (
    PULL_CLIENTS,
    PUSH_CLIENTS,
    Surroundings,
    open_pull_client,
    open_push_client,
)

if TYPE_CHECKING:
    from harness.faults.proxy.server import FaultProxy
    from harness.registry.assembled import RegistryLab
    from harness.registry.clients.protocol import Destination, PullClient, PushClient
    from harness.registry.engine import Engine
    from harness.registry.service import RegistryService
    from harness.registry.truth_probe import TruthProbe


class PushBench(ABC):
    """A registry with what is around it. A context manager; what it lacks is told as BLOCKED.

    :param name: of the registry in messages. :param engine: for clients that need one.
    """

    def __init__(self, name: str, engine: Engine | None) -> None:
        self.name = name
        self.engine = engine
        self._open = ExitStack()
        self._push: dict[str, PushClient] = {}
        self._pull: dict[str, PullClient] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> None:
        """Start what is ours to start, and reach the rest.

        :raises InfrastructureError: a part does not start; the others are ended again.
        :raises BlockedError: a program is missing on this machine, and could not be got.
        """
        try:
            self._start()
            if self.engine is not None:
                self.use_engine(self.engine)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _start(self) -> None:
        """Start it; what is to be ended is left with ``self._open``."""

    @property
    @abstractmethod
    def lab(self) -> RegistryLab:
        """Registry, token service, keys and authority. :raises BlockedError: they are not ours."""

    @property
    @abstractmethod
    def proxy(self) -> FaultProxy:
        """What holds requests to the registry. :raises BlockedError: clients go past us here."""

    @property
    @abstractmethod
    def token_proxy(self) -> FaultProxy:
        """What holds requests to the token service. :raises BlockedError: clients go past us here."""

    @property
    @abstractmethod
    def registry(self) -> RegistryService:
        """The registry itself; what it cannot be asked for raises BlockedError."""

    @property
    @abstractmethod
    def probe(self) -> TruthProbe:
        """Reads the truth of images, past any proxy."""

    @property
    @abstractmethod
    def ca_file(self) -> Path | None:
        """What clients are to trust; None: what their machine trusts anyway, or plain HTTP."""

    @abstractmethod
    def destination(self, repository: str, tag: str, *, client: str) -> Destination:
        """Return where ``client`` pushes ``repository:tag`` to, or pulls it from.

        :raises ConfigurationError: the name is not a legal one.
        """

    @abstractmethod
    def _surroundings(self) -> Surroundings:
        """Return what clients may use."""

    @abstractmethod
    def _registry_for(self, engine: Engine) -> str:
        """Return host and port by which ``engine`` reaches the registry."""

    def use_engine(self, engine: Engine) -> None:
        """Let clients work through ``engine``, which is made to check the registry's certificate.

        :raises BlockedError: the engine's configuration is not ours to change.
        """
        if self.ca_file is not None:
            engine.trust(self._registry_for(engine), self.ca_file)
        self.engine = engine

    def push_client(self, name: str) -> PushClient:
        """Return the push client ``name``, opened once; raises as :func:`open_push_client`."""
        if name not in self._push:
            client = self._push[name] = open_push_client(name, self._surroundings())
            self._open.callback(client.close)
        return self._push[name]

    def pull_client(self, name: str) -> PullClient:
        """Return the pull client ``name``, opened once; raises as :func:`open_pull_client`."""
        if name not in self._pull:
            client = self._pull[name] = open_pull_client(name, self._surroundings())
            self._open.callback(client.close)
        return self._pull[name]

    def close(self) -> None:
        """End everything, last started first; may be called twice."""
        self._open.close()
        self._push.clear()
        self._pull.clear()


def needs_engine(client: str) -> bool:
    """Return whether the client of this name works through a Docker engine."""
    entry = PUSH_CLIENTS.get(client) or PULL_CLIENTS.get(client)
    return entry is not None and entry.needs_engine


def not_ours(name: str, what: str, hint: str = "") -> BlockedError:
    """Return the error for what a registry does not let us do."""
    return BlockedError(f"The registry {name} {what}.", hint=hint)

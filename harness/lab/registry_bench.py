"""A registry that clients push to through proxies that hold their requests, and the truth beside them."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import BlockedError
from harness.registry.assembled import ACCOUNT, PASSWORD, RegistryLab
from harness.registry.clients.catalogue import (
    PULL_CLIENTS,
    PUSH_CLIENTS,
    Surroundings,
    open_pull_client,
    open_push_client,
)
from harness.registry.clients.protocol import Destination
from harness.registry.reference import Reference
from harness.registry.wire import Endpoint

if TYPE_CHECKING:
    from harness.faults.proxy import FaultProxy
    from harness.registry.clients.protocol import PullClient, PushClient
    from harness.registry.configuration import RegistrySettings
    from harness.registry.engine import Engine
    from harness.registry.service import RegistryService
    from harness.registry.truth_probe import TruthProbe


class Clients:
    """The clients that were opened for one registry, each once.

    :param folder: for their archives. :param store: the registry's store, where this machine sees it.
    """

    def __init__(self, folder: Path, store: Path | None) -> None:
        self._folder = folder
        self._store = store
        self._push: dict[str, PushClient] = {}
        self._pull: dict[str, PullClient] = {}

    def push(self, name: str, engine: Engine | None) -> PushClient:
        """Return the push client ``name``; raises as :func:`open_push_client`."""
        if name not in self._push:
            self._push[name] = open_push_client(name, self._surroundings(engine))
        return self._push[name]

    def pull(self, name: str, engine: Engine | None) -> PullClient:
        """Return the pull client ``name``; raises as :func:`open_pull_client`."""
        if name not in self._pull:
            self._pull[name] = open_pull_client(name, self._surroundings(engine))
        return self._pull[name]

    def _surroundings(self, engine: Engine | None) -> Surroundings:
        self._folder.mkdir(parents=True, exist_ok=True)
        return Surroundings(self._folder, engine, self._store)

    def close(self) -> None:
        """Close all; may be called twice."""
        opened: list[PushClient | PullClient] = [*self._push.values(), *self._pull.values()]
        for client in opened:
            client.close()
        self._push.clear()
        self._pull.clear()


def needs_engine(client: str) -> bool:
    """Return whether the client of this name works through a Docker engine."""
    entry = PUSH_CLIENTS.get(client) or PULL_CLIENTS.get(client)
    return entry is not None and entry.needs_engine


class RegistryBench:
    """A registry, its token service and its authority, with a proxy before each of the two services.

    Clients are told of the proxies alone: every request of theirs can be held. :attr:`probe` asks the
    registry itself.

    :param folder: where everything is kept; a temporary one that goes with it where none is given.
    :param engine: for clients that need one; see :meth:`use_engine`.
    :param settings: of the registry. :param tls: without it nothing is encrypted.
    :param guarded: whether the registry asks for tokens.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        engine: Engine | None = None,
        settings: RegistrySettings | None = None,
        tls: bool = True,
        guarded: bool = True,
        name: str = "registry.local",
    ) -> None:
        self.name = name
        self.engine = engine
        self._tls = tls
        self._open = ExitStack()
        self.lab = RegistryLab(folder, settings, tls=tls, guarded=guarded)
        self.proxy: FaultProxy
        self.token_proxy: FaultProxy

    def __enter__(self) -> RegistryBench:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> None:
        """Start all of it: the registry names the token service's proxy to its clients.

        :raises InfrastructureError: a part does not start; the others are ended again.
        :raises BlockedError: there is no registry on this machine, and none could be got.
        """
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        self._open.callback(self.lab.close)
        self.lab.tokens.start()
        self.token_proxy = self._proxied(self._token_endpoint, "token service")
        self.lab.start(realm=f"{self._scheme}://localhost:{self.token_proxy.port}/token/")
        self.proxy = self._proxied(self.lab.endpoint, "registry")
        self._open.callback(self._clients.close)
        if self.engine is not None:
            self.use_engine(self.engine)

    def _proxied(self, upstream: Endpoint, name: str) -> FaultProxy:
        from harness.faults.proxy import FaultProxy

        identity = self.lab.authority.issue(f"proxy-{name.replace(' ', '-')}") if self._tls else None
        proxy = FaultProxy(upstream, tls=identity, name=name)
        self._open.callback(proxy.close)
        proxy.start()
        return proxy

    @property
    def _scheme(self) -> str:
        return "https" if self._tls else "http"

    @property
    def _token_endpoint(self) -> Endpoint:
        return Endpoint(self.lab.tokens.realm.removesuffix("/token/"), self.ca_file)

    @property
    def ca_file(self) -> Path | None:
        """What clients are to trust; None where nothing is encrypted."""
        return self.lab.authority.file if self._tls else None

    @property
    def registry(self) -> RegistryService:
        """The registry itself, to be restarted, paused, collected."""
        return self.lab.registry

    @property
    def probe(self) -> TruthProbe:
        """Reads the truth of images past the proxy, whatever state tokens are in."""
        return self.lab.probe

    @cached_property
    def _clients(self) -> Clients:
        return Clients(self.lab.folder / "clients", Path(self.lab.registry.storage))

    def use_engine(self, engine: Engine) -> None:
        """Let clients work through ``engine``, which is made to check the registry's certificate.

        :raises BlockedError: without TLS, or where the engine's configuration is not ours to change.
        """
        if self.ca_file is None:
            raise BlockedError(
                f"The registry {self.name} is plain HTTP, which {engine.name} pushes to from nowhere but "
                "an address that it does not check.",
                hint="Give the registry TLS, or push by a client without an engine, such as skopeo.",
            )
        engine.trust(f"{engine.registry_host()}:{self.proxy.port}", self.ca_file)
        self.engine = engine

    def destination(self, repository: str, tag: str, *, client: str) -> Destination:
        """Return where ``client`` pushes ``repository:tag`` to, or pulls it from: the registry's proxy.

        :raises ConfigurationError: the name is not a legal one.
        """
        engine = self.engine if needs_engine(client) else None
        host = engine.registry_host() if engine is not None else "localhost"
        return Destination(
            Reference(f"{host}:{self.proxy.port}", repository, tag),
            ca_file=self.ca_file,
            user=ACCOUNT,
            password=PASSWORD,
            plain=not self._tls,
        )

    def push_client(self, name: str) -> PushClient:
        """Return the push client ``name``, opened once; raises as :func:`open_push_client`."""
        return self._clients.push(name, self.engine)

    def pull_client(self, name: str) -> PullClient:
        """Return the pull client ``name``, opened once; raises as :func:`open_pull_client`."""
        return self._clients.pull(name, self.engine)

    def close(self) -> None:
        """End everything, last started first; may be called twice."""
        self._open.close()

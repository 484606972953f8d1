"""A registry that clients push to through proxies that hold their requests, and the truth beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import BlockedError
from harness.lab.push_bench import PushBench, needs_engine, not_ours
from harness.registry.assembled import ACCOUNT, PASSWORD, RegistryLab
from harness.registry.clients.catalogue import Surroundings
from harness.registry.clients.protocol import Destination
from harness.registry.configuration import RegistrySettings
from harness.registry.reference import Reference
from harness.registry.wire import Endpoint

if TYPE_CHECKING:
    from harness.faults.own_store import OwnStore
    from harness.faults.proxy.server import FaultProxy
    from harness.registry.assembled import RegistryMaker
    from harness.registry.engine import Engine
    from harness.registry.service import RegistryService
    from harness.registry.truth_probe import TruthProbe


class RegistryBench(PushBench):
    """A registry, its token service and its authority, with a proxy before each of the two services.

    Clients are told of the proxies alone: every request of theirs can be held. :attr:`probe` asks the
    registry itself.

    :param folder: where everything is kept; a temporary one that goes with it where none is given.
    :param engine: for clients that need one; see :meth:`use_engine`.
    :param settings: of the registry. :param tls: without it nothing is encrypted.
    :param guarded: whether the registry asks for tokens. :param program: the registry's program.
    :param make: makes the registry, in place of a process of it.
    :param own_store: where its store is; it goes with the bench.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        engine: Engine | None = None,
        settings: RegistrySettings | None = None,
        tls: bool = True,
        guarded: bool = True,
        program: Path | None = None,
        make: RegistryMaker | None = None,
        name: str = "registry.local",
        own_store: OwnStore | None = None,
    ) -> None:
        super().__init__(name, engine)
        self._tls = tls
        if own_store is not None:
            self._open.callback(own_store.close)
            settings = replace(settings or RegistrySettings(), storage=own_store.folder)
        self._lab = RegistryLab(folder, settings, tls=tls, guarded=guarded, program=program, make=make)
        self._proxies: dict[str, FaultProxy] = {}

    def _start(self) -> None:
        self._open.callback(self.lab.close)
        self.lab.tokens.start()
        services = Endpoint(self.lab.tokens.realm.removesuffix("/token/"), self.ca_file)
        port = self._before(services, "token service").port
        self.lab.start(realm=f"{'https' if self._tls else 'http'}://localhost:{port}/token/")
        self._before(self.lab.endpoint, "registry")

    def _before(self, upstream: Endpoint, name: str) -> FaultProxy:
        """Start a proxy before ``upstream``."""
        from harness.faults.proxy.server import FaultProxy

        identity = self.lab.authority.issue(f"proxy-{name.replace(' ', '-')}") if self._tls else None
        proxy = self._proxies[name] = FaultProxy(upstream, tls=identity, name=name)
        self._open.callback(proxy.close)
        proxy.start()
        return proxy

    @property
    def lab(self) -> RegistryLab:
        """Registry, token service, keys and authority."""
        return self._lab

    @property
    def proxy(self) -> FaultProxy:
        """What holds requests to the registry. :raises BlockedError: it was not started."""
        return self._proxy("registry")

    @property
    def token_proxy(self) -> FaultProxy:
        """What holds requests to the token service. :raises BlockedError: it was not started."""
        return self._proxy("token service")

    def _proxy(self, name: str) -> FaultProxy:
        if name not in self._proxies:
            raise not_ours(self.name, "is not started")
        return self._proxies[name]

    @property
    def registry(self) -> RegistryService:
        """The registry itself, to be restarted, paused, collected."""
        return self.lab.registry

    @property
    def probe(self) -> TruthProbe:
        """Reads the truth of images past the proxy, whatever state tokens are in."""
        return self.lab.probe

    @property
    def ca_file(self) -> Path | None:
        """What clients are to trust; None where nothing is encrypted."""
        return self.lab.authority.file if self._tls else None

    def use_engine(self, engine: Engine) -> None:
        """Let clients work through ``engine``, which is made to check the registry's certificate.

        :raises BlockedError: without TLS, or where the engine's configuration is not ours to change.
        """
        if self.ca_file is None:
            raise BlockedError(
                f"The registry {self.name} is plain HTTP, which the {engine.name} takes from no address "
                "but one whose certificate it would not check either.",
                hint="Give the registry TLS, or push by a client without an engine, such as skopeo.",
            )
        super().use_engine(engine)

    def destination(self, repository: str, tag: str, *, client: str) -> Destination:
        """Return where ``client`` pushes ``repository:tag`` to, or pulls it from: the registry's proxy.

        :raises ConfigurationError: the name is not a legal one.
        """
        engine = self.engine if needs_engine(client) else None
        registry = self._registry_for(engine) if engine else f"localhost:{self.proxy.port}"
        return Destination(
            Reference(registry, repository, tag),
            ca_file=self.ca_file,
            user=ACCOUNT,
            password=PASSWORD,
            plain=not self._tls,
        )

    def _registry_for(self, engine: Engine) -> str:
        return f"{engine.registry_host()}:{self.proxy.port}"

    def _surroundings(self) -> Surroundings:
        folder = self.lab.folder / "clients"
        folder.mkdir(parents=True, exist_ok=True)
        return Surroundings(folder, self.engine, Path(self.lab.registry.storage))

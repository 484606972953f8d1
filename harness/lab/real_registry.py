"""A registry of a real lab: where clients push to, who keeps it, how far its truth can be read."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harness.errors import ConfigurationError, NotOfferedError
from harness.lab.push_bench import PushBench, not_ours
from harness.registry.clients.catalogue import Surroundings
from harness.registry.clients.protocol import Destination
from harness.registry.folder import TemporaryFolder
from harness.registry.host_service import HostRegistry
from harness.registry.managers import Hands, Manager, StarlingX, Systemd
from harness.registry.reference import Reference
from harness.registry.store import HostStore
from harness.registry.tls import LabAuthority
from harness.registry.truth_probe import TruthProbe
from harness.registry.unkept import UnkeptRegistry
from harness.registry.wire import Endpoint, Login

if TYPE_CHECKING:
    from harness.faults.proxy.server import FaultProxy
    from harness.hosts.protocol import Host
    from harness.inventory.registries import Keeper, Registry
    from harness.registry.assembled import RegistryLab
    from harness.registry.engine import Engine
    from harness.registry.service import RegistryService


def manager_of(hands: Hands, keeper: Keeper) -> Manager:
    """Return what keeps a registry running on its host, as the inventory says."""
    if keeper.systemd:
        return Systemd(hands, keeper.systemd, config=keeper.config)
    return StarlingX(hands, str(keeper.starlingx))


class RealRegistryBench(PushBench):
    """A registry that is there already; nothing of it is started or ended but our own proxy.

    :param entry: of the inventory. :param host: the driver of the host that it runs on; None where the
        inventory names none. :param folder: for what clients need.
    """

    def __init__(
        self,
        entry: Registry,
        host: Host | None = None,
        folder: Path | None = None,
        *,
        engine: Engine | None = None,
    ) -> None:
        """:raises ConfigurationError: the secret that the entry refers to is not to be had."""
        super().__init__(entry.name, engine)
        self._entry = entry
        self._host = host
        self._folder = folder
        self._endpoint = Endpoint(str(entry.url).rstrip("/"), entry.ca_file)
        self._password = self._resolved()
        self._proxy: FaultProxy | None = None
        self._trusted = entry.ca_file
        self._registry = self._controlled(entry.service, host)

    def _resolved(self) -> str:
        if self._entry.credentials is None:
            return ""
        from harness.inventory.credentials import resolve

        return resolve(self._entry.credentials).password or ""

    def _controlled(self, keeper: Keeper | None, host: Host | None) -> RegistryService:
        if keeper is None or host is None:
            return UnkeptRegistry(self.name, self._endpoint)
        hands = Hands(host, ("sudo", "-n") if keeper.sudo else ())
        manager = manager_of(hands, keeper)
        return HostRegistry(hands, manager, self._endpoint, self._entry.storage or "", name=self.name)

    def _start(self) -> None:
        if self._folder is None:
            temporary = TemporaryFolder("hil-registry-")
            self._open.callback(temporary.close)
            self._folder = temporary.path
        self._open.callback(self._registry.close)
        if self._entry.proxy is not None:
            self._start_proxy(self._entry.proxy)

    def _start_proxy(self, url: str) -> None:
        """Start our proxy where ``url`` leads to. :raises ConfigurationError: that is not this machine."""
        from harness.faults.proxy.server import FaultProxy

        parts = urlsplit(url)
        name, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
        try:
            found = {str(each[4][0]) for each in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)}
        except socket.gaierror as error:
            raise ConfigurationError(
                f"The proxy of the registry {self.name} is to be reached as {name}, which cannot be "
                f"resolved: {error.strerror}.",
                hint="Let the name lead to this machine, such as in /etc/hosts.",
            ) from None
        identity = None
        if parts.scheme == "https":
            authority = LabAuthority(self._kept / "tls")
            identity = authority.issue("proxy", names=(name,), addresses=tuple(sorted(found)))
            self._trusted = self._with_others(authority.file)
        self._proxy = FaultProxy(
            self._endpoint, tls=identity, addresses=tuple(sorted(found)), port=port, name=self.name
        )
        self._open.callback(self._proxy.close)
        self._proxy.start()

    def _with_others(self, authority: Path) -> Path:
        """Return a file with our proxy's authority and the registry's, whose token service is asked."""
        others = self._entry.ca_file or ssl.get_default_verify_paths().cafile
        try:
            whole = authority.read_bytes() + (Path(others).read_bytes() if others else b"")
        except OSError as error:
            raise ConfigurationError(f"The authority {others} cannot be read: {error.strerror}.") from None
        file = self._kept / "tls" / "trusted.crt"
        file.write_bytes(whole)
        return file

    @property
    def _kept(self) -> Path:
        if self._folder is None:
            raise not_ours(self.name, "is not started")
        return self._folder

    @property
    def lab(self) -> RegistryLab:
        """Not ours. :raises NotOfferedError: always."""
        raise NotOfferedError(
            f"The registry {self.name} is a real one: its keys, certificates and token service are not the "
            "harness's to change."
        )

    @property
    def proxy(self) -> FaultProxy:
        """What holds requests, where the inventory gives its place. :raises BlockedError: it does not."""
        if self._proxy is None:
            raise not_ours(
                self.name,
                "is pushed to directly, so that no request can be held",
                hint="Let its name lead to this machine, and give the URL as `proxy` in the inventory.",
            )
        return self._proxy

    @property
    def token_proxy(self) -> FaultProxy:
        """Not there: a real registry names its own token service. :raises NotOfferedError: always."""
        raise NotOfferedError(
            f"The registry {self.name} is a real one: clients ask its token service themselves."
        )

    @property
    def registry(self) -> RegistryService:
        """The registry; without a keeper in the inventory it can only be looked at."""
        return self._registry

    @property
    def probe(self) -> TruthProbe:
        """Reads the truth by the API as the inventory's user, and in the store where that is known."""
        store = HostStore(self._host, self._entry.storage) if self._host and self._entry.storage else None
        user = self._entry.user
        login = Login(user, self._password, ca_file=self._entry.ca_file) if user else None
        return TruthProbe(self._registry, store, login)

    @property
    def ca_file(self) -> Path | None:
        """What clients are to trust: the registry's authority as the inventory has it, and our proxy's."""
        return self._trusted

    @property
    def _url(self) -> str:
        return self._entry.proxy or self._endpoint.url

    def destination(self, repository: str, tag: str, *, client: str) -> Destination:
        """Return where ``client`` pushes to: our proxy where there is one, else the registry.

        :raises ConfigurationError: the name is not a legal one.
        """
        return Destination(
            Reference(urlsplit(self._url).netloc, repository, tag),
            ca_file=self.ca_file,
            user=self._entry.user or "",
            password=self._password,
            plain=self._url.startswith("http:"),
        )

    def _registry_for(self, engine: Engine) -> str:
        return urlsplit(self._url).netloc

    def _surroundings(self) -> Surroundings:
        folder = self._kept / "clients"
        folder.mkdir(parents=True, exist_ok=True)
        return Surroundings(folder, self.engine)

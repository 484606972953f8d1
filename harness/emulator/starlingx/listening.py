"""The ports of emulated systems: bound at once, served from the first connection on.

What serves them costs a second to import: a lab whose systems nobody asks anything never pays for it.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.emulator.starlingx.trouble_values import check_trouble
from harness.errors import ConfigurationError, DeadlineError

if TYPE_CHECKING:
    from harness.emulator.clock import LabClock
    from harness.emulator.distributed_cloud.cloud import Cloud
    from harness.emulator.host import EmulatedHost
    from harness.emulator.starlingx.system import System
    from harness.images.payload import PayloadTable

LOOPBACK: Final = "127.0.0.1"
#: The ports of a system, by service.
PORTS: Final = ("identity", "platform", "files", "faultmanagement", "nfv")
#: Those that a system controller has besides.
CENTRAL_PORTS: Final = ("dcmanager", "proxy")
#: The port of the file server as the hosts of a real system know it.
FILES_PORT: Final = 8080
_BACKLOG: Final = 64
_FETCH_SECONDS: Final = 30.0

#: Makes a system and brings it up; given how its agents get files.
Maker = Callable[["Download"], "System"]
#: Makes the distributed cloud of a system that is up.
CloudMaker = Callable[["System"], "Cloud"]


def maker(
    entry: Mapping[str, Any],
    hosts: Sequence[EmulatedHost],
    clock: LabClock,
    folder: Path,
    password: str,
) -> Maker:
    """Return what makes the system that ``entry`` of a lab's specification describes."""

    def make(fetch: Download) -> System:
        from harness.emulator.starlingx.defects import Defects
        from harness.emulator.starlingx.system import System

        system = System(
            entry["name"],
            hosts,
            clock,
            folder,
            fetch=fetch,
            password=password,
            defects=Defects(entry["release"], entry["defects"], entry["corrected_defects"]),
            regions=tuple(entry["regions"]),
        )
        system.activate()
        return system

    return make


def cloud_maker(
    listening: Listening, subclouds: Sequence[str], folder: Path, payloads: PayloadTable | None
) -> CloudMaker:
    """Return what makes the distributed cloud of a controller; its subclouds are systems of ``listening``."""

    def make(controller: System) -> Cloud:
        from harness.emulator.distributed_cloud.cloud import Cloud

        fetch = {name: partial(listening.system, name) for name in subclouds}
        cloud = Cloud(controller, fetch, folder, payloads=payloads)
        cloud.activate()
        return cloud

    return make


class Download:
    """Gets files by HTTP from the controller that an agent knows as such. ``ports``: known -> real one."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        self._ports = ports

    def __call__(self, port: int, path: str) -> bytes:
        """Return the file at ``path``. :raises OSError: it is not to be had; the error says why."""
        import http.client

        if port not in self._ports:
            raise ConnectionRefusedError(f"controller:{port}: Connection refused")
        connection = http.client.HTTPConnection(LOOPBACK, self._ports[port], timeout=_FETCH_SECONDS)
        try:
            connection.request("GET", path, headers={"Host": f"controller:{port}"})
            response = connection.getresponse()
            body = response.read()
        except http.client.HTTPException as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if response.status != 200:
            raise OSError(f"HTTP Error {response.status}: {response.reason}")
        return body


class _Place:
    """One system's ports and, once it was asked for, the system, with its distributed cloud if it has one."""

    def __init__(self, make: Maker, make_cloud: CloudMaker | None) -> None:
        services = PORTS if make_cloud is None else (*PORTS, *CENTRAL_PORTS)
        self.sockets = {service: _bound() for service in services}
        self._make = make
        self._make_cloud = make_cloud
        self._lock = threading.Lock()
        self._system: System | None = None
        self._cloud: Cloud | None = None

    def port(self, service: str) -> int:
        return int(self.sockets[service].getsockname()[1])

    def url(self, service: str) -> str:
        return f"http://{LOOPBACK}:{self.port(service)}"

    def system(self) -> System:
        """Return the system, made and brought up by whoever asks first."""
        with self._lock:
            return self._begun()

    def up(self) -> System | None:
        """Return the system where it is up; never waits."""
        return self._system

    def _begun(self) -> System:
        if self._system is None:
            self._system = self._make(Download({FILES_PORT: self.port("files")}))
            if self._make_cloud is not None:
                self._cloud = self._make_cloud(self._system)
        return self._system

    @property
    def has_cloud(self) -> bool:
        """Whether it is the controller of a distributed cloud."""
        return self._make_cloud is not None

    def cloud(self) -> Cloud:
        """Return the distributed cloud of the system. :raises KeyError: it has none."""
        self.system()
        if self._cloud is None:
            raise KeyError("cloud")
        return self._cloud

    def restart(self) -> None:
        """End the system's services and begin them anew with what is on disk."""
        with self._lock:
            system, cloud = self._system, self._cloud
            if system is not None:
                self._system = self._cloud = None
                if cloud is not None:
                    cloud.close()
                system.close()
                self._begun()

    def settled(self) -> bool:
        """Return whether the system, if it is there at all, has nothing left to do."""
        system, cloud = self._system, self._cloud
        return (cloud is None or cloud.settle()) and (system is None or system.settle())


class Listening:
    """Serves systems on loopback ports, all in one thread."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._wake, self._waked = socket.socketpair()

    def add(self, name: str, make: Maker, make_cloud: CloudMaker | None = None) -> str:
        """Bind the ports of the system ``name``; return the URL of its Keystone, as OS_AUTH_URL has it.

        ``make_cloud``: makes the distributed cloud that it is the controller of.
        """
        place = self._places[name] = _Place(make, make_cloud)
        return f"{place.url('identity')}/v3"

    def download(self, name: str) -> Download:
        """Return what gets files from the controller of the system ``name``."""
        return Download({FILES_PORT: self._places[name].port("files")})

    def restart_vim(self, name: str) -> None:
        """Restart the VIM of the system ``name`` alone."""
        self.system(name).restart_vim()

    def system(self, name: str) -> System:
        """Return the system ``name``, brought up. :raises KeyError: there is none."""
        return self._places[name].system()

    def cloud(self, name: str) -> Cloud:
        """Return the distributed cloud of the controller ``name``. :raises KeyError: there is none."""
        return self._places[name].cloud()

    def trouble(self, system: str, name: str, value: Any = None) -> None:
        """Make something go wrong in a system, or right again.

        ``refuse-requests`` (how many), ``downloads`` (whole, missing, short), ``completions`` (seconds by
        which they come late, None: lost), ``conductor``, ``agents`` (true: they run), ``expire-tokens``,
        ``restart``, ``api-down-after-unlock`` (seconds), ``host-update-null`` (bool), ``slow`` (factor). Of a
        distributed cloud's controller also ``subcloud-offline``, ``subcloud-unmanaged`` (name; ``-`` before
        it: not any more), ``vault-missing`` (uuid of an image), ``vault-takes-files`` (bool), ``dcmanager``
        (true: it runs), ``audit-now``.

        :raises ConfigurationError: there is no such system or trouble, or it does not take the value.
        """
        place = self._places.get(system)
        if place is None:
            known = ", ".join(self._places) or "none"
            raise ConfigurationError(f"The lab emulates no system {system!r}.", hint=f"Known: {known}.")
        check_trouble(system, name, value, has_cloud=place.has_cloud)
        found = place.system()
        acts: dict[str, Callable[[], None]] = {
            "refuse-requests": lambda: found.troubles.refuse_requests(value),
            "downloads": lambda: found.troubles.set_downloads(value),
            "completions": lambda: found.troubles.delay_completions(value),
            "conductor": lambda: (found.casts.start if value else found.casts.stop)(),
            "agents": lambda: found.run_agents(value),
            "expire-tokens": found.identity.revoke_all,
            "restart": place.restart,
            "api-down-after-unlock": lambda: found.troubles.go_away_after_unlock(value),
            "host-update-null": lambda: found.troubles.say_null(value),
            "slow": lambda: found.troubles.slow_down(value),
        }
        if place.has_cloud:
            cloud = place.cloud()
            acts |= {
                "subcloud-offline": lambda: cloud.cut_off(value),
                "subcloud-unmanaged": lambda: cloud.unmanage(value),
                "vault-missing": lambda: cloud.lose_file(value),
                "vault-takes-files": lambda: cloud.vault.take_files(value),
                "dcmanager": lambda: cloud.run(value),
                "audit-now": cloud.audit_now,
            }
        acts[name]()

    def settle(self) -> None:
        """Wait until no system that was asked for is at anything. :raises DeadlineError: one still is."""
        for name, place in self._places.items():
            if not place.settled():
                raise DeadlineError(
                    f"The emulated system {name} was still at something after its deadline: an update of "
                    "one of its cards may be held."
                )

    def serve(self) -> None:
        """Serve all that was added, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="starlingx", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve nobody any more, and close the ports; the systems go on as they are."""
        self._closing.set()
        self._wake.close()  # which the thread sees where it still waits for the first connection
        if self._thread is not None:
            self._thread.join()
        self._waked.close()
        for found in self._sockets():
            found.close()

    def _sockets(self) -> list[socket.socket]:
        return [found for place in self._places.values() for found in place.sockets.values()]

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for found in (self._waked, *self._sockets()):
                selector.register(found, selectors.EVENT_READ)
            selector.select()  # the first connection; it waits in its socket's queue
        if not self._closing.is_set():
            self._serve()

    def _serve(self) -> None:
        import uvicorn

        from harness.emulator.starlingx.web import Site

        apps: dict[int, Any] = {}
        for place in self._places.values():
            urls = {service: place.url(service) for service in place.sockets}
            site = Site(place.system, urls, place.cloud if place.has_cloud else None, place.up)
            apps |= {place.port(service): app for service, app in site.apps().items()}

        async def by_port(scope: Any, receive: Any, send: Any) -> None:
            await apps[scope["server"][1]](scope, receive, send)

        config = uvicorn.Config(
            by_port,
            lifespan="off",
            ws="none",
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        server = uvicorn.Server(config)

        def end() -> None:
            self._closing.wait()
            server.should_exit = True

        threading.Thread(target=end, name="starlingx-end", daemon=True).start()
        server.run(sockets=self._sockets())


def _bound() -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # An answer goes out in two parts; without this the second waits 40 ms for the first to be confirmed.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found.bind((LOOPBACK, 0))
    found.listen(_BACKLOG)
    return found

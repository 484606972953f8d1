"""An emulated controller that serves a stand-in of a host, over HTTP or HTTPS."""

from typing import Any

from harness.emulator.bmc import Controller, application
from harness.lab.power.access import RedfishAccess
from harness.registry.serving import Serving
from harness.registry.tls import LabAuthority

PASSWORD = "canary-bmc-30f1"


class Machine:
    """What a controller sees of its host."""

    hostname = "worker-1"

    def __init__(self) -> None:
        self.conditions: set[str] = set()
        self.powered = True
        self.cuts = 0

    def power_off(self) -> None:
        self.cuts += self.powered
        self.powered = False

    def power_on(self) -> None:
        self.powered = True


class Bmc:
    """A controller on a port; ``access`` is how it is reached.

    ``prefix``: below which a reverse proxy has it, and nothing else; ``rewrites``: it puts that into links.
    """

    def __init__(
        self, machine: Machine, tls: LabAuthority | None = None, prefix: str = "", *, rewrites: bool = False
    ) -> None:
        self.machine = machine
        self.requests: list[tuple[str, str]] = []
        controllers: dict[int, Any] = {}
        served = application(controllers)

        async def noting(scope: Any, receive: Any, send: Any) -> None:
            self.requests.append((scope["method"], scope["path"]))
            beyond = scope["path"].removeprefix(prefix) if scope["path"].startswith(prefix) else "/not/here"
            links = (b'"/redfish', b'"' + prefix.encode() + b"/redfish")

            async def rewriting(message: Any) -> None:
                if rewrites and message["type"] == "http.response.body":
                    message = message | {"body": message.get("body", b"").replace(*links)}
                if rewrites and message["type"] == "http.response.start":
                    kept = [(k, v) for k, v in message["headers"] if k.lower() != b"content-length"]
                    moved = [(k, prefix.encode() + v if k.lower() == b"location" else v) for k, v in kept]
                    message = message | {"headers": moved}
                await send(message)

            await served(scope | {"path": beyond}, receive, rewriting)

        identity = tls.issue("bmc") if tls else None
        self._serving = Serving(noting, "127.0.0.1", 0, tls=identity)
        controllers[self._serving.port] = Controller(machine, PASSWORD)  # type: ignore[arg-type]
        scheme = "https" if tls else "http"
        self.access = RedfishAccess(f"{scheme}://127.0.0.1:{self._serving.port}", "admin", PASSWORD)

    def __enter__(self) -> "Bmc":
        self._serving.start(30)
        return self

    def __exit__(self, *exception: object) -> None:
        self._serving.stop(abort=True)

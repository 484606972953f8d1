"""Serves a small web application from a thread, and lets go of its port at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from harness.errors import DeadlineError
from harness.registry.ports import listen
from harness.registry.tls import ServerIdentity

if TYPE_CHECKING:
    import asyncio

    import uvicorn

_END_SECONDS = 10.0
#: How long a service that is stopped in an orderly way goes on with what it answers.
_ANSWER_SECONDS = 5.0


class Serving:
    """One run of a web application on one port.

    :param application: ASGI. :param port: 0 chooses a free one.
    """

    def __init__(
        self, application: Any, address: str, port: int, *, tls: ServerIdentity | None = None
    ) -> None:
        """Bind the port. :raises InfrastructureError: it is taken."""
        (self._socket,) = listen((address,), port)
        self.port: int = self._socket.getsockname()[1]
        self._application = application
        self._tls = tls
        self._up = threading.Event()
        self._stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: uvicorn.Server | None = None
        self._abort = False
        self._thread = threading.Thread(target=self._run, name=f"service on port {self.port}", daemon=True)

    @property
    def busy(self) -> bool:
        """Whether a request is being answered now."""
        return self._server is not None and bool(self._server.server_state.tasks)

    def start(self, deadline: float) -> None:
        """Return when requests are taken. :raises DeadlineError: they are not, in time."""
        self._thread.start()
        if not self._up.wait(deadline) or not self._thread.is_alive():
            self.stop(abort=True)
            raise DeadlineError(f"Waited {deadline:g} s for the service on port {self.port} to come up.")

    def _run(self) -> None:
        import asyncio

        try:
            asyncio.run(self._serve())
        finally:
            self._socket.close()
            self._up.set()

    async def _serve(self) -> None:
        import asyncio

        import uvicorn

        config = uvicorn.Config(
            self._application,
            http="h11",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            ssl_certfile=self._tls.certificate if self._tls else None,
            ssl_keyfile=self._tls.key if self._tls else None,
        )
        config.load()
        self._server = server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        await server.startup(sockets=[self._socket])
        self._up.set()
        # Not `serve()` and `shutdown()`: they look and wait in steps of 100 ms, and take signals.
        await self._stopping.wait()
        for listener in server.servers:
            listener.close()
        self._socket.close()
        for connection in list(server.server_state.connections):
            if self._abort:
                connection.transport.abort()
            else:
                connection.shutdown()
        if not self._abort and server.server_state.tasks:
            await asyncio.wait(set(server.server_state.tasks), timeout=_ANSWER_SECONDS)

    def stop(self, *, abort: bool) -> None:
        """End it and return when the port is free.

        :param abort: break every connection; else what is being answered is answered first.
        """
        if self._thread.ident is None:
            self._socket.close()
            return
        self._abort = abort
        if self._loop is not None and self._stopping is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_END_SECONDS)

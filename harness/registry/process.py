"""A registry as a plain process in a folder of its own; it ends with us."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from harness.errors import ConfigurationError, DeadlineError, HarnessBug, InfrastructureError
from harness.packages import provide
from harness.registry.children import Launched, spawn
from harness.registry.configuration import RegistrySettings, configuration_text, socket_address
from harness.registry.controlled import Controlled
from harness.registry.folder import TemporaryFolder
from harness.registry.logs import LogEntry
from harness.registry.ports import free_port, listening_ports, listens, prove_free, reserve
from harness.registry.program_log import ProgramLog
from harness.registry.service import How, Instance, Restart
from harness.registry.wire import Endpoint, Wire

PACKAGE = PROGRAM = "docker-registry"
_SIGNALS = {"TERM": signal.SIGTERM, "KILL": signal.SIGKILL}
#: How often a port that was chosen free and then taken by somebody else is chosen anew.
_PORT_TRIES = 5
_LISTENS = "listening on "
#: From one look at the registry's ports to the next.
_POLL_SECONDS = 0.005


def find_registry(*, install: bool = True) -> Path:
    """Return Debian's registry; see :func:`harness.packages.provide`.

    :raises BlockedError: it is not here and cannot be got.
    """
    return provide(PROGRAM, PACKAGE, install=install)


class ProcessRegistry(Controlled):
    """Debian's docker-registry as a child of this process, on loopback unless its settings say otherwise.

    :param folder: where its configuration, log and store are; a temporary one that goes with it where
        none is given.
    :param program: the registry's program; :func:`find_registry` by default.
    :param name: what it is called in messages.
    """

    def __init__(
        self,
        folder: Path | None = None,
        settings: RegistrySettings | None = None,
        *,
        program: Path | None = None,
        name: str = "registry",
    ) -> None:
        super().__init__(name)
        #: Takes effect at the next start.
        self.settings = settings or RegistrySettings()
        #: The certificates of token keys that the last start has read; a registry reads them only then.
        self.bundle_read = b""
        self._program = program or find_registry()
        self._temporary: TemporaryFolder | None = None
        if folder is None:
            self._temporary = TemporaryFolder("hil-registry-")
            folder = self._temporary.path
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._secret = secrets.token_hex(32)
        self._port = 0
        #: Keeps the port while it is down.
        self._reserved: socket.socket | None = None
        self._process: Launched | None = None
        self._instance: Instance | None = None
        self._started = 0
        self._paused = False
        self._log = ProgramLog(self._folder / "registry.log")

    @property
    def port(self) -> int:
        """Its port, chosen at the first start where the settings leave it open, and kept from then on."""
        if not self._port:
            self._port = self.settings.port or free_port(self.settings.address)
        return self._port

    @property
    def endpoint(self) -> Endpoint:
        """Where it answers."""
        scheme = "https" if self.settings.tls else "http"
        authority = self.settings.tls.authority if self.settings.tls else None
        return Endpoint(f"{scheme}://{socket_address(self.settings.address, self.port)}", authority)

    @property
    def storage(self) -> str:
        """The folder of its store."""
        return str(self.settings.storage or self._folder / "store")

    @property
    def instance(self) -> Instance | None:
        """The process that runs now; None where none does, or it has ended by itself."""
        alive = self._process is not None and self._process.poll() is None
        return self._instance if alive else None

    def _last_words(self) -> str:
        return self._log.last()

    # -- start and end ------------------------------------------------------------------------------

    def start(self, *, deadline: float = 20.0, read_only: bool = False) -> Instance:
        """Start it and return when it answers.

        :raises InfrastructureError: its port is taken, or it ends at once; the message has what it said.
        :raises DeadlineError: it does not answer in time.
        """
        with self._control:
            if (running := self.instance) is not None:
                raise ConfigurationError(f"The {self._name} runs already (process {running.pid}).")
            self._reap()
            tries = 1 if self.settings.port or self._started else _PORT_TRIES
            for left in reversed(range(tries)):
                try:
                    return self._start(deadline, read_only)
                except InfrastructureError as error:
                    self.kill()
                    # Between the choice of a free port and its use anybody may take it.
                    if not left or "address already in use" not in error.message.lower():
                        raise
                    self._release_port()
                    self._port = 0
            raise HarnessBug("a loop that returns or raises did neither")

    def _release_port(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    def _start(self, deadline: float, read_only: bool) -> Instance:
        prove_free(self.settings.address, self.port)
        if self._reserved is None:
            self._reserved = reserve(self.settings.address, self.port)
        self.bundle_read = self.settings.tokens.bundle.read_bytes() if self.settings.tokens else b""
        configuration = self._configured(read_only)
        Path(self.storage).mkdir(parents=True, exist_ok=True)
        mark = self._log.size
        self._process = self._launch("serve", configuration)
        self._log.follow(self._process)
        self._started += 1
        self._instance = Instance(self._process.pid, self._started, time.time(), read_only)
        self._wait_ready(mark, deadline)
        return self._instance

    def _launch(self, *arguments: str | Path) -> Launched:
        """Start the program with ``arguments``; it ends with us."""
        return spawn(
            [self._program, *arguments],
            environ=_environment(),
            folder=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def _configured(self, read_only: bool) -> Path:
        """Write the configuration and return its file."""
        path = self._folder / ("readonly_config.yml" if read_only else "config.yml")
        text = configuration_text(
            self.settings,
            port=self.port,
            storage=Path(self.storage),
            secret=self._secret,
            read_only=read_only,
        )
        path.write_text(text, encoding="utf-8")
        return path

    def wait_ready(self, *, deadline: float = 20.0) -> None:
        """Return when it answers, and the port is its own. :raises DeadlineError: it does not."""
        self._running()
        self._answers(deadline)

    def _wait_ready(self, mark: int, deadline: float) -> None:
        began = time.monotonic()
        said = self._log.wait_for(lambda entry: entry.message.startswith(_LISTENS), mark, deadline)
        if said is None:
            if self._log.ended:
                raise InfrastructureError(f"The {self._name} ended at once: {self._log.last(mark)}")
            raise DeadlineError(
                f"Waited {deadline:g} s for the {self._name} to listen; it last said: {self._log.last(mark)}"
            )
        self._answers(max(0.1, deadline - (time.monotonic() - began)))

    def _answers(self, deadline: float) -> None:
        """Ask it once: a socket that listens takes connections before anybody accepts them."""
        if self._process is None or not listens(self._process.pid, self.port):
            raise InfrastructureError(
                f"The port {self.port} is not that of the {self._name} that was started; "
                "what is read there would be of another one."
            )
        with Wire(self.endpoint) as wire, wire.get("/v2/", deadline=deadline) as answer:
            if answer.status not in (200, 401):
                raise InfrastructureError(f"The {self._name} answers /v2/ with {answer.status}.")

    def stop(self, *, deadline: float = 10.0) -> None:
        """End it with a TERM, a paused one as well. :raises DeadlineError: it does not end in time."""
        with self._control:
            if self.instance is None:
                self._reap()
                return
            self._send(signal.SIGTERM)
            self.resume()
            self._wait_ended(deadline)

    def kill(self) -> None:
        """End it with a KILL and return when it has ended."""
        with self._control:
            if self.instance is not None:
                self._send(signal.SIGKILL)
                self._wait_ended(10.0)
            self._reap()

    def _wait_ended(self, deadline: float) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise DeadlineError(
                f"Waited {deadline:g} s for the {self._name} (process {self._process.pid}) to end."
            ) from None
        self._reap()

    def _reap(self) -> None:
        """Take leave of a process that has ended: its log is complete when this returns."""
        if self._process is not None and self._process.poll() is not None:
            self._log.finish()
            self._process = self._instance = None
            self._paused = False

    def restart(
        self,
        how: How = "TERM",
        *,
        held: str = "",
        between: Callable[[], None] | None = None,
        deadline: float = 20.0,
    ) -> Restart:
        """End it, call ``between``, start it and return when it answers.

        :raises InfrastructureError: it did not run.
        """
        return self._restart(how, held, between, deadline, read_only=None)

    def _restart(
        self,
        how: How,
        held: str,
        between: Callable[[], None] | None,
        deadline: float,
        *,
        read_only: bool | None,
    ) -> Restart:
        with self._control:
            before = self._running()
            began = time.monotonic()
            if how == "KILL":
                self.kill()
            else:
                self.stop(deadline=deadline)
            if between is not None:
                between()
            after = self.start(
                deadline=deadline, read_only=before.read_only if read_only is None else read_only
            )
            done = Restart(before, after, how, held, time.monotonic() - began)
            self._restarts.append(done)
            return done

    def read_only(self, on: bool, *, deadline: float = 20.0) -> Restart:
        """Restart it so that every write is answered with 405, or writes are taken again."""
        return self._restart("TERM", "", None, deadline, read_only=on)

    # -- disturbances -------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop its process where it stands and return when it does. Should we end, it ends as well."""
        with self._control:
            running = self._running()
            self._send(signal.SIGSTOP)
            self._paused = True
            self._wait_stopped(running.pid)

    def _wait_stopped(self, pid: int) -> None:
        try:
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        except ChildProcessError:  # it ended before the signal came
            self._running()

    def resume(self) -> None:
        """Let a paused process go on."""
        with self._control:
            if self._paused:
                self._paused = False
                self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _collected(self, options: list[str], deadline: float) -> tuple[int, str]:
        process = self._launch("garbage-collect", *options, self._configured(False))
        try:
            said, _ = process.communicate(timeout=deadline)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            last = said.decode(errors="replace").rstrip().rpartition("\n")[2]
            raise DeadlineError(
                f"Waited {deadline:g} s for the garbage collection to end; it last said: {last}"
            ) from None
        return process.returncode, said.decode(errors="replace")

    # -- what it says -------------------------------------------------------------------------------

    def log_mark(self) -> str:
        """Return where its log ends now."""
        return str(self._log.size)

    def logs(self, since: str = "") -> list[LogEntry]:
        """Return what it has logged since a mark; all of it, over all restarts, without one."""
        return self._log.entries(int(since or 0))

    def wait_for_log(
        self, wanted: Callable[[LogEntry], bool], *, since: str = "", deadline: float = 10.0
    ) -> LogEntry:
        """Return the first entry since a mark that is ``wanted``. :raises DeadlineError: none comes."""
        found = self._log.wait_for(wanted, int(since or 0), deadline)
        if found is None:
            raise DeadlineError(
                f"Waited {deadline:g} s for a line in the log of the {self._name}; the last is: "
                f"{self._log.last()}"
            )
        return found

    def metrics(self, *, deadline: float = 10.0) -> str:
        """Return its counters in Prometheus' text form.

        :raises InfrastructureError: it does not run. :raises DeadlineError: it opens no port for them.
        """
        end = time.monotonic() + deadline
        # It opens the port of its counters by itself, after it already answers at the other.
        while not (others := listening_ports(self._running().pid) - {self.port}):
            if time.monotonic() > end:
                last = self._log.last()
                raise DeadlineError(f"Waited {deadline:g} s for the port of {self._name}'s counters: {last}")
            time.sleep(_POLL_SECONDS)
        debug = Endpoint(f"http://{socket_address(self.settings.address, min(others))}")
        with Wire(debug) as wire, wire.get("/metrics", deadline=deadline) as answer:
            return answer.read(1 << 22).decode(errors="replace")

    def close(self) -> None:
        """End it. Its folder goes with it where it is a temporary one; may be called twice."""
        self.kill()
        self._release_port()
        self._log.close()
        if self._temporary:
            self._temporary.close()


def _environment() -> dict[str, str]:
    """Return the environment without what would override the configuration (REGISTRY_...)."""
    return {key: value for key, value in os.environ.items() if not key.startswith("REGISTRY_")}

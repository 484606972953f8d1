"""A registry in a container of a Docker engine, on this machine's network; it ends with us."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness.errors import ConfigurationError, DeadlineError, InfrastructureError
from harness.faults.watchdog import Watchdog
from harness.registry.children import Launched
from harness.registry.configuration import RegistrySettings
from harness.registry.container_image import PROGRAM, image_of, import_image
from harness.registry.process import ProcessRegistry, find_registry
from harness.registry.program_log import readable

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

    from harness.registry.engine import Engine

_LABEL = "hil-registry"
_STOP_SECONDS, _POLL_SECONDS = 10.0, 0.001
#: How a process ends for Docker that a KILL has ended.
_KILLED = 137


def has_image(engine: Engine, image: str) -> bool:
    """Return whether the engine has ``image``. :raises InfrastructureError: it does not answer."""
    from docker.errors import ImageNotFound

    with _told(engine), closing(engine.client()) as client:
        try:
            client.images.get(image)
        except ImageNotFound:
            return False
        return True


class ContainerRegistry(ProcessRegistry):
    """A registry whose process is the main one of a container; its files are at the same paths inside.

    :param engine: runs the container; it must be on this machine.
    :param folder: where its configuration, log and store are; a temporary one that goes with it where
        none is given.
    :param image: one that the engine has, such as ``registry:2``; by default one made from ``program``.
    :param program: the registry's program; Debian's by default.
    :param name: what it is called in messages.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path | None = None,
        settings: RegistrySettings | None = None,
        *,
        image: str = "",
        program: Path | None = None,
        name: str = "registry in a container",
    ) -> None:
        chosen = Path(PROGRAM) if image else program or find_registry()
        super().__init__(folder, settings, program=chosen, name=name)
        self._engine = engine
        self._own_image = not image
        self._image = image or image_of(chosen)
        self._imported = False
        self._mark = f"{_LABEL}={secrets.token_hex(8)}"
        self._watchdog: Watchdog | None = None

    def _launch(self, *arguments: str | Path) -> Launched:
        """Start the program in a new container, which is removed at its end.

        :raises ConfigurationError: the engine does not have the image.
        :raises InfrastructureError: the engine does not start it.
        """
        if self._watchdog is None:
            self._watchdog = Watchdog([sys.executable, "-m", __name__, self._engine.url, self._mark])
        with _told(self._engine):
            client = self._engine.client()
        try:
            with _told(self._engine):
                self._provide_image(client)
                container = client.containers.create(
                    self._image,
                    [str(argument) for argument in arguments],
                    entrypoint=[PROGRAM],
                    network_mode="host",
                    user=f"{os.geteuid()}:{os.getegid()}",
                    labels=dict([self._mark.split("=")]),
                    volumes=self._volumes(),
                )
                return _ContainerProcess(self._engine, client, container)
        except BaseException:
            client.close()
            raise

    def _provide_image(self, client: DockerClient) -> None:
        from docker.errors import ImageNotFound

        try:
            client.images.get(self._image)
        except ImageNotFound:
            if not self._own_image:
                raise ConfigurationError(
                    f"The {self._engine.name} does not have the image {self._image}.",
                    hint=f"Get it:  docker --host {self._engine.url} pull {self._image}",
                ) from None
            import_image(client, self._program)
            self._imported = True

    def _volumes(self) -> dict[str, dict[str, str]]:
        """Return what of this machine is seen inside: folders, since a changed key is another file."""
        read: list[Path] = []
        if self.settings.tls is not None:
            read += [self.settings.tls.certificate.parent, self.settings.tls.key.parent]
        if self.settings.tokens is not None:
            read.append(self.settings.tokens.bundle.parent)
        written = [self._folder, Path(self.storage)]
        seen = {str(path.absolute()): {"bind": str(path.absolute()), "mode": "ro"} for path in read}
        return seen | {str(path.absolute()): {"bind": str(path.absolute()), "mode": "rw"} for path in written}

    def _wait_stopped(self, pid: int) -> None:
        """Return when its process stands still; it is not our child, so that nobody tells us."""
        end = time.monotonic() + _STOP_SECONDS
        while (state := _state(pid)) not in ("T", ""):
            if time.monotonic() > end:
                raise DeadlineError(
                    f"Waited {_STOP_SECONDS:g} s for the {self.name} (process {pid}) to stand still; "
                    f"its state is {state}."
                )
            time.sleep(_POLL_SECONDS)
        self._running()

    def close(self) -> None:
        """End it and remove its containers, and the image where it was made for this one."""
        super().close()
        if self._watchdog is not None:
            with suppress(*_engine_errors()):  # an engine that has ended has none of them
                remove_marked(self._engine.client(), self._mark, self._image if self._imported else "")
            self._watchdog.stand_down()
            self._watchdog = None


class _ContainerProcess:
    """The main process of a container as :class:`subprocess.Popen` shows one."""

    def __init__(self, engine: Engine, client: DockerClient, container: Container) -> None:
        """Start the container."""
        self._client = client
        self._container = container
        self._finishing = threading.Lock()
        self._said = b""
        self.returncode: int | None = None
        output, into = os.pipe()
        self.stdout: IO[bytes] | None = os.fdopen(output, "rb", buffering=0)
        said = container.attach(stdout=True, stderr=True, stream=True, logs=True)
        self._pump = threading.Thread(target=_hand_on, args=(said, into), name="output", daemon=True)
        self._pump.start()
        container.start()
        self.pid, self._handle = 0, -1
        self._find(engine)

    def _find(self, engine: Engine) -> None:
        """Find the process, and prove that it is the container's; one that has ended by now has none.

        :raises InfrastructureError: it runs, and not as a process of this machine.
        """
        self._container.reload()
        state = self._container.attrs["State"]
        if not state["Running"]:
            return
        with suppress(InfrastructureError, OSError):
            pid = engine.pid_here(int(state["Pid"]))
            handle = os.pidfd_open(pid)
            weakref.finalize(self, os.close, handle)
            if str(self._container.id) in Path(f"/proc/{pid}/cgroup").read_text():
                self.pid, self._handle = pid, handle
                return
        self._container.reload()
        if self._container.attrs["State"]["Running"]:
            self._container.remove(force=True)
            raise InfrastructureError(
                f"The main process of a container is not found on this machine; does the {engine.name} "
                f"at {engine.url} run here, and see the processes that we see?"
            )

    def poll(self) -> int | None:
        """Return how it ended; None while it runs."""
        if self.returncode is None and (self._handle < 0 or readable(self._handle, 0)):
            with self._finishing:
                if self.returncode is None:
                    self.returncode = self._finish()
        return self.returncode

    def _finish(self) -> int:
        """Take leave of a container that has ended; return how it did."""
        code = _KILLED
        with suppress(*_engine_errors()):  # the engine may have ended with it
            code = int(self._container.wait(timeout=_STOP_SECONDS)["StatusCode"])
            self._container.remove(force=True)
        self._pump.join(_STOP_SECONDS)
        self._client.close()
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Return how it ended. :raises TimeoutExpired: it has not, within ``timeout`` seconds."""
        if self._handle >= 0 and not readable(self._handle, None if timeout is None else int(timeout * 1000)):
            raise subprocess.TimeoutExpired(PROGRAM, timeout or 0.0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, sig: int) -> None:
        """Send it a signal; nothing where it has ended."""
        if self._handle >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, sig)

    def kill(self) -> None:
        """Send it a KILL."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, input: None = None, timeout: float | None = None) -> tuple[bytes, Any]:
        """Return all that it says until its end. :raises TimeoutExpired: it has not ended in time."""
        assert self.stdout is not None
        end = None if timeout is None else time.monotonic() + timeout
        while readable(
            self.stdout.fileno(), None if end is None else max(0, int((end - time.monotonic()) * 1000))
        ):
            data = self.stdout.read(1 << 16)
            if not data:
                self.wait(timeout)
                self.stdout.close()
                return self._said, None
            self._said += data
        raise subprocess.TimeoutExpired(PROGRAM, timeout or 0.0)


def _hand_on(said: Iterable[bytes], into: int) -> None:
    """Write what a container says to the pipe ``into``, and close that at its end."""
    with os.fdopen(into, "wb", buffering=0) as pipe, suppress(*_engine_errors(), OSError, ValueError):
        for data in said:
            pipe.write(data)


def remove_marked(client: DockerClient, mark: str, image: str = "") -> None:
    """Remove every container with the label ``mark``, running or not, and ``image``; close the client."""
    with suppress(*_engine_errors()), closing(client):
        for container in client.containers.list(all=True, filters={"label": mark}, ignore_removed=True):
            with suppress(*_engine_errors()):  # one that cannot be removed does not keep the others
                container.remove(force=True)
        if image:
            client.images.remove(image)  # refused where another registry runs from it


def _engine_errors() -> tuple[type[Exception], ...]:
    """Return what the SDK raises: its own, those of its transport, and those that it lets through."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    return (DockerException, RequestException, HTTPError)


@contextmanager
def _told(engine: Engine) -> Iterator[None]:
    """Turn what the SDK raises into an error of ours."""
    try:
        yield
    except _engine_errors() as error:
        raise InfrastructureError(f"The {engine.name} does not start a registry: {error}.") from None


def _state(pid: int) -> str:
    """Return the state of a process as /proc has it; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


if __name__ == "__main__":  # for the watchdog of a registry whose harness was killed
    from docker import DockerClient

    remove_marked(DockerClient(base_url=sys.argv[1]), sys.argv[2])

"""A Docker engine of the harness's own: nobody else's images, names or trust, and it goes when we do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from harness.errors import BlockedError, ConfigurationError, DeadlineError, InfrastructureError
from harness.faults.watchdog import Watchdog
from harness.packages import PackageError, install_packages, installed
from harness.registry.children import spawn
from harness.registry.engines.answering import AnsweringEngine, check_is_checked
from harness.registry.engines.enclosure import NAMES, NOT_ALLOWED, RUNS_ALREADY, Enclosure
from harness.registry.logs import LogEntry, parse_log

PACKAGE, PROGRAM = "docker.io", "dockerd"
_POLL_SECONDS = 0.01
_CGROUPS = Path("/sys/fs/cgroup")
#: Asks the kernel for what the enclosure of an engine is made of.
_NAMESPACES = ("unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--mount-proc", "true")
_AS_ROOT = (
    "Run it as root (sudo), or give the machine's own engine:  export DOCKER_HOST=unix:///run/docker.sock"
)


def find_engine(*, install: bool = True) -> Path:
    """Return Debian's engine, installed where it is missing and could run.

    Unpacking it would be of no use: where packages cannot be installed, an engine may not mount either.

    :raises BlockedError: it is not here and cannot be got, or could not run here, or we are not root.
    """
    if os.geteuid() != 0:
        raise BlockedError(
            "A private Docker engine needs root, for its mounts and namespaces.", hint=_AS_ROOT
        )
    check_machine()
    reason = ""
    if installed(PROGRAM) is None and install:
        try:
            install_packages([PACKAGE])
        except PackageError as error:
            reason = f", and it could not be got: {error}"
    found = {name: installed(name) for name in (PROGRAM, "containerd", "runc")}
    if missing := [name for name, place in found.items() if place is None]:
        raise BlockedError(
            f"A private Docker engine needs {', '.join(missing)}{reason}.",
            hint=f"Install it:  sudo apt-get install {PACKAGE}",
        )
    return Path(str(found[PROGRAM]))


class PrivateEngine(AnsweringEngine):
    """A dockerd with its own containerd, in namespaces of its own; ``registry.local`` is ::1 to it.

    :param folder: where all of it is kept; short, for its sockets. A temporary one by default. It goes
        with the engine.
    :param program: the engine's program; by default that of :func:`find_engine`, which looks whether one
        could run here.
    :param stays: it goes on when this process ends, until somebody closes one of the same folder.
    """

    def __init__(
        self, folder: Path | None = None, *, program: Path | None = None, stays: bool = False
    ) -> None:
        self._program = program
        self._stays = stays
        self._temporary = folder is None
        self._started = False
        self.enclosure = Enclosure((folder or _temporary_folder()).resolve())
        super().__init__(f"unix://{self.enclosure.socket}", "private engine")
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: Watchdog | None = None

    def __enter__(self) -> PrivateEngine:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self.enclosure.keeper() is not None

    def start(self, *, deadline: float = 60.0) -> None:
        """Start it and return when it answers; images of an earlier start are still there.

        :raises BlockedError: it is not here and cannot be got, or this machine does not allow it.
        :raises ConfigurationError: it runs already, or its folder cannot be used.
        :raises InfrastructureError: it ends at once; the message has what it said.
        :raises DeadlineError: it does not answer in time.
        """
        program = self._program or find_engine()
        self.enclosure.check()
        if self.running:
            raise self._runs_already()
        try:
            self.enclosure.prepare()
            mark = self._size()
            if not self._stays and self._watchdog is None:
                self._watchdog = Watchdog(
                    [sys.executable, "-m", "harness.registry.engines.enclosure", str(self.enclosure.folder)]
                )
            with self.enclosure.log.open("ab") as log:
                self._process = self._spawn(program, log.fileno())
            self._started = True
        except OSError as error:
            raise InfrastructureError(
                f"The folder of the {self.name} cannot be made: {error.filename}: {error.strerror}."
            ) from None
        try:
            self._wait_ready(mark, deadline)
        except BaseException:
            if self._process.returncode == RUNS_ALREADY:
                self._started = False
            else:
                self.kill()
            raise

    def _spawn(self, program: Path, log: int) -> subprocess.Popen[bytes]:
        command, more = self.enclosure.command(program)
        environ = {key: value for key, value in os.environ.items() if not key.startswith("DOCKER_")} | more
        # containerd and iptables are looked for there.
        environ["PATH"] = f"{environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
        if not self._stays:
            return spawn(command, environ=environ, stdout=log, stderr=log)
        return subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )

    def _wait_ready(self, mark: int, deadline: float) -> None:
        assert self._process is not None
        end = time.monotonic() + deadline
        while not _answers(self.enclosure.socket):
            if self._process.poll() is not None:
                raise self._ended(self._process.returncode, mark)
            if time.monotonic() > end:
                raise DeadlineError(
                    f"Waited {deadline:g} s for the {self.name} to answer; it last said: {self._last(mark)}"
                )
            time.sleep(_POLL_SECONDS)
        if self._stays:
            self._process.returncode = 0  # it is nobody's child now: no warning when this object goes
            self._process = None

    def _ended(self, code: int, mark: int) -> Exception:
        if code == RUNS_ALREADY:
            return self._runs_already()
        said = self._last(mark)
        if code == NOT_ALLOWED or said.startswith("unshare:"):
            return BlockedError(f"This machine does not allow a {self.name}: {said}", hint=_AS_ROOT)
        return InfrastructureError(f"The {self.name} ended at once: {said}")

    def _runs_already(self) -> ConfigurationError:
        return ConfigurationError(
            f"The {self.name} in {self.enclosure.folder} runs already.",
            hint=f"Use it:  export DOCKER_HOST={self.url}",
        )

    def stop(self, *, deadline: float = 20.0) -> None:
        """End it with a TERM, or a KILL at the deadline; what it holds is kept for the next start."""
        self.enclosure.end(deadline=deadline)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """End it, its containerd and its containers with a KILL; nothing where it does not run."""
        self.stop(deadline=0.0)

    def close(self) -> None:
        """End it and remove all that it held; may be called twice. One that another started is left alone."""
        if self._started:
            self.kill()
            self.enclosure.remove()
        elif self._temporary:
            with suppress(FileNotFoundError):
                self.enclosure.folder.rmdir()
        if self._watchdog is not None:
            self._watchdog.stand_down()
            self._watchdog = None

    def trust(self, registry: str, ca_file: Path) -> None:
        """Have it check the certificate of ``registry`` (``host:port``) against ``ca_file``.

        :raises ConfigurationError: the name leads to where it checks nothing, or the file cannot be read.
        """
        check_is_checked(registry, NAMES)
        try:
            content = ca_file.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"The authority {ca_file} cannot be read: {error.strerror}.") from None
        folder = self.enclosure.certificates / registry
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ca.crt").write_bytes(content)

    def registry_host(self) -> str:
        """The name by which it reaches a registry on ::1 of this machine."""
        return NAMES[0]

    def pid_here(self, pid: int) -> int:
        """Return what a process that it names is called on this machine.

        :raises InfrastructureError: it has ended.
        """
        found = self.enclosure.pid_here(pid)
        if found is None:
            raise InfrastructureError(f"The process {pid} of the {self.name} has ended.")
        return found

    def log_mark(self) -> str:
        """Return where its log ends now."""
        return str(self._size())

    def logs(self, since: str = "") -> list[LogEntry]:
        """Return what it has logged since a mark; all of it, over all starts, without one."""
        return self._entries(int(since or 0))

    def _size(self) -> int:
        return self.enclosure.log.stat().st_size if self.enclosure.log.exists() else 0

    def _entries(self, since: int) -> list[LogEntry]:
        with suppress(FileNotFoundError), self.enclosure.log.open("rb") as opened:
            opened.seek(since)
            return list(parse_log(opened.read().decode(errors="replace").splitlines()))
        return []

    def _last(self, since: int) -> str:
        entries = self._entries(since)[-3:]
        return " / ".join(entry.message[:300] for entry in entries) or "nothing"


def _temporary_folder() -> Path:
    """Return a new folder, of a path short enough for the engine's sockets."""
    usual = Path(tempfile.gettempdir())
    return Path(tempfile.mkdtemp(prefix="hil-engine-", dir=usual if len(str(usual)) < 40 else "/tmp"))


def check_machine() -> None:
    """Return if an engine could run here, whether or not one is installed; no container has all it needs.

    :raises BlockedError: this machine lacks what an engine needs.
    """
    if not any(_CGROUPS.glob("*")):
        raise BlockedError(
            f"A Docker engine needs control groups, and {_CGROUPS} is empty.",
            hint="Mount them:  sudo mount -t cgroup2 none /sys/fs/cgroup",
        )
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        raise BlockedError(
            f"A private engine reaches the registry at ::1, and there is none here: {error.strerror}.",
            hint="Switch IPv6 on:  sudo sysctl net.ipv6.conf.lo.disable_ipv6=0",
        ) from None
    if os.geteuid() == 0:
        tried = subprocess.run(_NAMESPACES, capture_output=True, text=True, errors="replace", check=False)
        if tried.returncode != 0:
            raise BlockedError(
                f"A private Docker engine needs namespaces, and root gets none here: {tried.stderr.strip()}.",
                hint="Run it outside of the container or chroot; or give it the capability SYS_ADMIN.",
            )


def _answers(path: Path) -> bool:
    """Return whether an engine answers at the socket ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        asked.settimeout(5.0)
        try:
            asked.connect(str(path))
            asked.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in asked.recv(64)
        except OSError:
            return False

"""Commands in a mounted emulated host, and the programs of Debian that are run there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import paramiko
import pytest

from harness.images.recipes import Recipe, build, load_recipes
from harness.inventory.load import load_inventory
from harness.lab.background import BackgroundLab, background_lab
from harness.lab.bench import Bench
from harness.packages import PackageError, installed, library_path, tools_folder, unpacked

PROJECT = Path(__file__).resolve().parents[2]
HIL = Path(sys.executable).parent / "hil"
#: Program -> the package that it comes in.
PACKAGES = {
    "lspci": "pciutils",
    "udevadm": "udev",
    "umockdev-run": "umockdev",
    "busybox": "busybox-static",
}
_FOLDERS = ("usr/bin", "bin", "usr/sbin", "sbin")
#: Makes what this machine does not allow fail, where it would only be told; for a CI that has it all.
UNBLOCKED = "HIL_TESTS_UNBLOCKED"

INVENTORY = """
version: 1
default_lab: mounts
labs:
  mounts:
    hosts:
      left:
        emulated: {hostname: controller-0}
        cards:
          card0: {address: 0000:b2:00.0, identity: 64:4c:36:77:01:00}
      moving:
        emulated: {hostname: controller-1}
        cards:
          card0:
            address: 0000:b3:00.0
            identity: 64:4c:36:77:02:00
            emulated: {moves_to: 0000:b2:00.0}
"""
#: Where the card of the host `moving` is after its next reset.
MOVES_TO = "0000:b2:00.0"


@cache
def program_environment() -> dict[str, str]:
    """Return the environment in which the programs of PACKAGES are found; fail the test without them."""
    missing = {package: program for program, package in PACKAGES.items() if installed(program) is None}
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    if not missing:
        return {"PATH": path}
    try:
        root = unpacked(list(missing), tools_folder() / "programs-in-mounts")
    except PackageError as error:
        pytest.fail(
            f"These tests need {', '.join(missing.values())}; unpacking the packages failed: {error}\n"
            f"Install them: sudo apt-get install {' '.join(missing)}",
            pytrace=False,
        )
    folders = [str(root / folder) for folder in _FOLDERS]
    return {"PATH": ":".join([*folders, path])} | library_path(root)


@cache
def _recipes() -> dict[str, Recipe]:
    return load_recipes((PROJECT / "fixtures/images.yaml").read_text())


def image(name: str) -> bytes:
    """Return the image of a recipe of the project."""
    return build(_recipes()[name])


def root_hash(name: str) -> str:
    """Return the root entry hash that a root-key recipe programs."""
    found = _recipes()[name].root_entry_hash()
    assert found
    return found


def blocked(reason: str) -> None:
    """Skip what this machine does not allow, with the reason; fail where everything is to be run."""
    if os.environ.get(UNBLOCKED):
        pytest.fail(f"BLOCKED: {reason}", pytrace=False)
    pytest.skip(f"BLOCKED: {reason}")


class Session:
    """A shell that stays in a mounted host, for many commands; a mount of their own would cost each more."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._errors = tempfile.NamedTemporaryFile("r")  # noqa: SIM115 -- closed with the session
        self._process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run ``command`` by the shell."""
        assert self._process.stdin
        assert self._process.stdout
        mark = f"ended-{os.urandom(8).hex()}"
        self._process.stdin.write(
            f"( {command}\n) 2>{self._errors.name} </dev/null; code=$?; echo; echo {mark} $code\n"
        )
        self._process.stdin.flush()
        lines = []
        while not (line := self._process.stdout.readline()).startswith(mark):
            assert line, "the shell in the mounted host is gone"
            lines.append(line)
        self._errors.seek(0)
        out = "".join(lines)[:-1]  # the newline of the first echo
        return subprocess.CompletedProcess(command, int(line.split()[1]), out, self._errors.read())

    def close(self) -> None:
        """End the shell, and with it the mount."""
        self._process.communicate(timeout=30)
        self._errors.close()


@dataclass
class MountedLab:
    """A lab that is kept running, and commands in its hosts."""

    project: Path
    background: BackgroundLab
    sessions: dict[str, Session] = field(default_factory=dict)
    clients: dict[str, paramiko.SSHClient] = field(default_factory=dict)

    @property
    def bench(self) -> Bench:
        return Bench(self.background.doors().control)

    def argv(self, *command: str, host: str = "left", options: Sequence[str] = ()) -> list[str]:
        """Return the command line that runs ``command`` in the mounted ``host``."""
        return [str(HIL), "lab", "mount", host, *options, "--", *command]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "HIL_INVENTORY": str(self.project / "inventory.yaml"), **program_environment()}

    def run(
        self, *command: str, host: str = "left", options: Sequence[str] = (), stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run ``command`` in the mounted ``host`` to its end."""
        return subprocess.run(
            self.argv(*command, host=host, options=options),
            env=self.environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def popen(self, *command: str, host: str = "left", options: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start ``command`` in the mounted ``host``."""
        return subprocess.Popen(
            self.argv(*command, host=host, options=options),
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def sh(self, command: str, host: str = "left") -> subprocess.CompletedProcess[str]:
        """Run ``command`` by a shell that stays in the mounted ``host``."""
        if host not in self.sessions:
            self.sessions[host] = Session(self.argv("sh", host=host), self.environment())
        return self.sessions[host].run(command)

    def ssh(self, command: str, host: str = "left") -> subprocess.CompletedProcess[str]:
        """Run ``command`` on the emulated ``host`` by its other face."""
        _, stdout, stderr = self._client(host).exec_command(command, timeout=60)
        out, err = stdout.read().decode(), stderr.read().decode()
        return subprocess.CompletedProcess(command, stdout.channel.recv_exit_status(), out, err)

    def put(self, path: str, data: bytes, host: str = "left") -> None:
        """Write a file on the emulated ``host`` by its other face."""
        with self._client(host).open_sftp() as sftp, sftp.open(path, "w") as file:
            file.write(data)

    def _client(self, host: str) -> paramiko.SSHClient:
        if host not in self.clients:
            doors = self.background.doors()
            client = self.clients[host] = paramiko.SSHClient()
            client.load_host_keys(str(doors.known_hosts))
            door = doors.hosts[host]
            client.connect(
                door.address,
                door.port,
                door.user,
                key_filename=str(doors.key_file),
                look_for_keys=False,
                allow_agent=False,
            )
        return self.clients[host]

    def end_session(self, host: str) -> None:
        """End the shell that stays in ``host``, where there is one."""
        if host in self.sessions:
            self.sessions.pop(host).close()

    def close(self) -> None:
        """End what was started."""
        for host in list(self.sessions):
            self.end_session(host)
        for client in self.clients.values():
            client.close()


@pytest.fixture(scope="session")
def mounted_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MountedLab]:
    """A lab of its own for the test process, whose hosts can be mounted."""
    project = tmp_path_factory.mktemp("mounts")
    (project / "inventory.yaml").write_text(INVENTORY)
    inventory = load_inventory(project / "inventory.yaml")
    background = background_lab(inventory)
    background.up(inventory)
    lab = MountedLab(project, background)
    try:
        tried = lab.run("true")
        if tried.returncode == 3:
            blocked(tried.stderr.strip())
        assert tried.returncode == 0, tried.stderr
        yield lab
    finally:
        lab.close()
        background.down(forget=True)


@pytest.fixture
def mounts(mounted_lab: MountedLab) -> MountedLab:
    """The lab, with cards as new."""
    for card in ("left/card0", "moving/card0"):
        mounted_lab.bench.fit(card, {})
    mounted_lab.bench.moves_to("moving/card0", MOVES_TO)
    return mounted_lab

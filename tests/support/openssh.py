"""A real OpenSSH server for tests: the machine's own, or Debian's package unpacked into the project."""

import getpass
import os
import pwd
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import paramiko
import pytest
from support.processes import kill_all_with

from harness.packages import (
    PackageError,
    installed,
    library_path,
    tools_folder,
    unpacked,
)
from harness.registry.ports import free_port

UNPACKED = tools_folder() / "openssh"
#: Privilege separation: sshd as root insists on this folder and on this user.
PRIVSEP_FOLDER = Path("/run/sshd")
PRIVSEP_USER = "sshd"


def find_sshd() -> tuple[Path, dict[str, str]]:
    """Return the server's program and the environment it needs; fail the test where it cannot be had."""
    # As root, Debian's needs a user that only its installation makes; nss_wrapper stands in for it.
    bare_root = os.geteuid() == 0 and not _has_user(PRIVSEP_USER)
    sshd = installed("sshd")
    if sshd and not bare_root:
        return sshd, {}
    try:
        root = _unpacked()
    except PackageError as error:
        pytest.fail(
            f"These tests need a real OpenSSH server. No sshd is installed, and Debian's package could not "
            f"be unpacked into {UNPACKED}: {error}\n"
            "Install openssh-server, or give this machine access to its package archive.",
            pytrace=False,
        )
    wrapper = next(root.glob("usr/lib/**/libnss_wrapper.so"))
    return root / "usr/sbin/sshd", library_path(root) | {"LD_PRELOAD": str(wrapper)}


def client_environment() -> dict[str, str]:
    """Return the environment in which ssh-keygen, ssh-agent and ssh-add are found; fail the test without."""
    if installed("ssh-keygen"):
        return {}
    try:
        root = _unpacked()
    except PackageError as error:
        pytest.fail(f"These tests need ssh-keygen; unpacking it failed: {error}", pytrace=False)
    return {"PATH": f"{root}/usr/bin:{os.environ.get('PATH', '')}"} | library_path(root)


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _unpacked() -> Path:
    """Unpack Debian's server and what of its clients and libraries is not here, once for all processes."""
    return unpacked(("openssh-server", "libnss-wrapper"), UNPACKED)


class OpenSsh:
    """A running server on loopback for the current user, with a host key and a login key of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        path: str = "",
        inside: Sequence[str] = (),
        address: str = "127.0.0.1",
        sftp: bool = True,
        settings: str = "",
        user: str = "",
    ) -> None:
        """``path``: where the sessions of those who log in find programs; by default as sshd has it.

        ``inside``: the command line that runs another one where the server is to be. ``settings``: further
        lines of its configuration, which win over the others. ``user``: who logs in; by default who runs us.
        """
        folder.mkdir(exist_ok=True)
        self.address = address
        self._sftp = sftp
        self._settings = settings
        self._path = path
        self._inside = inside
        #: In the environment of all that sessions here have started, so that it can be found again.
        self._mark = f"HIL_TEST_SERVER={folder}"
        self.user = user or getpass.getuser()
        self.port = 0
        self.host_key = _new_key(folder / "host_key")
        self.key_file = folder / "user_key"
        self.known_hosts = folder / "known_hosts"
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._log: list[str] = []
        (folder / "authorized_keys").write_text(_new_key(self.key_file))

    def start(self) -> None:
        program, environment = find_sshd()
        if os.geteuid() == 0:
            PRIVSEP_FOLDER.mkdir(exist_ok=True)
        if "LD_PRELOAD" in environment:
            environment |= self._accounts()
        for _ in range(5):
            self.port = free_port()
            if self._listens(program, environment):
                break
        else:
            pytest.fail(f"{program} does not start:\n" + "\n".join(self._log), pytrace=False)
        self.known_hosts.write_text(f"[{self.address}]:{self.port} {self.host_key}")

    def stop(self) -> None:
        """End the server and the connections that a failed test left open."""
        if self._process is None:
            return
        connections = _descendants(self._process.pid)
        self._process.terminate()
        self._process.wait(10)
        for pid in connections:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.end_programs()
        self._drain.join(10)
        if self._process.stderr and not self._drain.is_alive():
            self._process.stderr.close()

    def end_programs(self) -> None:
        """End what sessions have started and left behind; what that starts meanwhile, too."""
        kill_all_with(self._mark)

    def _accounts(self) -> dict[str, str]:
        accounts = self._folder / "passwd"
        me = pwd.getpwuid(os.geteuid())
        # A plain shell in a folder of ours: start-up files can take longer than the tests.
        other = pwd.getpwnam(self.user)
        accounts.write_text(
            f"{other.pw_name}:x:{other.pw_uid}:{other.pw_gid}::{self._folder}:/bin/sh\n"
            f"{me.pw_name}:x:{me.pw_uid}:{me.pw_gid}::{self._folder}:/bin/sh\n"
            f"{PRIVSEP_USER}:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
        )
        return {"NSS_WRAPPER_PASSWD": str(accounts), "NSS_WRAPPER_GROUP": "/etc/group"}

    def _listens(self, program: Path, environment: dict[str, str]) -> bool:
        settings = self._folder / "sshd_config"
        settings.write_text(
            f"{self._settings}Port {self.port}\nListenAddress {self.address}\n"
            f"HostKey {self._folder}/host_key\nAuthorizedKeysFile {self._folder}/authorized_keys\n"
            "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nMaxStartups 100\n"
            f"{'Subsystem sftp internal-sftp' if self._sftp else ''}\n"
            # sshd obeys only the first SetEnv.
            f"SetEnv {self._mark}{f' PATH={self._path}' if self._path else ''}\n"
            f"{_settings_since_9_8(program)}"
        )
        # -r: otherwise servers before 9.8 would start themselves once more, without the libraries they need.
        self._process = subprocess.Popen(
            [*self._inside, program, "-D", "-e", "-r", "-f", settings],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        listening = threading.Event()
        self._drain = threading.Thread(target=self._follow, args=(self._process, listening), daemon=True)
        self._drain.start()
        listening.wait(20)
        return self._process.poll() is None and listening.is_set() and self._is_up

    def _follow(self, process: "subprocess.Popen[str]", listening: threading.Event) -> None:
        self._is_up = False
        for line in process.stderr or ():
            self._log.append(line.rstrip())
            if line.startswith(f"Server listening on {self.address}"):
                self._is_up = True
                listening.set()
        listening.set()


def _settings_since_9_8(program: Path) -> str:
    """Return what a server since OpenSSH 9.8 is to be told: where its other programs are, and no penalties.

    It refuses for a while who has left too often without a login, as all tests together do.
    """
    folder = program.parents[1] / "lib/openssh"
    named = {"SshdSessionPath": folder / "sshd-session", "SshdAuthPath": folder / "sshd-auth"}
    there = [f"{name} {path}\n" for name, path in named.items() if path.exists()]
    return "".join([*there, "PerSourcePenalties no\n"] if there else [])


def _descendants(pid: int) -> list[int]:
    """Return what a process has started, and what that has."""
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []  # it has ended meanwhile
    return [*children, *(pid for child in children for pid in _descendants(child))]


def _new_key(path: Path) -> str:
    """Write a new private key to ``path``; return its public line."""
    key = paramiko.ECDSAKey.generate(bits=256)
    key.write_private_key_file(str(path))
    return f"{key.get_name()} {key.get_base64()}\n"

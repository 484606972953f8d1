"""The folder and the namespaces in which a private engine lives; when its first process ends, all end.

The engine, its containerd and its containers share a process namespace whose first process is a shell.
The kernel ends everything in it with that shell, and every mount with the last process. The shell holds a
lock on a file of the folder for as long as it lives, so that neither a number that another process has
got nor a file that was left behind can deceive us.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ConfigurationError, DeadlineError

#: What a registry of this machine is called to a private engine: ::1, where it does check certificates.
NAMES = ("registry.local", "registry.central")
#: How the shell ends where the lock is another's, and where it may not prepare the namespaces.
RUNS_ALREADY, NOT_ALLOWED = 73, 75
#: Bytes of a path that leads to a socket, and the longest one that an engine makes in its folder.
_SOCKET_BYTES = 107
_LONGEST_SOCKET = "exec/containerd/containerd-debug.sock"
_POLL_SECONDS = 0.01
_KILL_SECONDS = 30.0
_CGROUPS = Path("/sys/fs/cgroup")

# What the machine mounts later is seen inside, and what is mounted inside is not seen on the machine.
_OUTSIDE = r"""
exec 9>>"$1/engine.lock"
flock -n 9 || exit 73
exec unshare --mount --propagation slave --pid --fork --kill-child --mount-proc -- sh -c "$INSIDE" inside "$@"
"""
# A copy of /etc, for /etc/docker may be missing, and what an engine writes there is not for the machine.
# The sockets of containers would be in the machine's /run/containerd.
_INSIDE = r"""
prepared() {
  rm -rf "$1/exec" "$1/docker.pid" "$1/docker.sock" &&
  mount -t tmpfs -o mode=755 tmpfs "$1/etc" && cp -a /etc/. "$1/etc/" && mount --bind "$1/etc" /etc &&
  rm -rf /etc/docker && mkdir -p /etc/docker/certs.d &&
  mount --bind "$1/certs.d" /etc/docker/certs.d && cat "$1/hosts" >/etc/hosts &&
  mkdir -p /run/containerd && mount -t tmpfs -o mode=711 tmpfs /run/containerd
}
prepared "$1" || exit 75
"$2" -H "unix://$1/docker.sock" --data-root "$1/data" --exec-root "$1/exec" --pidfile "$1/docker.pid" \
  --bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
  --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent="/$3" 9>&- &
trap "kill -TERM $!" TERM
wait $!
wait $!
"""


@dataclass(frozen=True, slots=True)
class Enclosure:
    """The place of one private engine, whether it runs or not."""

    folder: Path

    @property
    def socket(self) -> Path:
        """Where the engine answers."""
        return self.folder / "docker.sock"

    @property
    def log(self) -> Path:
        """What the engine says."""
        return self.folder / "engine.log"

    @property
    def certificates(self) -> Path:
        """The engine's /etc/docker/certs.d."""
        return self.folder / "certs.d"

    @property
    def _lock(self) -> Path:
        return self.folder / "engine.lock"

    @property
    def _cgroup(self) -> str:
        return "hil-engine-" + str(self.folder).strip("/").replace("/", "-")

    def command(self, dockerd: Path) -> tuple[list[str], dict[str, str]]:
        """Return what starts the engine, and what it needs in its environment."""
        command = ["sh", "-c", _OUTSIDE, "outside", str(self.folder), str(dockerd), self._cgroup]
        return command, {"INSIDE": _INSIDE}

    def check(self) -> None:
        """Return if the folder can be used. :raises ConfigurationError: it cannot; says why."""
        self.check_known()
        if len(os.fsencode(self.folder / _LONGEST_SOCKET)) > _SOCKET_BYTES:
            raise ConfigurationError(
                f"{self.folder} is too long a path for an engine; a socket's has {_SOCKET_BYTES} bytes.",
                hint="Choose a shorter one, such as /tmp/engine.",
            )

    def check_known(self) -> None:
        """Return if the folder is an engine's, or has nothing in it yet.

        :raises ConfigurationError: it is another's, or no longer known as an engine's.
        """
        try:
            others = self.folder.exists() and not self.known and any(self.folder.iterdir())
        except OSError as error:
            raise ConfigurationError(f"{self.folder} cannot be a folder: {error.strerror}.") from None
        if others:
            raise ConfigurationError(
                f"{self.folder} has no engine.lock, so it is not an engine's; it is left alone.",
                hint="Choose a folder that is empty or not there yet.",
            )

    def prepare(self) -> None:
        """Make the folder and what is in it at the start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock.touch()
        for name in ("etc", "certs.d", "data"):
            (self.folder / name).mkdir(exist_ok=True)
        hosts = Path("/etc/hosts")
        lines = hosts.read_text(errors="replace").splitlines() if hosts.exists() else []
        kept = [line for line in lines if not set(NAMES) & set(line.split())]
        (self.folder / "hosts").write_text("\n".join([f"::1 {' '.join(NAMES)}", *kept, ""]))

    @property
    def known(self) -> bool:
        """Whether the folder is one of an engine, which may have ended."""
        return self._lock.exists() or self.keeper() is not None

    def keeper(self) -> int | None:
        """Return the shell in which everything lives; None where nothing runs."""
        return next((pid for pid in self._keepers() if _is_first(pid)), None)

    def _keepers(self) -> Iterator[int]:
        """Yield the processes that hold the lock: the shell, and the one that waits for it outside.

        They are found by what they hold open, also where somebody has removed the file.
        """
        names = {str(self._lock), f"{self._lock} (deleted)"}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                for descriptor in (process / "fd").iterdir():
                    with suppress(OSError):
                        held = str(descriptor.readlink()) in names
                        if held and "FLOCK" in (process / "fdinfo" / descriptor.name).read_text():
                            yield int(process.name)

    def pid_here(self, pid: int) -> int | None:
        """Return what the process ``pid`` of the engine is called on this machine; None where it is gone."""
        parents: dict[int, int] = {}
        named: list[int] = []
        for status in Path("/proc").glob("[0-9]*/status"):
            with suppress(OSError):
                lines = dict(
                    line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line
                )
                here, *inner = map(int, lines["NSpid"].split())
                parents[here] = int(lines["PPid"])
                if inner and inner[0] == pid:
                    named.append(here)
        keeper = self.keeper()
        return next((here for here in named if keeper and keeper in _line(here, parents)), None)

    def end(self, *, deadline: float) -> None:
        """End what runs with a TERM, and what has not ended by the deadline with a KILL.

        :raises DeadlineError: that does not end it.
        """
        for number, seconds in ((signal.SIGTERM, deadline), (signal.SIGKILL, _KILL_SECONDS)):
            keeper = self.keeper()
            if keeper is not None and seconds:
                with suppress(ProcessLookupError):
                    os.kill(keeper, number)
                if _within(seconds, lambda: next(self._keepers(), None) is None):
                    break
        if (left := next(self._keepers(), None)) is not None:
            raise DeadlineError(
                f"Waited {_KILL_SECONDS:g} s for the engine in {self.folder} (process {left}) to end."
            )

    def remove(self, *, deadline: float = 0.0) -> None:
        """End what runs, and remove what an engine left, and nothing else."""
        if not self.known:
            return
        self.end(deadline=deadline)
        for hierarchy in (*_CGROUPS.glob(f"*/{self._cgroup}"), *_CGROUPS.glob(self._cgroup)):
            for group in sorted(hierarchy.rglob("*/"), reverse=True):
                with suppress(OSError):
                    group.rmdir()
            with suppress(OSError):
                hierarchy.rmdir()
        for name in ("data", "exec", "etc", "certs.d"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("docker.pid", "docker.sock", "hosts", "engine.log", "engine.lock"):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # something of somebody else's is in it
            self.folder.rmdir()


def _is_first(pid: int) -> bool:
    """Return whether the process is the first one of a namespace."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return line.split()[2:] == ["1"]
    return False


def _line(pid: int, parents: dict[int, int]) -> Iterator[int]:
    """Yield a process, its parent, that one's parent and so on."""
    while pid in parents:
        yield pid
        pid = parents[pid]


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Wait for ``condition``; return whether it came about."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return True


if __name__ == "__main__":  # for the watchdog of an engine whose harness was killed
    Enclosure(Path(sys.argv[1])).remove()

"""How a registry is kept on a host: a systemd unit, or a service of StarlingX's service manager."""

from __future__ import annotations

import hashlib
import posixpath
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.errors import InfrastructureError, NotOfferedError
from harness.hosts.permits import Authority
from harness.hosts.protocol import CommandResult, Host

_AUTHORITY = Authority("registry")
_COMMAND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Hands:
    """Acts on one host: every command and write with a permit of its own, for its reason.

    ``prefix``: what makes a command run as root, such as ``("sudo", "-n")``.
    """

    host: Host
    prefix: tuple[str, ...] = ()

    def run(self, argv: Sequence[str], reason: str, *, deadline: float = _COMMAND_SECONDS) -> CommandResult:
        """Run ``argv``; a non-zero exit code is a result."""
        whole = (*self.prefix, *argv)
        permit = _AUTHORITY.command("service", self.host.name, whole, reason)
        return self.host.run(whole, permit=permit, deadline=deadline)

    def do(self, argv: Sequence[str], reason: str, *, deadline: float = _COMMAND_SECONDS) -> CommandResult:
        """Run ``argv``. :raises InfrastructureError: it fails."""
        result = self.run(argv, reason, deadline=deadline)
        if result.exit_code != 0:
            last = result.text.strip().rpartition("\n")[2]
            raise InfrastructureError(
                f"`{' '.join(argv)[:120]}` failed on {self.host.name} "
                f"({'the link broke' if result.lost else result.exit_code}): {last or 'it said nothing'}.",
                hint="May the user do that? `sudo` in the registry's description runs it as root.",
            )
        return result

    def put(self, content: bytes, path: str, reason: str) -> None:
        """Write ``content`` to ``path``; as root that needs a login as root."""
        digest = hashlib.sha256(content).hexdigest()
        permit = _AUTHORITY.write("service", self.host.name, path, digest, reason)
        self.host.put(content, path, permit=permit)


class Manager(Protocol):
    """What keeps a registry on a host."""

    #: What it is asked for when the registry is restarted, in words.
    restarts_by: str

    def pid(self) -> int | None:
        """Return the process id of the registry; None where it does not run."""
        ...

    def start(self) -> None:
        """Have it started. :raises NotOfferedError: this manager does not do that on its own."""
        ...

    def stop(self) -> None:
        """Have it stopped. :raises NotOfferedError: this manager does not do that on its own."""
        ...

    def restart(self, between: Callable[[], None] | None) -> None:
        """Have it restarted, with ``between`` called before it starts again."""
        ...

    def set_read_only(self, on: bool) -> None:
        """Change the configuration that the next start reads."""
        ...

    def undo_of_stop(self) -> str:
        """Return what a shell on the host undoes a stop with.

        :raises NotOfferedError: this manager does not do that on its own.
        """
        ...

    def undo_of_read_only(self) -> str:
        """Return what a shell on the host makes it take writes again with, where it does not."""
        ...

    def configuration(self) -> str:
        """Return the path of the configuration."""
        ...

    def log_lines(self, skip: int) -> list[str]:
        """Return the registry's log but for its first ``skip`` lines; all where it has fewer."""
        ...


class Systemd:
    """A systemd unit, such as Debian's ``docker-registry.service``.

    :param runtime: where units are changed until the next boot: a fault's undo that needs nobody.
    """

    restarts_by = "systemctl restart"

    def __init__(
        self,
        hands: Hands,
        unit: str = "docker-registry.service",
        *,
        config: str = "/etc/docker/registry/config.yml",
        runtime: str = "/run/systemd/system",
    ) -> None:
        self._hands = hands
        self._unit = unit
        self._config = config
        self._drop_in = posixpath.join(runtime, f"{unit}.d", "hil-read-only.conf")

    def pid(self) -> int | None:
        """Return the main process of the unit."""
        said = self._hands.host.run(["systemctl", "show", "-p", "MainPID", self._unit]).stdout.strip()
        number = said.rpartition("=")[2]
        return int(number) if number.isdigit() and int(number) else None

    def start(self) -> None:
        """Start the unit."""
        self._hands.do(["systemctl", "start", self._unit], "start the registry")

    def stop(self) -> None:
        """Stop the unit."""
        self._hands.do(["systemctl", "stop", self._unit], "stop the registry")

    def restart(self, between: Callable[[], None] | None) -> None:
        """Restart the unit; in two steps where something happens between."""
        if between is None:
            self._hands.do(["systemctl", "restart", self._unit], "restart the registry")
            return
        self.stop()
        between()
        self.start()

    def set_read_only(self, on: bool) -> None:
        """Add or remove a setting that is gone after a reboot of the host."""
        if on:
            folder = posixpath.dirname(self._drop_in)
            content = b"[Service]\nEnvironment='REGISTRY_STORAGE_MAINTENANCE_READONLY={\"enabled\":true}'\n"
            self._hands.do(["mkdir", "-p", folder], "make the registry read-only")
            self._hands.put(content, self._drop_in, "make the registry read-only")
        else:
            self._hands.do(["rm", "-f", self._drop_in], "let the registry take writes again")
        self._hands.do(["systemctl", "daemon-reload"], "have the unit read again")

    def undo_of_stop(self) -> str:
        """Return what a shell starts the unit with."""
        return shlex.join(["systemctl", "start", self._unit])

    def undo_of_read_only(self) -> str:
        """Return what removes the setting and restarts the unit, if it is there."""
        unit, drop_in = shlex.quote(self._unit), shlex.quote(self._drop_in)
        return f"[ ! -e {drop_in} ] || {{ rm {drop_in}; systemctl daemon-reload; systemctl restart {unit}; }}"

    def configuration(self) -> str:
        """Return the path of the configuration."""
        return self._config

    def log_lines(self, skip: int) -> list[str]:
        """Return what the journal has of the unit."""
        read = ["journalctl", "--no-pager", "-q", "-o", "short-iso-precise", "-u", self._unit]
        return _but_first(self._hands.host.run(read).stdout.splitlines(), skip)


class StarlingX:
    """StarlingX's registry under its service manager (fact sheet of StarlingX, section 7.4).

    ``sm-restart-safe`` asks for a restart and does not wait for it. Starting and stopping on its own is
    left to the service manager, which would undo it.

    :param log: where the registry's lines are, among those of others.
    """

    restarts_by = "sm-restart-safe"

    def __init__(
        self,
        hands: Hands,
        service: str = "docker-distribution",
        *,
        folder: str = "/etc/docker-distribution/registry",
        pid_file: str = "/var/run/docker-distribution.pid",
        log: str = "/var/log/daemon.log",
        restart: Sequence[str] = ("sm-restart-safe",),
    ) -> None:
        self._hands = hands
        self._service = service
        self._folder = folder
        self._pid_file = pid_file
        self._log = log
        self._restart = tuple(restart)

    def pid(self) -> int | None:
        """Return what the file says, if that process is there."""
        try:
            number = self._hands.host.read(self._pid_file).decode(errors="replace").strip()
        except OSError:
            return None
        if not number.isdigit():
            return None
        alive = self._hands.host.run(["test", "-d", f"/proc/{number}"]).exit_code == 0
        return int(number) if alive else None

    def start(self) -> None:
        """Not done: the service manager starts it. :raises NotOfferedError: always."""
        raise self._not_done("started")

    def stop(self) -> None:
        """Not done: the service manager would start it again. :raises NotOfferedError: always."""
        raise self._not_done("stopped")

    def _not_done(self, what: str) -> NotOfferedError:
        return NotOfferedError(
            f"The service {self._service} on {self._hands.host.name} is not {what} on its own: "
            "StarlingX's service manager decides that."
        )

    def restart(self, between: Callable[[], None] | None) -> None:
        """Ask for a restart. ``between`` comes before: the registry reads its files when it starts."""
        if between is not None:
            between()
        self._hands.do([*self._restart, "service", self._service], "restart the registry")

    def set_read_only(self, on: bool) -> None:
        """Let the configuration's link lead to the one or the other, as its own garbage collection does."""
        self._hands.do(self._linked(on), "change the registry's configuration")

    def _linked(self, read_only: bool) -> list[str]:
        target = "readonly_config.yml" if read_only else "runtime_config.yml"
        return ["ln", "-sfn", posixpath.join(self._folder, target), self.configuration()]

    def undo_of_stop(self) -> str:
        """Not done: the service manager would start it again. :raises NotOfferedError: always."""
        raise self._not_done("stopped")

    def undo_of_read_only(self) -> str:
        """Return what leads the link back and asks for a restart."""
        return f"{shlex.join(self._linked(False))}; {shlex.join([*self._restart, 'service', self._service])}"

    def configuration(self) -> str:
        """Return the path of the configuration."""
        return posixpath.join(self._folder, "config.yml")

    def log_lines(self, skip: int) -> list[str]:
        """Return the registry's lines of the system's log."""
        read = ["grep", "-h", "-E", r" (docker-)?registry\[[0-9]+\]: ", self._log]
        return _but_first(self._hands.host.run(read).stdout.splitlines(), skip)


def _but_first(lines: list[str], skip: int) -> list[str]:
    """Return what follows the first ``skip`` lines; a log that has fewer was rotated, and all is new."""
    return lines[skip:] if len(lines) >= skip else lines

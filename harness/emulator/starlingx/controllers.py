"""The controllers among a system's hosts: the commands that they have, and which of them is active."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from harness.emulator.programs.base import Executable, Invocation, Main

if TYPE_CHECKING:
    from harness.emulator.host import EmulatedHost

OPENRC: Final = "/etc/platform/openrc"
#: Below what is mounted on the active controller alone; OPENRC of both takes the password from there.
_CREDENTIAL: Final = "/opt/platform/.keyring/.CREDENTIAL"
#: Command -> where it is.
_COMMANDS: Final = {
    "system": ("starlingx.cli", "run_system"),
    "fm": ("starlingx.cli", "run_fm"),
    "sw-manager": ("distributed_cloud.sw_manager_cli", "run_sw_manager"),
    "dcmanager": ("distributed_cloud.dcmanager_cli", "run_dcmanager"),
}
_OPENRC: Final = """\
unset OS_SERVICE_TOKEN

export OS_ENDPOINT_TYPE=internalURL
export OS_USERNAME=admin
export OS_PASSWORD=`cat {credential} 2>/dev/null`
export OS_AUTH_TYPE=password
export OS_AUTH_URL={url}
export OS_PROJECT_NAME=admin
export OS_USER_DOMAIN_NAME=Default
export OS_PROJECT_DOMAIN_NAME=Default
export OS_IDENTITY_API_VERSION=3
export OS_REGION_NAME=RegionOne
export OS_INTERFACE=internal

if [ ! -z "${{OS_PASSWORD}}" ]; then
    export PS1='[\\u@\\h \\W(keystone_$OS_USERNAME)]\\$ '
else
    echo 'Openstack Admin credentials can only be loaded from the active controller.'
    export PS1='\\h:\\w\\$ '
fi
"""


def controllers_of(hosts: Sequence[EmulatedHost]) -> list[EmulatedHost]:
    """Return the controllers: the hosts that are called so, or the first one where none is."""
    return [host for host in hosts if host.hostname.startswith("controller")] or list(hosts[:1])


def install_commands(hosts: Sequence[EmulatedHost], release: str, url: str, password: str) -> None:
    """Give the controllers among ``hosts`` their commands and the file of the login; the first is active.

    ``url``: of the system's Keystone.
    """
    controllers = controllers_of(hosts)
    programs: dict[str, Main] = {name: _later(*place, release) for name, place in _COMMANDS.items()}
    programs["keyctl"] = _keyctl
    for host in controllers:
        for name, main in programs.items():
            host.programs[name] = main
            host.vfs.place(f"/usr/bin/{name}", Executable(name, main))
        host.vfs.write(OPENRC, _OPENRC.format(credential=_CREDENTIAL, url=url).encode(), 0o600)
    for host in controllers[:1]:
        host.vfs.write(_CREDENTIAL, f"{password}\n".encode(), 0o600)
    for host in hosts:
        if host not in controllers:
            host.vfs.write("/etc/platform/platform.conf", b"nodetype=worker\nhttp_port=8080\n")


def _later(module: str, name: str, release: str) -> Main:
    def run(invocation: Invocation) -> int:
        from importlib import import_module  # most labs never call it

        found: int = getattr(import_module(f"harness.emulator.{module}"), name)(invocation, release)
        return found

    return run


def _keyctl(run: Invocation) -> int:
    """Is there; the emulated commands keep no token in a keyring, and it knows none."""
    run.err("Unknown command\n" if run.argv[1:] else "Format:\n  keyctl --version\n")
    return 2


class Activity:
    """Which controller of a system is the active one: that which has the credentials."""

    def __init__(self, hosts: Sequence[EmulatedHost]) -> None:
        self._controllers = controllers_of(hosts)

    @property
    def active(self) -> EmulatedHost | None:
        """The active controller; None in a system without hosts, or whose credentials were removed."""
        return next((host for host in self._controllers if host.vfs.exists(_CREDENTIAL)), None)

    def other(self, hostname: str) -> EmulatedHost | None:
        """Return the controller that could take over from ``hostname``; None where there is none."""
        return next((host for host in self._controllers if host.hostname != hostname and host.powered), None)

    def move(self, hostname: str) -> bool:
        """Make another controller active in place of ``hostname``; return whether that was possible."""
        active, other = self.active, self.other(hostname)
        if active is None or other is None or active.hostname != hostname:
            return False
        other.vfs.write(_CREDENTIAL, active.vfs.read(_CREDENTIAL), 0o600)
        active.vfs.unlink(_CREDENTIAL)
        return True

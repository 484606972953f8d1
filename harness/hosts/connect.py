"""From an inventory's host to a driver of it; nothing is connected before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import ConfigurationError
from harness.hosts.access import Access
from harness.hosts.local import LocalHost
from harness.hosts.refusals import Told, tells_nobody

if TYPE_CHECKING:
    from harness.hosts.protocol import Host as HostDriver
    from harness.inventory.model import Host


def connect(entry: Host, access: Access | None, *, refused: Told = tells_nobody) -> HostDriver:
    """Return the driver of the host ``entry``.

    :param access: how it is reached over SSH, as the running lab says; None for the local machine.
    :param refused: is told of what the host refuses to do.
    :raises ConfigurationError: the host is not local, and no access is given.
    """
    tools = entry.tools.model_dump()
    if entry.local:
        return LocalHost(entry.name, tools=tools, refused=refused)
    if access is None:
        raise ConfigurationError(
            f"The host {entry.name} is not local, and nothing says how to reach it.",
            hint="Give it `ssh` in the inventory, or start the lab that emulates it.",
        )
    from harness.hosts.ssh import SshHost  # paramiko takes 135 ms to import

    return SshHost(entry.name, access, tools=tools, refused=refused)

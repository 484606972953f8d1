"""`sm-restart-safe` of a system's controllers: asks the service manager for a restart of one service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.emulator.starlingx.controllers import controllers_of

if TYPE_CHECKING:
    from harness.emulator.host import EmulatedHost
    from harness.emulator.programs.base import Invocation


def install_service_manager(
    hosts: Sequence[EmulatedHost], services: Mapping[str, Callable[[], None]]
) -> None:
    """Give the controllers of a system the command. ``services``: name -> restarts that service.

    As the real one it says nothing, and does not tell a service that there is not (section 7.4: it sends one
    message and waits for no answer).
    """
    from harness.emulator.programs.base import Executable

    def restart(run: Invocation) -> int:
        if len(run.argv) != 3 or run.argv[1] != "service":
            run.out(f"usage: {run.name} service <service-name>\n")
            return 1
        if run.argv[2] in services:
            services[run.argv[2]]()
        return 0

    for host in controllers_of(hosts):
        host.programs["sm-restart-safe"] = restart
        host.vfs.place("/usr/bin/sm-restart-safe", Executable("sm-restart-safe", restart))

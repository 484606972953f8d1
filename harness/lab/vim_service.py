"""Restarts the VIM of a StarlingX system alone, as its service manager does for an operator."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from harness.controlplane.active import Controllers
from harness.controlplane.command import Command
from harness.controlplane.vim import SHOW
from harness.errors import ControlPlaneError, DeadlineError, InfrastructureError
from harness.hosts.permits import Authority
from harness.hosts.protocol import Host

_AUTHORITY: Final = Authority("lab")
#: Asks for a restart, without what depends on the service, and does not wait for it (fact sheet of StarlingX,
#: section 7.4). The service's name is that of the public sources.
RESTART: Final = ("sm-restart-safe", "service", "vim")
#: Seconds until a VIM that was restarted answers, and from one question to the next.
_DEADLINE: Final = 120.0
_PAUSES: Final = (0.05, 2.0)


class VimService:
    """The VIM of one system. :param hosts: of which one is its active controller."""

    def __init__(self, name: str, hosts: Sequence[Host]) -> None:
        self._name = name
        self._controllers = Controllers(name, hosts)
        self._sw_manager = Command(name, self._controllers, ("sw-manager",))

    def restart(self, *, deadline: float = _DEADLINE) -> str:
        """Have it restarted, and return when it answers again; return the name of the host.

        :raises InfrastructureError: the host's service manager does not do it.
        :raises DeadlineError: it does not answer in time.
        """
        self._sw_manager.ask(*SHOW)  # which the active controller alone answers
        host = self._controllers.on_active(self._asked)
        self._wait(deadline)
        return host

    @staticmethod
    def _asked(host: Host) -> str:
        permit = _AUTHORITY.command("service", host.name, RESTART, "restart the VIM")
        done = host.run(RESTART, permit=permit, deadline=60.0)
        if done.exit_code != 0:
            said = done.text.strip().rpartition("\n")[2] or "it said nothing"
            raise InfrastructureError(
                f"`{' '.join(RESTART)}` failed on {host.name} ({done.exit_code}): {said}.",
                hint="It takes root, and the service manager of a StarlingX controller.",
            )
        return host.name

    def _wait(self, deadline: float) -> None:
        end, pause = time.monotonic() + deadline, _PAUSES[0]
        while True:
            try:
                self._sw_manager.ask(*SHOW)
            except (ControlPlaneError, InfrastructureError) as error:
                if time.monotonic() > end:
                    raise DeadlineError(
                        f"Waited {deadline:g} s for the VIM of {self._name} to answer after its restart; "
                        f"last: {error.message}"
                    ) from None
            else:
                return
            # Nothing tells when a service answers; asking is the only condition there is.
            time.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])

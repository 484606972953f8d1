"""Which host of a system runs its commands: the active controller, which another may become at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from harness.errors import BlockedError, InfrastructureError, LinkLostError, NotActiveError, UnreachableError
from harness.hosts.protocol import Host

R = TypeVar("R")


class Controllers:
    """The hosts of a system that may be its active controller, the one that was it last first.

    :param name: of the system, for messages. :param hosts: in the order in which they are tried.
    :raises BlockedError: there is none.
    """

    def __init__(self, name: str, hosts: Sequence[Host]) -> None:
        if not hosts:
            raise BlockedError(
                f"{name} has no host in the inventory on which its command could run.",
                hint="Ask its API, or give the controller's host `system` in the inventory.",
            )
        self._name = name
        self._hosts = list(hosts)

    def close(self) -> None:
        """Release the connections; may be called twice."""
        for host in self._hosts:
            host.close()

    def on_active(self, act: Callable[[Host], R]) -> R:
        """Do something on the active controller; return what that returns.

        Another host is tried where one is not active, or was not reached at all: nothing was asked of it.

        :raises NotActiveError: none of several is active. Whatever ``act`` raises besides.
        """
        refusals: list[InfrastructureError] = []
        for host in tuple(self._hosts):
            try:
                done = act(host)
            except (NotActiveError, UnreachableError) as error:
                if isinstance(error, LinkLostError):
                    raise
                refusals.append(error)
            else:
                self._hosts.sort(key=lambda known: known is not host)
                return done
        if len(refusals) == 1:
            raise refusals[0]
        raise NotActiveError(
            f"No host of {self._name} is its active controller: {' '.join(e.message for e in refusals)}",
            hint="A swact or a boot may be under way; else name the host of a controller in the inventory.",
        )

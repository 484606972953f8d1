"""The labgrid places of a run: had from its first change on a host until it ends, also after a kill."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.errors import InfrastructureError, LeasedError, LeaseLostError

if TYPE_CHECKING:
    from harness.inventory.places import LabgridPlace
    from harness.leases.holder import LeaseHolder
    from harness.leases.labgrid import Coordinator

_REASON = "a run has its place of labgrid"


class Places:
    """What a run has of labgrid's places. labgrid does not notice that a client is gone; leases do.

    So a place is a lease of its own besides: whoever gets that gives the place back for the run that had it
    before, if labgrid still counts it as that run's, and takes it.

    :param run: the run's name. :param holder: makes what holds these leases; None where another process of
        the run takes the places: then they are only looked at.
    """

    def __init__(self, run: str, holder: Callable[[], LeaseHolder] | None) -> None:
        self._name = _name(socket.gethostname(), run)
        self._make_holder = holder
        self._holder: LeaseHolder | None = None
        self._held: dict[str, LabgridPlace] = {}

    def hold(self, place: LabgridPlace) -> None:
        """Have ``place`` from here until the run ends; nothing happens where it has it.

        :raises LeasedError: somebody else has it. :raises LeaseLostError: it was ours.
        :raises ConfigurationError: there is no such place. :raises BlockedError: labgrid is not installed.
        :raises InfrastructureError: coordinator or leases do not answer.
        """
        key = _key(place)
        coordinator = self._coordinator(place)
        if key in self._held:
            assert self._holder is not None
            self._holder.check(key)
        elif self._make_holder is not None:
            self._take(coordinator, place, key, self._make_holder)
            self._held[key] = place
            return
        if (owner := coordinator.owner(place.place)) != self._name:
            raise (LeaseLostError if key in self._held else LeasedError)(
                f"{owner or 'Nobody'} has the place {place} of labgrid, and not this run; "
                "nothing was changed.",
                hint=f"See: labgrid-client -x {place.coordinator} who",
            )

    def close(self) -> None:
        """Give all places back. A coordinator that does not answer is left alone: the next run does it."""
        if self._holder is None:
            return
        for place in self._held.values():
            with suppress(InfrastructureError):
                self._coordinator(place).release(place.place, self._name)
        self._held.clear()
        self._holder.close()
        self._holder = None

    def _coordinator(self, place: LabgridPlace) -> Coordinator:
        from harness.leases.labgrid import Coordinator

        return Coordinator(place.coordinator, self._name)

    def _take(
        self, coordinator: Coordinator, place: LabgridPlace, key: str, holder: Callable[[], LeaseHolder]
    ) -> None:
        if self._holder is None:
            self._holder = holder()
        lease = self._holder.hold(key, f"{place.place} (labgrid)", _REASON, settle=lambda: None)
        try:
            if lease.before is not None:
                coordinator.release(place.place, _name(lease.before.machine, lease.before.name))
            coordinator.acquire(place.place)
        except BaseException:
            self._holder.give_back(key)
            raise


def _name(machine: str, run: str) -> str:
    """Return how labgrid knows a run: as its own clients are, ``host/user``."""
    return f"{machine}/hil:{run}"


def _key(place: LabgridPlace) -> str:
    return f"labgrid {place.coordinator}/{place.place}"

"""The leases of a lab's cards: which need one, and that a card is idle before its new owner writes to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.errors import UnreachableError
from harness.lab.health import LabHealth
from harness.lab.wearing import RunUpdates

if TYPE_CHECKING:
    from harness.hosts.access import Access
    from harness.hosts.protocol import Host as Reached
    from harness.inventory.model import Card, Host, Lab
    from harness.leases.holder import LeaseHolder
    from harness.leases.store import LeaseStore

_REASON: Final = "a run"


def lease_key(host: Host, card: Card, kept: str = "") -> str:
    """Return what tells a card from all others, whoever's inventory it stands in.

    :param kept: where the emulated lab of the card is kept; its cards have the identities of the inventory,
        and so have those of its copies.
    """
    if host.emulated is not None:
        return f"{_machine()}:{kept}/{card.identity or f'{host.name}/{card.name}'}"
    if card.identity is not None:
        return card.identity.lower()
    return f"{f'{host.ssh.address}:{host.ssh.port}' if host.ssh else _machine()}/{card.address}"


def _machine() -> str:
    import socket

    return socket.gethostname()


def leases_of(
    run: str,
    reports: Path = Path("reports"),
    said: str | None = None,
    index: str | None = None,
    *,
    wait: float = 0.0,
    worker: bool = False,
    folder: str = "",
) -> LeaseHolder:
    """Return what holds the leases of this process, in the run of that name; nothing is opened yet.

    :param folder: the name of the folder that all processes of the run share; empty: this is all of it.
    :param wait: seconds that a card which somebody else has is waited for. :param worker: another process of
        the run, which outlives this one, takes the places of labgrid.
    The rest as for :func:`harness.leases.store.leases_url`.
    """
    from harness.leases.holder import LeaseHolder
    from harness.leases.owner import run_of, this_process
    from harness.leases.places import Places

    def opened() -> LeaseStore:
        from harness.leases.store import LeaseStore, leases_url

        return LeaseStore(leases_url(reports, said, index))

    owner = this_process(run)
    places = Places(run, None if worker else lambda: LeaseHolder(opened, owner, wait=wait))
    return LeaseHolder(opened, owner, wait=wait, places=places, run=run_of(folder, owner))


def _connected(host: Host, access: Callable[[str], Access | None]) -> closing[Reached]:
    from harness.hosts.connect import connect

    return closing(connect(host, access(host.name)))


class LabLeases:
    """The leases of one lab's cards. Emulated cards that nobody else can reach need none.

    :param access: says how a host is reached. :param kept: where the lab's emulated part is kept running;
        empty where it ends with us.
    """

    def __init__(
        self, entry: Lab, holder: LeaseHolder, access: Callable[[str], Access | None], kept: str = ""
    ) -> None:
        self._entry = entry
        self._holder = holder
        self._kept = kept
        self._turns: Counter[str] = Counter()
        #: Connects to a host for as long as it is asked whether a card is idle.
        self.reach: Callable[[Host], AbstractContextManager[Reached]] = lambda host: _connected(host, access)
        #: What a card is wanted for, for those who want it too.
        self.reason = _REASON
        #: How far its cards are to be trusted; asked before one is written to.
        self.health = LabHealth(entry, self._shared_key, holder)
        #: The updates of its cards that this run has begun.
        self.updates = RunUpdates(entry, self._shared_key, holder)

    def _shared_key(self, name: str) -> str | None:
        host, card = self._entry.card(name)
        return lease_key(host, card, self._kept) if self.needs(host) else None

    def needs(self, host: Host) -> bool:
        """Return whether others can reach the cards of ``host``."""
        return host.real or bool(self._kept)

    def turn(self, name: str) -> int | None:
        """Return a number that is another one once the card ``host/card`` may have been written to.

        That is when it was somebody else's, and when a write of ours was let pass. None where no lease tells.
        """
        host, _ = self._entry.card(name)
        return self._turns[name] if self.needs(host) else None

    @contextmanager
    def leased(self, name: str) -> Iterator[None]:
        """Have the lease of the card ``host/card`` meanwhile; then all that we have is given back.

        Errors as of :meth:`hold`.
        """
        try:
            self.hold(name)
            yield
        finally:
            self._holder.give_back()

    def hold(self, name: str, *, at_rest: bool = True) -> None:
        """Have the lease of the card ``host/card`` until it is given back, once the card is idle.

        :param at_rest: the host must say that it is; else one that does not answer is let pass.
        :raises BlockedError: its health keeps it from runs, or a check of it.
        :raises LeasedError: somebody else has it, or its host in labgrid.
        :raises LeaseLostError: it was ours.
        :raises InfrastructureError: the leases, labgrid, or the host, do not answer.
        :raises DeadlineError: an update that somebody began does not end.
        """
        host, card = self._entry.card(name)
        if not self.needs(host):
            return
        key = lease_key(host, card, self._kept)
        if not self._holder.holds(key):
            self.health.require(name)
        if host.labgrid is not None and self._holder.places is not None:
            self._holder.places.hold(host.labgrid)

        def settle() -> None:
            self._turns[name] += 1  # others have had it
            with suppress(*(() if at_rest else (UnreachableError,))):
                self._wait_until_idle(host, card)

        self._holder.hold(key, name, self.reason, settle=settle)
        if at_rest:
            self.health.check(name, self.reach)

    def check(self, name: str, *, at_rest: bool = True) -> None:
        """Return if the card ``host/card`` may be written to now; takes its lease where we have none yet.

        :raises LeaseLostError: the lease is another's by now; other errors as of :meth:`hold`.
        """
        host, card = self._entry.card(name)
        if not self.needs(host):
            return
        self._turns[name] += 1
        self.hold(name, at_rest=at_rest)
        self._holder.check(lease_key(host, card, self._kept))

    def check_host(self, name: str) -> None:
        """Return if whatever happens to the host ``name``, its power too, may happen to its cards.

        A host that does not answer is let pass: its power is what brings it back. Errors as of :meth:`check`.
        """
        for card in self._entry.host(name).cards:
            self.check(f"{name}/{card}", at_rest=False)

    def check_system(self, name: str) -> None:
        """Return if a system, and the subclouds of it, may change its cards. Errors as of :meth:`check`."""
        own = {name, *(c.name for c in self._entry.controllers.values() if c.parent == name)}
        for host in self._entry.hosts.values():
            if host.system in own:
                for card in host.cards:
                    self.check(f"{host.name}/{card}")

    def _wait_until_idle(self, host: Host, card: Card) -> None:
        from harness.cards.discovery import find_card
        from harness.cards.driver import IDLE_DEADLINE
        from harness.cards.looking import CardReader, wait_until_idle
        from harness.cards.truth import UPDATE_FIELDS

        with self.reach(host) as reached:
            found = find_card(reached, card.identity, sysfs=host.sysfs) if card.identity else None
            reader = CardReader(reached, host.sysfs)
            address = found or card.address
            name = f"{host.name}/{card.name}"
            wait_until_idle(lambda: reader.truth(address, UPDATE_FIELDS), name, IDLE_DEADLINE)

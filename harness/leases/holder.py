"""What a process holds: leases that a thread renews, and that are checked before each write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from harness.errors import InfrastructureError, LeasedError, LeaseLostError
from harness.leases.owner import run_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from harness.leases.owner import Owner, RunKey
    from harness.leases.places import Places
    from harness.leases.store import Lease, LeaseStore

#: Seconds after which the lease of a process that is not heard of any more is over.
TTL: Final = 60.0
#: How often a lease is renewed in its TTL: so many renewals may fail.
_BEATS: Final = 4
#: Seconds between two tries to get a lease that somebody has; nobody tells when it is given back.
_RETRY: Final = 0.25


class LeaseHolder:
    """The leases of one owner in this process.

    :param store: opens the database, on first use. :param owner: who has the leases. :param ttl: seconds.
    :param wait: seconds that somebody else may go on to have a card that is wanted. :param places: what the
        run has of labgrid's places; given back with the rest when it ends. :param run: what tells the run to
        all of its processes; None: the owner is all of it.
    """

    def __init__(
        self,
        store: Callable[[], LeaseStore],
        owner: Owner,
        *,
        ttl: float = TTL,
        wait: float = 0.0,
        places: Places | None = None,
        run: RunKey | None = None,
    ) -> None:
        self.owner = owner
        self.run = run or run_of("", owner)
        self.places = places
        self._wait = wait
        self._open = store
        self._store: LeaseStore | None = None
        self._ttl = ttl
        self._held: dict[str, Lease] = {}
        #: The token that we had of each card last: the next one is ours where nobody had it in between.
        self._tokens: dict[str, int] = {}
        self._lost: dict[str, LeaseLostError] = {}
        self._beating: threading.Thread | None = None
        self._end = threading.Event()
        #: Held while a lease is renewed or given back: a heartbeat renews none that is given back.
        self._change = threading.RLock()

    @property
    def database(self) -> Engine:
        """The database of the leases, opened; what else is kept of cards is there too.

        :raises InfrastructureError: it does not answer.
        """
        return self._opened().engine

    def holds(self, card: str) -> bool:
        """Return whether we have the lease of a card, as far as we know."""
        return card in self._held

    def hold(self, card: str, name: str, reason: str, *, settle: Callable[[], None]) -> Lease:
        """Have the lease of a card from here until it is given back; nothing happens where we have it.

        :param settle: returns once the card is idle. It is called while we have the lease already, so that
            whoever had it begins nothing more, and ends what it has begun. Not where that was us.
        :raises LeasedError: somebody else has it.
        :raises LeaseLostError: we had it, and lost it.
        :raises InfrastructureError: the database, or ``settle``, says so.
        """
        if card in self._held:
            return self._held[card]
        if card in self._lost:
            raise self._lost[card]
        lease = self._acquired(card, name, reason, time.monotonic() + self._wait)
        with self._change:
            ours = lease.token - 1 == self._tokens.get(card)
            self._held[card] = lease
            self._beat()
        try:
            if not ours:
                settle()
        except BaseException:
            with self._change:
                self._give_back(card)
                del self._tokens[card]
            raise
        return lease

    def check(self, card: str) -> None:
        """Return if we have the lease of a card now, and have it for its TTL from now on.

        :raises LeaseLostError: it is another's, or was broken; in this process that stays so.
        :raises InfrastructureError: the database cannot tell.
        """
        with self._change:
            if card in self._lost:
                raise self._lost[card]
            try:
                self._opened().renew(self._held[card])
            except LeaseLostError as lost:
                self._lost[card] = lost
                raise

    def give_back(self, card: str | None = None) -> None:
        """Give a lease back, or all. A database that does not answer is left alone: they run out."""
        with self._change:
            for each in [card] if card is not None else list(self._held):
                self._give_back(each)

    def close(self) -> None:
        """Give all leases and places back, and let go of the database."""
        if self.places is not None:
            self.places.close()
        self._end.set()
        if self._beating is not None:
            self._beating.join()
        self.give_back()
        with self._change:
            if self._store is not None:
                self._store.close()
                self._store = None

    def _give_back(self, card: str) -> None:
        lease = self._held.pop(card)
        self._tokens[card] = lease.token
        with suppress(InfrastructureError):
            self._opened().release(lease)

    def _acquired(self, card: str, name: str, reason: str, end: float) -> Lease:
        while True:
            try:
                return self._opened().acquire(card, name, self.owner, reason, self._ttl)
            except LeasedError:
                if time.monotonic() + _RETRY > end:
                    raise
            time.sleep(_RETRY)

    def _opened(self) -> LeaseStore:
        with self._change:
            if self._store is None:
                self._store = self._open()
            return self._store

    def _beat(self) -> None:
        if self._beating is None:
            # A daemon: it keeps no process alive that nobody closes.
            self._beating = threading.Thread(target=self._beats, name="hil-leases", daemon=True)
            self._beating.start()

    def _beats(self) -> None:
        while not self._end.wait(self._ttl / _BEATS):
            for card in list(self._held):
                # What is lost is told before the next write; a database may answer again by then.
                with suppress(InfrastructureError, KeyError):
                    self.check(card)

"""Whatever owners, clocks and people do: of one card never two fencing tokens are taken for good."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import Float, bindparam

from harness.errors import LeasedError, LeaseLostError
from harness.leases import owner as owners
from harness.leases.owner import Owner
from harness.leases.store import Lease, LeaseStore

TTL = 60.0
WHO = st.integers(0, 1)


class Machines:
    """A store whose clock stands until it is moved, and which processes of this machine live."""

    now = 1_000_000.0
    living: dict[int, str] = {}
    pids = count(100_000)
    cards = count()
    store: LeaseStore


@pytest.fixture(scope="module", autouse=True)
def machines() -> Iterator[None]:
    own = owners._started
    owners._started = lambda pid: Machines.living.get(pid, "")  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        clock = bindparam("now", callable_=lambda: Machines.now, type_=Float)
        Machines.store = LeaseStore(f"sqlite:///{folder}/leases.sqlite", clock=clock)
        Machines.store.engine.dispose()
        yield
        Machines.store.close()
    owners._started = own


class Leases(RuleBasedStateMachine):
    """Two owners want one card. What each believes is kept apart from what the database says.

    ``real``: the seconds that have truly passed, whatever the clock was set to.
    """

    @initialize()
    def begin(self) -> None:
        self.card = f"card{next(Machines.cards)}"
        self.real = 0.0
        self.believed: dict[int, Lease] = {}
        self.owner: dict[int, Owner] = {}
        self.newest = 0
        #: Whose token is good; None: nobody's.
        self.valid: int | None = None
        #: When that one renewed last, in seconds that truly passed.
        self.renewed = 0.0
        self.ahead = False
        for who in range(2):
            self._start(who)

    def _start(self, who: int) -> None:
        pid = next(Machines.pids)
        Machines.living[pid] = "now"
        self.owner[who] = Owner(f"run{who}", "m", pid, "now", owners._place())

    @rule(who=WHO)
    def acquire(self, who: int) -> None:
        held_by = self.valid
        try:
            lease = Machines.store.acquire(self.card, self.card, self.owner[who], "property", TTL)
        except LeasedError:
            assert held_by is not None, "a card that nobody has was refused"
            assert self.owner[held_by].pid in Machines.living, "its owner is dead, and known to be"
            return
        if held_by is not None and self.owner[held_by].pid in Machines.living and not self.ahead:
            assert self.real - self.renewed >= TTL, "it was taken from an owner whose time was not over"
        assert lease.token > self.newest, "a token that was given before"
        self.newest, self.valid, self.renewed, self.ahead = lease.token, who, self.real, False
        self.believed[who] = lease

    @rule(who=WHO)
    def write(self, who: int) -> None:
        """A check before a write, which is a heartbeat too."""
        if who not in self.believed:
            return
        mine = self.believed[who].token == self.newest and self.valid == who
        try:
            Machines.store.renew(self.believed[who])
        except LeaseLostError:
            assert not mine, "the owner was refused"
        else:
            assert mine, "a token was accepted that is not the newest"
            self.renewed, self.ahead = self.real, False

    @rule(who=WHO)
    def release(self, who: int) -> None:
        if lease := self.believed.get(who):
            Machines.store.release(lease)
            if lease.token == self.newest:
                self.valid = None

    @rule()
    def break_it(self) -> None:
        held = Machines.store.broken(self.card, "somebody", "property")
        assert (held is not None) == (self.valid is not None)
        self.valid = None

    @rule(seconds=st.sampled_from([1.0, 0.7 * TTL, TTL]))
    def time_passes(self, seconds: float) -> None:
        self.real += seconds
        Machines.now += seconds

    @rule(seconds=st.sampled_from([-86_400.0, -30.0, 30.0, 86_400.0]))
    def clock_jumps(self, seconds: float) -> None:
        Machines.now += seconds
        # A clock that goes ahead may cost a lease; it must not give two.
        self.ahead = self.ahead or seconds > 0

    @rule(who=WHO)
    def killed(self, who: int) -> None:
        """SIGKILL, and a new run: it believes nothing."""
        if self.believed.pop(who, None) and self.valid == who:
            del Machines.living[self.owner[who].pid]
            dead = self.owner[who]
            self._start(who)
            lease = Machines.store.acquire(self.card, self.card, self.owner[who], "after it", TTL)
            assert lease.token > self.newest, f"{dead} was not recognised as gone"
            self.newest, self.valid, self.renewed, self.ahead = lease.token, who, self.real, False
            self.believed[who] = lease

    @precondition(lambda self: self.valid is not None)
    @rule(who=WHO)
    def nobody_renews(self, who: int) -> None:
        """One look and one TTL later it is free, wherever the clock was set to before."""
        Machines.store.all()
        try:
            lease = Machines.store.acquire(self.card, self.card, self.owner[who], "property", TTL)
        except LeasedError:
            self.time_passes(TTL)
            lease = Machines.store.acquire(self.card, self.card, self.owner[who], "property", TTL)
        assert lease.token > self.newest
        self.newest, self.valid, self.renewed, self.ahead = lease.token, who, self.real, False
        self.believed[who] = lease

    @invariant()
    def no_token_but_the_newest_is_accepted(self) -> None:
        """Tried at every step, by all who believe to have the card: none of it may change anything."""
        for who, lease in getattr(self, "believed", {}).items():
            if not (self.valid == who and lease.token == self.newest):
                with pytest.raises(LeaseLostError):
                    Machines.store.renew(lease)


class TestLeases(Leases.TestCase):  # type: ignore[misc,valid-type]
    settings = settings(
        max_examples=150,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )

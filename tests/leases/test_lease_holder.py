"""What a process holds: renewed while it lives, checked before a write, given back, and taken with care."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes import wait_until

from harness.errors import DeadlineError, InfrastructureError, LeasedError, LeaseLostError
from harness.leases.holder import LeaseHolder
from harness.leases.owner import Owner, this_process
from harness.leases.store import LeaseStore

CARD, NAME = "64:4c:36:00:00:01", "one/card0"
BOB = Owner("run-of-bob", "bench8", 4712, "2", "elsewhere")
TTL = 1.0


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/leases.sqlite"


@pytest.fixture
def store(url: str) -> Iterator[LeaseStore]:
    with LeaseStore(url) as opened:
        yield opened


@pytest.fixture
def holder(url: str) -> Iterator[LeaseHolder]:
    made = LeaseHolder(lambda: LeaseStore(url), this_process("mine"), ttl=TTL)
    yield made
    made.close()


def nothing() -> None:
    """The card is idle."""


def test_a_lease_outlives_its_ttl_while_its_process_does_something_else(
    holder: LeaseHolder, store: LeaseStore
) -> None:
    holder.hold(CARD, NAME, "flash", settle=nothing)

    def renewed() -> float:
        """Return how long after it was taken the lease was renewed last, in seconds."""
        (held,) = store.all()
        return held.age + held.left - TTL

    wait_until(lambda: renewed() > TTL, "heartbeats beyond the TTL")
    holder.check(CARD)


def test_what_a_heartbeat_finds_lost_stays_lost(holder: LeaseHolder, store: LeaseStore) -> None:
    holder.hold(CARD, NAME, "flash", settle=nothing)
    store.broken(CARD, "eve", "now")
    wait_until(lambda: CARD in holder._lost, "a heartbeat to notice it")
    with pytest.raises(LeaseLostError, match="eve broke it"):
        holder.check(CARD)
    holder.give_back()
    with pytest.raises(LeaseLostError, match="eve broke it"):
        holder.hold(CARD, NAME, "again", settle=nothing)


def test_a_new_owner_has_the_lease_while_it_waits_for_the_card(
    holder: LeaseHolder, store: LeaseStore
) -> None:
    owners: list[str] = []
    holder.hold(CARD, NAME, "flash", settle=lambda: owners.extend(h.owner.name for h in store.all()))
    assert owners == ["mine"]


def test_a_card_that_does_not_become_idle_is_given_back(holder: LeaseHolder, store: LeaseStore) -> None:
    def busy() -> None:
        raise DeadlineError("programming")

    with pytest.raises(DeadlineError):
        holder.hold(CARD, NAME, "flash", settle=busy)
    assert store.all() == []
    looked: list[int] = []
    holder.hold(CARD, NAME, "flash", settle=lambda: looked.append(1))
    assert looked == [1], "it is looked at again"


def test_a_card_is_looked_at_again_only_where_another_had_it(holder: LeaseHolder, store: LeaseStore) -> None:
    looked: list[str] = []
    for _ in range(2):
        holder.hold(CARD, NAME, "flash", settle=lambda: looked.append("mine"))
        holder.give_back()
    assert looked == ["mine"]
    store.release(store.acquire(CARD, NAME, BOB, "soak", 60))
    holder.hold(CARD, NAME, "flash", settle=lambda: looked.append("after bob"))
    assert looked == ["mine", "after bob"]


def test_who_waits_has_it_once_it_is_given_back(holder: LeaseHolder, store: LeaseStore) -> None:
    theirs = store.acquire(CARD, NAME, BOB, "soak", 60)
    with pytest.raises(LeasedError, match="run-of-bob"):
        holder.hold(CARD, NAME, "flash", settle=nothing)
    holder._wait = 30.0
    given_back = threading.Timer(0.3, store.release, [theirs])
    given_back.start()
    holder.hold(CARD, NAME, "flash", settle=nothing)
    given_back.join()
    holder.check(CARD)


def test_a_database_that_goes_away_stops_writes_and_may_come_back(
    holder: LeaseHolder, store: LeaseStore
) -> None:
    holder.hold(CARD, NAME, "flash", settle=nothing)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE leases RENAME TO gone")
    with pytest.raises(InfrastructureError, match="nothing is written to a card") as told:
        holder.check(CARD)
    assert not isinstance(told.value, LeaseLostError)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE gone RENAME TO leases")
    holder.check(CARD)


def test_all_is_given_back_at_the_end(url: str, store: LeaseStore) -> None:
    holder = LeaseHolder(lambda: LeaseStore(url), this_process("mine"), ttl=TTL)
    holder.hold(CARD, NAME, "flash", settle=nothing)
    holder.close()
    assert store.all() == []

"""Leases in a database: one owner a card, and whoever lost it is told before the next write."""

import threading
import time
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Float, bindparam, create_engine, inspect

from harness.errors import ConfigurationError, InfrastructureError, LeasedError, LeaseLostError
from harness.leases.owner import Owner, this_process
from harness.leases.store import LeaseStore, leases_url
from harness.store import opening

CARD, NAME = "64:4c:36:00:00:01", "one/card0"
ADA = Owner("run-of-ada", "bench7", 4711, "1", "elsewhere")
BOB = Owner("run-of-bob", "bench8", 4712, "2", "elsewhere")


def test_a_card_has_one_owner_until_it_is_given_back(store: LeaseStore) -> None:
    lease = store.acquire(CARD, NAME, ADA, "regression", 60)
    with pytest.raises(
        LeasedError, match=r"run-of-ada \(process 4711 on bench7\) has the lease of one/card0"
    ):
        store.acquire(CARD, NAME, BOB, "soak", 60)
    store.renew(lease)
    store.release(lease)
    assert store.acquire(CARD, NAME, BOB, "soak", 60).token > lease.token
    with pytest.raises(LeaseLostError, match="run-of-bob"):
        store.renew(lease)


def test_other_cards_are_not_concerned(store: LeaseStore) -> None:
    store.acquire(CARD, NAME, ADA, "regression", 60)
    store.acquire("64:4c:36:00:00:02", "two/card0", BOB, "soak", 60)
    assert [(held.lease.name, held.owner.name) for held in store.all()] == [
        ("one/card0", "run-of-ada"),
        ("two/card0", "run-of-bob"),
    ]


def test_one_that_ran_out_is_anybodys_and_its_owner_is_fenced(store: LeaseStore) -> None:
    old = store.acquire(CARD, NAME, ADA, "regression", 0.05)
    assert store.acquire(*_until_granted(store), BOB, "soak", 60).token > old.token
    with pytest.raises(LeaseLostError, match=r"it ran out, and run-of-bob .* took it \(soak\)"):
        store.renew(old)


def _until_granted(store: LeaseStore) -> tuple[str, str]:
    """Wait until the database says that the lease is over."""
    end = time.monotonic() + 30
    while store.all()[0].left > 0:
        assert time.monotonic() < end
        time.sleep(0.01)
    return CARD, NAME


def test_one_that_ran_out_is_had_again_where_nobody_took_it(store: LeaseStore) -> None:
    lease = store.acquire(CARD, NAME, ADA, "regression", 0.05)
    _until_granted(store)
    store.renew(lease)


def test_who_breaks_a_lease_and_why_is_kept_and_told(store: LeaseStore) -> None:
    lease = store.acquire(CARD, NAME, ADA, "regression", 60)
    held = store.broken(CARD, "eve@desk", "bench7 is on fire")
    assert held is not None
    assert held.owner == ADA
    with pytest.raises(LeaseLostError, match=r"eve@desk broke it \(bench7 is on fire\)"):
        store.renew(lease)
    (kept,) = store.breaks()
    assert (kept.lease, kept.by, kept.reason) == (lease, "eve@desk", "bench7 is on fire")
    assert kept.owner == "run-of-ada (process 4711 on bench7)"
    assert store.broken(CARD, "eve@desk", "again") is None
    assert store.acquire(CARD, NAME, BOB, "soak", 60).token == lease.token + 1
    store.release(lease)
    assert [h.owner for h in store.all()] == [BOB], "what is not ours any more is not ours to give back"


def test_a_process_of_this_machine_that_has_ended_is_not_waited_for(store: LeaseStore) -> None:
    me = this_process("mine")
    store.acquire(
        CARD, NAME, Owner("killed", me.machine, me.pid, "another start", me.place), "regression", 3600
    )
    lease = store.acquire(CARD, NAME, me, "next", 3600)
    with pytest.raises(LeasedError, match="mine"):
        store.acquire(CARD, NAME, BOB, "soak", 60)
    store.renew(lease)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.expression = bindparam("now", callable_=lambda: self.now, type_=Float)


def test_a_clock_that_went_back_keeps_a_dead_owners_card_for_one_ttl(url: str) -> None:
    clock = Clock()
    with LeaseStore(url, clock=clock.expression) as store:
        store.acquire(CARD, NAME, ADA, "regression", 60)
        clock.now -= 86_400
        with pytest.raises(LeasedError, match="for another 60 s"):
            store.acquire(CARD, NAME, BOB, "soak", 60)
        clock.now += 59
        with pytest.raises(LeasedError):
            store.acquire(CARD, NAME, BOB, "soak", 60)
        clock.now += 1
        store.acquire(CARD, NAME, BOB, "soak", 60)


def test_a_clock_that_went_ahead_costs_a_lease_only_where_somebody_takes_it(url: str) -> None:
    clock = Clock()
    with LeaseStore(url, clock=clock.expression) as store:
        lease = store.acquire(CARD, NAME, ADA, "regression", 60)
        clock.now += 86_400
        store.renew(lease)
        with pytest.raises(LeasedError):
            store.acquire(CARD, NAME, BOB, "soak", 60)


def test_of_many_at_once_one_gets_it(url: str) -> None:
    granted: list[int] = []
    inside: list[int] = []
    crowds: list[int] = []

    def work(number: int) -> None:
        with LeaseStore(url) as store:
            start.wait(30)
            while len(granted) < 40:
                try:
                    lease = store.acquire(CARD, NAME, Owner(f"run{number}", "m"), "race", 60)
                except LeasedError:
                    continue
                inside.append(number)
                crowds.append(len(inside))
                granted.append(lease.token)
                inside.remove(number)
                store.release(lease)

    LeaseStore(url).close()
    start = threading.Barrier(4)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert set(crowds) == {1}
    assert granted == sorted(set(granted))


def test_a_database_that_is_gone_is_told_as_infrastructure(store: LeaseStore, url: str) -> None:
    lease = store.acquire(CARD, NAME, ADA, "regression", 60)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE leases")
    for act in (lambda: store.renew(lease), lambda: store.acquire(CARD, NAME, BOB, "soak", 60)):
        with pytest.raises(InfrastructureError, match="nothing is written to a card") as told:
            act()
        assert told.value.exit_code == 3
        assert not isinstance(told.value, LeaseLostError | LeasedError)


def test_an_index_of_the_version_before_gets_the_tables(url: str) -> None:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    config = Config()
    config.set_main_option("script_location", str(opening._MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    assert not inspect(engine).has_table("leases")
    with LeaseStore(url) as store:
        assert store.all() == []
    engine.dispose()


def test_where_the_leases_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HIL_LEASES", raising=False)
    monkeypatch.delenv("HIL_STORE", raising=False)
    own = f"sqlite:///{tmp_path}/index.sqlite"
    assert leases_url(tmp_path) == own
    assert leases_url(tmp_path, index="sqlite:///i") == "sqlite:///i"
    assert leases_url(tmp_path, index="none") == own, "there may be no index, but there are leases"
    monkeypatch.setenv("HIL_LEASES", "sqlite:///e")
    assert leases_url(tmp_path, index="sqlite:///i") == "sqlite:///e"
    assert leases_url(tmp_path, "sqlite:///s") == "sqlite:///s"
    with pytest.raises(ConfigurationError, match="cannot be switched off"):
        leases_url(tmp_path, "none")

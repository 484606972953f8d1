"""The health of cards in a database: who said what, when, and what came of it."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, inspect

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.health.states import Event, State
from harness.health.store import Cause, HealthStore, Place
from harness.leases.owner import Owner
from harness.leases.store import LeaseStore
from harness.store import opening

CARD = Place("64:4c:36:00:00:01", "one/card0", "small")
OTHER = Place("64:4c:36:00:00:02", "two/card0", "small")
LEFT = Cause(
    "run-of-ada", "the teardown failed", run="run-of-ada", evidence="reports/run-of-ada: plan.py::test"
)
ADA = Cause("ada@desk", "new cable")


def test_a_card_of_which_nothing_was_said_is_good(store: HealthStore) -> None:
    found = store.of(CARD)
    assert (found.state, found.since, found.cause.reason) == (State.GOOD, 0.0, "")
    assert store.all() == []
    assert store.changes(CARD.key) == []


def test_what_happens_to_a_card_is_kept_with_who_when_and_why(store: HealthStore) -> None:
    began = time.time()
    store.note(CARD, Event.FAILURE, LEFT)
    store.note(CARD, Event.CLEAR, ADA)
    (found,) = store.all()
    assert (found.place, found.state, found.cause) == (CARD, State.GOOD, ADA)
    latest, first = store.changes(CARD.key)
    assert (first.before, first.event, first.after, first.cause) == (
        *(State.GOOD, Event.FAILURE, State.QUARANTINED),
        LEFT,
    )
    assert (latest.before, latest.event, latest.after) == (State.QUARANTINED, Event.CLEAR, State.GOOD)
    # The servers run here, but a clock of theirs may be read a little coarser than ours.
    assert began - 5 < first.at <= latest.at == found.since < time.time() + 5


def test_other_cards_are_not_concerned(store: HealthStore) -> None:
    store.note(CARD, Event.FAILURE, LEFT)
    assert store.of(OTHER).state is State.GOOD
    store.note(OTHER, Event.DOUBT, LEFT)
    assert {found.place.name: found.state for found in store.all()} == {
        "one/card0": State.QUARANTINED,
        "two/card0": State.SUSPECT,
    }
    assert [change.after for change in store.changes(OTHER.key)] == [State.SUSPECT]


def test_the_first_reason_of_a_quarantine_stays_until_a_person_gives_another(store: HealthStore) -> None:
    store.note(CARD, Event.FAILURE, LEFT)
    store.note(CARD, Event.FAILURE, Cause("run-of-bob", "again"))
    store.note(CARD, Event.CLEAN, Cause("run-of-bob", ""))
    assert store.of(CARD).cause == LEFT
    store.note(CARD, Event.QUARANTINE, ADA)
    assert store.of(CARD).cause == ADA
    assert [change.event for change in store.changes(CARD.key)] == [Event.QUARANTINE, Event.FAILURE]


def test_what_changes_nothing_writes_nothing(store: HealthStore) -> None:
    for _ in range(3):
        store.note(CARD, Event.CLEAN, LEFT)
    assert store.all() == []


@pytest.mark.parametrize("event", [Event.CLEAR, Event.CLEAR_UNCHECKED])
def test_a_card_that_is_good_cannot_be_cleared(store: HealthStore, event: Event) -> None:
    with pytest.raises(ConfigurationError, match="one/card0 is good; there is nothing to clear"):
        store.note(CARD, event, ADA)
    assert store.all() == []


def test_a_quarantine_that_came_meanwhile_is_not_cleared_by_who_has_not_seen_it(store: HealthStore) -> None:
    store.note(CARD, Event.FAILURE, LEFT)
    seen = store.of(CARD)
    smoke = Cause("bob@desk", "smoke")
    store.note(CARD, Event.QUARANTINE, smoke)
    with pytest.raises(BlockedError, match=r"it is quarantined, by bob@desk: smoke; it was left so"):
        store.note(CARD, Event.CLEAR, ADA, seen=seen)
    assert (store.of(CARD).state, store.of(CARD).cause) == (State.QUARANTINED, smoke)
    assert store.note(CARD, Event.CLEAR, ADA, seen=store.of(CARD)).state is State.GOOD


def test_another_inventorys_name_of_the_same_card_is_taken_over(store: HealthStore) -> None:
    store.note(CARD, Event.DOUBT, LEFT)
    store.note(Place(CARD.key, "rack7/left", "rack7"), Event.FAILURE, LEFT)
    (found,) = store.all()
    assert (found.place.name, found.place.lab, found.state) == ("rack7/left", "rack7", State.QUARANTINED)


def test_text_that_a_database_cannot_hold_keeps_no_card_from_its_quarantine(store: HealthStore) -> None:
    store.note(CARD, Event.FAILURE, Cause("run", "grep said \0\udcff", evidence="\udc80"))
    assert store.of(CARD).state is State.QUARANTINED
    assert store.of(CARD).cause.reason.startswith("grep said ")


def test_of_many_at_once_none_is_lost_and_the_steps_fit_together(url: str) -> None:
    HealthStore(url).close()
    start = threading.Barrier(4)

    def work(number: int) -> None:
        with HealthStore(url) as store:
            start.wait(30)
            for turn in range(6):
                store.note(CARD, Event.MAINTENANCE, Cause(f"who{number}", f"{turn}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with HealthStore(url) as store:
        changes = store.changes(CARD.key, latest=100)[::-1]
        assert len({(change.cause.who, change.cause.reason) for change in changes}) == 24
        assert changes[0].before is State.GOOD
        assert all(earlier.after is later.before for earlier, later in pairwise(changes))


def test_it_is_kept_beside_the_leases(url: str) -> None:
    with LeaseStore(url) as leases:
        leases.acquire(CARD.key, CARD.name, Owner("run", "m"), "regression", 60)
        health = HealthStore(leases.engine)
        health.note(CARD, Event.DOUBT, LEFT)
        assert health.of(CARD).state is State.SUSPECT
        assert len(leases.all()) == 1


def test_a_database_that_is_gone_is_told_as_infrastructure(store: HealthStore) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE health")
    for act in (lambda: store.of(CARD), lambda: store.note(CARD, Event.FAILURE, LEFT)):
        with pytest.raises(InfrastructureError, match="health of the cards cannot be known"):
            act()


def test_a_database_of_the_version_before_gets_the_tables_and_keeps_its_leases(url: str) -> None:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    config = Config()
    config.set_main_option("script_location", str(opening._MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        connection.exec_driver_sql(
            "INSERT INTO leases (card, name, token, held, owner, machine, place, pid, started, reason, "
            "taken, renewed, ttl) VALUES ('c', 'n', 7, true, 'o', 'm', '', 0, '', 'r', 0, 0, 60)"
        )
    assert not inspect(engine).has_table("health")
    engine.dispose()
    with HealthStore(url) as store:
        assert store.all() == []
        assert [held.lease.token for held in LeaseStore(url).all()] == [7]


def test_the_version_of_a_database_is_told_without_a_change(url: str) -> None:
    assert opening.version_of(url) == ""
    HealthStore(url).close()
    assert opening.version_of(url) == opening.HEAD

"""What is kept of a lab's cards, read without changing anything: health, leases, the last results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.health.states import State
from harness.health.store import UNSAID, Change, Health, HealthStore, Place
from harness.lab.leasing import lease_key
from harness.leases.store import Held, LeaseStore
from harness.store.opening import HEAD, missing_file, version_of

if TYPE_CHECKING:
    from harness.inventory.model import Lab
    from harness.lab.background import BackgroundLab


@dataclass(frozen=True, slots=True)
class Standing:
    """A card as the databases have it. ``lease``: None where nobody has it. ``last``: how its latest scenario
    ended; empty where the index knows of none."""

    health: Health
    lease: Held | None = None
    last: str = ""


def place_of(entry: Lab, kept: BackgroundLab, card: str) -> Place:
    """Return the card ``host/card`` as health and leases know it.

    :raises ConfigurationError: there is none.
    """
    return Place(lease_key(*entry.card(card), str(kept.directory.resolve())), card, entry.name)


def standings(entry: Lab, kept: BackgroundLab, leases: str, index: str | None) -> dict[str, Standing]:
    """Return how each card of a lab stands, by ``host/card``.

    A database that was never made, or is of an earlier version, says nothing: it is not touched.

    :param leases: the URL of leases and health. :param index: that of the index; None: there is none.
    :raises InfrastructureError: a database does not answer.
    """
    places = [place_of(entry, kept, f"{host.name}/{card.name}") for host, card in entry.cards()]
    health: dict[str, Health] = {}
    held: dict[str, Held] = {}
    with _read(leases) as store:
        if store is not None:
            health = {one.place.key: one for one in HealthStore(store.engine).all()}
            held = {one.lease.card: one for one in store.all() if one.left > 0 and not one.owner.gone}
    last = _last(index, entry.name)
    return {
        place.name: Standing(
            health.get(place.key) or Health(place, State.GOOD, 0.0, UNSAID),
            held.get(place.key),
            last.get(place.name, ""),
        )
        for place in places
    }


def changes_of(place: Place, leases: str) -> list[Change]:
    """Return how a card's health came about, the latest first. :raises InfrastructureError: no answer."""
    with _read(leases) as store:
        return [] if store is None else HealthStore(store.engine).changes(place.key)


def kept_health(leases: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Return lab and device -> the health that is kept of it, and why it is not good.

    :raises InfrastructureError: the database does not answer.
    """
    with _read(leases) as store:
        found = [] if store is None else HealthStore(store.engine).all()
    return {
        (one.place.lab, one.place.name): (
            one.state.value,
            "" if one.state is State.GOOD else one.cause.reason.partition("\n")[0],
        )
        for one in found
    }


@contextmanager
def _read(url: str) -> Iterator[LeaseStore | None]:
    """Give the store at ``url``, where opening it changes nothing; None elsewhere."""
    if missing_file(url) is not None or version_of(url) != HEAD:
        yield None
        return
    with LeaseStore(url) as store:
        yield store


def _last(index: str | None, lab: str) -> dict[str, str]:
    from harness.store.opening import open_index
    from harness.store.trends import devices_of

    if index is None or missing_file(index) is not None or version_of(index) != HEAD:
        return {}
    engine = open_index(index)
    try:
        return {one.device: one.course[-1] for one in devices_of(engine) if one.lab == lab and one.course}
    finally:
        engine.dispose()


def leases_and_index(reports: Path, leases: str | None, store: str | None = None) -> tuple[str, str | None]:
    """Return the URLs of leases and of the index, as options and environment say."""
    from harness.leases.store import leases_url
    from harness.store.place import index_url

    return leases_url(reports, leases, store), index_url(reports, store)

"""The health of cards in the database of their leases: the state of each, and how it came to that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.health.states import Event, State, after
from harness.store.kept import KeptStore
from harness.store.storable import storable
from harness.store.tables import HEALTH, HEALTH_CHANGES


@dataclass(frozen=True, slots=True)
class Place:
    """A card: ``key`` tells it from all others, ``name`` and ``lab`` are those of whoever speaks of it."""

    key: str
    name: str
    lab: str


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the health of a card changes: ``who`` says so, and ``reason``.

    ``run``: the name of the run. ``evidence``: its folder and scenario; both empty where it was no run.
    """

    who: str
    reason: str
    run: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """How a card is. ``since``: seconds since the epoch by the database's clock; 0.0: ever since."""

    place: Place
    state: State
    since: float
    cause: Cause


@dataclass(frozen=True, slots=True)
class Change:
    """A step of a card's health. ``at``: seconds since the epoch by the database's clock."""

    at: float
    event: Event
    before: State
    after: State
    cause: Cause


UNSAID: Final = Cause("", "")


class HealthStore(KeptStore):
    """The health of cards. A card of which nothing was ever said is good."""

    def note(self, place: Place, event: Event, cause: Cause, *, seen: Health | None = None) -> Health:
        """Let ``event`` happen to a card; return its health then. What changes nothing is not kept.

        :param seen: what whoever does this knows of its health; None: whatever that is by now.
        :raises ConfigurationError: it is not possible, such as to clear a card that is good.
        :raises BlockedError: its health is not as ``seen`` any more.
        """
        found = self.of(place)
        following = after(found.state, event)
        if following == found.state and event not in (Event.QUARANTINE, Event.MAINTENANCE):
            return found  # the usual case, of which nobody needs a lock
        with self._changing() as connection:
            # A write first: from here on this transaction is alone with the card.
            about = {"key": place.key, "name": place.name, "lab": place.lab, "state": State.GOOD.value}
            self._enter(connection, HEALTH, about | {"since": 0.0, **_columns(UNSAID)})
            named = {"name": place.name, "lab": place.lab}
            connection.execute(update(HEALTH).where(HEALTH.c.key == place.key).values(named))
            row = self._row(connection, place.key)
            before = State(row.state)
            if seen is not None and _health(row, place) != replace(seen, place=place):
                raise BlockedError(
                    f"The health of {place.name} changed meanwhile: it is {before.value}, by "
                    f"{row.who or 'nobody'}: {row.reason}; it was left so.",
                    hint=f"See how that came about: hil card show {place.name}",
                )
            following = after(before, event)
            if following is None:
                raise ConfigurationError(
                    f"{place.name} is {before.value}; there is nothing to clear.",
                    hint="See: hil card list",
                )
            if following == before and event not in (Event.QUARANTINE, Event.MAINTENANCE):
                return _health(row, place)
            self._change(connection, place.key, float(row.now), (before, event, following), cause)
            return Health(place, following, float(row.now), cause)

    def _change(
        self,
        connection: Connection,
        key: str,
        now: float,
        step: tuple[State, Event, State],
        cause: Cause,
    ) -> None:
        before, event, following = step
        said = _columns(cause)
        connection.execute(
            update(HEALTH).where(HEALTH.c.key == key).values(state=following.value, since=now, **said)
        )
        words = {"event": event.value, "before": before.value, "after": following.value}
        connection.execute(insert(HEALTH_CHANGES).values(key=key, at=now, **words, **said))

    def of(self, place: Place) -> Health:
        """Return the health of a card."""
        with self._changing() as connection:
            row = self._row(connection, place.key, lock=False)
        return Health(place, State.GOOD, 0.0, UNSAID) if row is None else _health(row, place)

    def all(self) -> list[Health]:
        """Return the health of all cards of which anything was said, by lab and name."""
        with self._changing() as connection:
            rows = connection.execute(select(HEALTH).order_by(HEALTH.c.lab, HEALTH.c.name)).all()
        return [_health(row, Place(row.key, row.name, row.lab)) for row in rows]

    def changes(self, key: str, latest: int = 20) -> list[Change]:
        """Return how a card's health came about, the latest step first."""
        asked = select(HEALTH_CHANGES).where(HEALTH_CHANGES.c.key == key)
        with self._changing() as connection:
            rows = connection.execute(asked.order_by(HEALTH_CHANGES.c.id.desc()).limit(latest)).all()
        return [
            Change(row.at, Event(row.event), State(row.before), State(row.after), _cause(row)) for row in rows
        ]

    def _row(self, connection: Connection, key: str, *, lock: bool = True) -> Any:
        asked = select(HEALTH, self._now.label("now")).where(HEALTH.c.key == key)
        return connection.execute(asked.with_for_update() if lock else asked).first()

    def _unusable(self, why: str) -> InfrastructureError:
        return InfrastructureError(
            f"The health of the cards cannot be known: {why}",
            hint="It is where the leases are: --hil-leases or HIL_LEASES; the index's database otherwise.",
        )


def _columns(cause: Cause) -> dict[str, str]:
    said = {
        "who": cause.who[:255],
        "reason": cause.reason,
        "run": cause.run[:128],
        "evidence": cause.evidence,
    }
    return {name: storable(text) for name, text in said.items()}


def _cause(row: Any) -> Cause:
    return Cause(row.who, row.reason, row.run, row.evidence)


def _health(row: Any, place: Place) -> Health:
    return Health(place, State(row.state), row.since, _cause(row))

"""The leases in a database: one owner a card, a token that only grows, and the database's clock."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, func, insert, select, update

from harness.errors import ConfigurationError, InfrastructureError, LeasedError, LeaseLostError
from harness.leases.owner import Owner
from harness.store.kept import KeptStore
from harness.store.opening import sqlite_url
from harness.store.place import FILE_NAME, NONE, index_url
from harness.store.tables import LEASE_BREAKS, LEASES

#: The environment's word for where the leases are.
VARIABLE: Final = "HIL_LEASES"
_WHO: Final = ("owner", "machine", "place", "pid", "started")


def leases_url(reports: Path, said: str | None = None, index: str | None = None) -> str:
    """Return the URL of the leases: ``said``, else HIL_LEASES, else the database of the index.

    :param index: what was said of the index. Where there is none, its file below ``reports`` is used: runs
        do without an index, but not without leases.
    :raises ConfigurationError: it is said that there are none.
    """
    url = said or os.environ.get(VARIABLE) or index_url(reports, index) or sqlite_url(reports / FILE_NAME)
    if url == NONE:
        raise ConfigurationError(
            "Cards that others can reach are not written to without leases; they cannot be switched off.",
            hint="Name a database: sqlite:///FILE for one machine, postgresql://... for several.",
        )
    return url


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a card. ``token`` is greater than that of everybody who had it before.

    ``before``: who had it last; None where nobody had it yet, or where it was not asked.
    """

    card: str
    name: str
    token: int
    before: Owner | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Held:
    """A lease as the database has it. ``left``: seconds until it is over; not more than 0 where it is.

    ``age``: seconds since it was taken.
    """

    lease: Lease
    owner: Owner
    reason: str
    age: float
    left: float

    def __str__(self) -> str:
        return f"{self.owner} has the lease of {self.lease.name} for another {self.left:.0f} s: {self.reason}"


@dataclass(frozen=True, slots=True)
class Break:
    """A lease that ``by`` ended for its owner. ``age``: seconds since then."""

    lease: Lease
    owner: str
    by: str
    reason: str
    age: float


class LeaseStore(KeptStore):
    """The leases in an open database: whoever is told of an error has not got, and has not kept, any lease.

    The URL is that of :func:`leases_url`.
    """

    def acquire(self, card: str, name: str, owner: Owner, reason: str, ttl: float) -> Lease:
        """Take the lease of a card that nobody has, or whose owner has let it run out or is gone.

        :param card: what tells it from all others. :param name: for people. :param ttl: seconds.
        :raises LeasedError: somebody has it.
        """
        with self._changing() as connection:
            self._enter_card(connection, card, name)
            row = self._row(connection, card)
            held = _held(row)
            if held is not None and held.left > 0 and not held.owner.gone:
                if row.renewed > row.now:  # the clock went back: it is counted from now, and no longer
                    self._set(connection, card, renewed=row.now)
            else:
                held = None
                who = {key: getattr(owner, "name" if key == "owner" else key) for key in _WHO}
                times = {"taken": row.now, "renewed": row.now, "ttl": ttl}
                self._set(
                    connection, card, token=row.token + 1, held=True, name=name, reason=reason, **who, **times
                )
        if held is not None:
            raise LeasedError(
                f"{held}; nothing was changed.",
                hint="Wait for it, or see `hil lease list`; `hil lease break` ends it for its owner.",
            )
        return Lease(card, name, row.token + 1, _owner(row) if row.token else None)

    def renew(self, lease: Lease) -> None:
        """Have the lease for its TTL from now on; this is the check before a write as well.

        A lease that ran out is had again as long as nobody else took it.

        :raises LeaseLostError: it is another's, or was broken.
        """
        with self._changing() as connection:
            mine = (LEASES.c.card == lease.card, LEASES.c.token == lease.token, LEASES.c.held.is_(True))
            if connection.execute(update(LEASES).where(*mine).values(renewed=self._now)).rowcount:
                return
            why = self._why_lost(connection, lease)
        raise LeaseLostError(
            f"The lease of {lease.name} is lost: {why}. Nothing more is written to it in this run.",
            hint="See `hil lease list`; then run again.",
        )

    def release(self, lease: Lease) -> None:
        """Give the lease back; one that is lost already is left alone."""
        with self._changing() as connection:
            mine = (LEASES.c.card == lease.card, LEASES.c.token == lease.token)
            connection.execute(update(LEASES).where(*mine).values(held=False))

    def broken(self, card: str, by: str, why: str) -> Held | None:
        """End a lease for its owner, who writes no more from then on; return it, or None where there is none.

        Who did it and why is kept.
        """
        with self._changing() as connection:
            connection.execute(
                update(LEASES).where(LEASES.c.card == card).values(name=LEASES.c.name)
            )  # locks
            row = self._row(connection, card)
            held = _held(row)
            if held is None:
                return None
            self._set(connection, card, held=False)
            about = {"card": card, "token": row.token, "owner": str(held.owner), "at": row.now}
            connection.execute(insert(LEASE_BREAKS).values(**about, broken_by=by, reason=why))
            return held

    def all(self) -> list[Held]:
        """Return the leases that somebody has, those that have run out too, by name."""
        with self._changing() as connection:
            rows = connection.execute(select(LEASES, self._now.label("now")).order_by(LEASES.c.name)).all()
        return [held for held in map(_held, rows) if held is not None]

    def breaks(self, latest: int = 20) -> list[Break]:
        """Return the leases that were broken last, the latest first."""
        with self._changing() as connection:
            name = func.coalesce(LEASES.c.name, LEASE_BREAKS.c.card).label("name")
            asked = select(LEASE_BREAKS, name, self._now.label("now")).outerjoin(
                LEASES, LEASES.c.card == LEASE_BREAKS.c.card
            )
            rows = connection.execute(asked.order_by(LEASE_BREAKS.c.id.desc()).limit(latest)).all()
        return [
            Break(Lease(r.card, r.name, r.token), r.owner, r.broken_by, r.reason, float(r.now) - r.at)
            for r in rows
        ]

    # -- rows -----------------------------------------------------------------------------------------------

    def _unusable(self, why: str) -> InfrastructureError:
        return InfrastructureError(
            f"The leases of the cards cannot be used, so that nothing is written to a card: {why}",
            hint="--hil-leases or HIL_LEASES says where they are; the index's database otherwise.",
        )

    def _enter_card(self, connection: Connection, card: str, name: str) -> None:
        nobody = {"owner": "", "machine": "", "place": "", "pid": 0, "started": "", "reason": ""}
        row = {"card": card, "name": name, "token": 0, "held": False, "taken": 0, "renewed": 0, "ttl": 0}
        self._enter(connection, LEASES, row | nobody)

    def _row(self, connection: Connection, card: str) -> Any:
        asked = select(LEASES, self._now.label("now")).where(LEASES.c.card == card)
        return connection.execute(asked.with_for_update()).first()

    @staticmethod
    def _set(connection: Connection, card: str, **values: Any) -> None:
        connection.execute(update(LEASES).where(LEASES.c.card == card).values(values))

    def _why_lost(self, connection: Connection, lease: Lease) -> str:
        about = (LEASE_BREAKS.c.card == lease.card, LEASE_BREAKS.c.token == lease.token)
        ended = connection.execute(select(LEASE_BREAKS).where(*about)).first()
        if ended is not None:
            return f"{ended.broken_by} broke it ({ended.reason})"
        held = _held(self._row(connection, lease.card))
        if held is None:
            return "it was given back"
        return f"it ran out, and {held.owner} took it ({held.reason})"


def _held(row: Any) -> Held | None:
    """Return the lease in a row of the table; None where nobody has it."""
    if row is None or not row.held:
        return None
    now = float(row.now)
    left = min(row.renewed, now) + row.ttl - now
    return Held(Lease(row.card, row.name, row.token), _owner(row), row.reason, now - row.taken, left)


def _owner(row: Any) -> Owner:
    return Owner(row.owner, row.machine, row.pid, row.started, row.place)

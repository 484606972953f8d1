"""What no history has, leases and health: in one database, by its clock, in transactions that last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

from sqlalchemy import ColumnElement, Connection, Engine, Float, Table, event, literal_column
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from harness.errors import InfrastructureError
from harness.store.opening import open_index

#: SQLite has no clock of its own, but the machine's; it is read once for a statement.
_CLOCKS: Final = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "extract(epoch from clock_timestamp())",
}


class KeptStore:
    """An open database; safe to use from several threads and processes. A context manager.

    Every method raises :class:`harness.errors.InfrastructureError` where the database does not do it.

    :param database: its URL, or one that is open already. :param clock: in place of the database's own, for
        tests of time.
    """

    def __init__(self, database: str | Engine, *, clock: ColumnElement[float] | None = None) -> None:
        self.engine = self._opened(database) if isinstance(database, str) else database
        self._now = literal_column(_CLOCKS[self.engine.dialect.name], Float) if clock is None else clock

    def _opened(self, url: str) -> Engine:
        try:
            engine = open_index(url)
        except InfrastructureError as error:
            raise self._unusable(error.message) from None
        if engine.dialect.name == "sqlite":
            engine.dispose()  # connections from here on: what was said to be kept outlives a power cut
            event.listen(engine, "connect", _durable)
        return engine

    def _unusable(self, why: str) -> InfrastructureError:
        """Return the error to tell of a database that does not do what it should."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the database; what is in it is kept."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        """Give a transaction. What writes in it begins with that: no reader of SQLite becomes a writer."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            why = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
            raise self._unusable(f"{self.engine.url.render_as_string()}: {why}") from None

    def _enter(self, connection: Connection, table: Table, row: dict[str, Any]) -> None:
        """Have ``row`` in ``table``, unless one of the same key is there."""
        entered: Any = (sqlite if self.engine.dialect.name == "sqlite" else postgresql).insert(table)
        connection.execute(entered.values(**row).on_conflict_do_nothing())


def _durable(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous = FULL")

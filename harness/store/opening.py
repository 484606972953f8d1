"""Opens an index by its URL, SQLite or PostgreSQL, and brings its tables to the form of this version."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from harness.errors import ConfigurationError, InfrastructureError

#: Newest form of the tables: the name of the last file in migrations/versions.
HEAD: Final = "0004"
_MIGRATIONS: Final = Path(__file__).with_name("migrations")
_BUSY_SECONDS: Final = 30.0
_DIALECTS: Final = ("sqlite", "postgresql")
#: A server that is gone is told, and waited for no longer; a lock that another one holds, too (milliseconds).
_SERVER_OPTIONS: Final = {
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "tcp_user_timeout": 15_000,
    "options": "-c lock_timeout=30000",
}
#: Number of the lock under which PostgreSQL lets one process at a time change the tables.
_MIGRATION_LOCK: Final = 0x68696C


#: What a database, its driver and the disk beneath it raise; text that they cannot hold is one of these.
FAILURES: Final = (SQLAlchemyError, OSError, UnicodeError)


def sqlite_url(file: Path) -> str:
    """Return the URL of an index in a file, whatever characters its path has."""
    return URL.create("sqlite", database=str(file)).render_as_string()


def missing_file(url: str) -> Path | None:
    """Return the file of an index that was never made; None where there is one, or it is in no file."""
    with suppress(ArgumentError):
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            file = Path(parsed.database)
            return None if file.exists() else file
    return None


def open_index(url: str) -> Engine:
    """Return an engine for the index at ``url``, its tables in the newest form.

    :raises ConfigurationError: no such kind of database, or its driver is not installed.
    :raises InfrastructureError: it does not answer, or its tables are of a later version of the harness.
    """
    engine = _engine(url)
    try:
        _bring_up_to_date(engine)
    except FAILURES as error:
        engine.dispose()
        raise unreachable(engine, error) from None
    return engine


def version_of(url: str) -> str:
    """Return the version of the tables at ``url`` and change nothing; empty where there are none.

    :raises ConfigurationError: no such kind of database. :raises InfrastructureError: it does not answer.
    """
    engine = _engine(url)
    try:
        return _version(engine)
    except FAILURES as error:
        raise unreachable(engine, error) from None
    finally:
        engine.dispose()


def unreachable(engine: Engine, error: Exception) -> InfrastructureError:
    """Return the error to tell of an index that does not do what it should; without its password."""
    why = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    away = "move the file away, then " if engine.dialect.name == "sqlite" else ""
    return InfrastructureError(
        f"The index {engine.url.render_as_string()} cannot be used: {why}.",
        hint=f"The histories are whole: {away}`hil history import` makes it again; HIL_STORE=none: without.",
    )


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() not in _DIALECTS:
            raise NoSuchModuleError
        if parsed.get_backend_name() == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        elif parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        server = parsed.get_backend_name() != "sqlite"
        options = _SERVER_OPTIONS if server else {}
        engine = create_engine(parsed, pool_pre_ping=server, connect_args=options)
    except (ArgumentError, NoSuchModuleError):
        raise ConfigurationError(
            "The index has no URL that can be used: it begins neither with sqlite:/// nor with postgresql://.",
            hint="Such as sqlite:///reports/index.sqlite, postgresql://user@host/hil, or none.",
        ) from None
    except ImportError:
        raise ConfigurationError(
            "PostgreSQL's driver is not installed.", hint="pip install 'hil-harness[postgresql]'"
        ) from None
    except OSError as error:
        raise InfrastructureError(f"The index cannot be made: {error}.") from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {int(_BUSY_SECONDS * 1000)}",  # several processes write, and wait for each other
        "synchronous = NORMAL",
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """Keep other processes from setting up the same SQLite file: it does not wait for its own first lock."""
    file = engine.url.database if engine.dialect.name == "sqlite" else None
    if not file:
        yield
        return
    folder = os.open(Path(file).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _bring_up_to_date(engine: Engine) -> None:
    found = _version(engine)
    if found == HEAD:
        return  # the usual case, without what takes a while to import
    with _alone(engine):
        _migrate(engine, _version(engine))


def _migrate(engine: Engine, found: str) -> None:
    if found > HEAD:
        raise OSError(f"its tables are of version {found}, and this harness knows {HEAD}")
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # readers do not wait for a writer
            connection.commit()
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # all of it, or nothing where this is killed
        else:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise OSError(f"its tables are of no version that this harness knows: {error}") from error
        connection.commit()


def _version(engine: Engine) -> str:
    """Return the version of the tables; empty where there are none."""
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return ""
        return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")

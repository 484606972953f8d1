"""The tables: runs, their devices, scenarios, what was judged, the evidence; leases, health, updates."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
#: SQLite counts up only what it knows as an INTEGER.
_Key = BigInteger().with_variant(Integer, "sqlite")


def _part_of(table: str) -> Column[int]:
    """Return the column that leads to the row that a row is part of, and goes with it."""
    goes_with = ForeignKey(f"{table}s.id", ondelete="CASCADE")
    return Column(f"{table}_id", _Key, goes_with, nullable=False, index=True)


#: ``state``: running, finished, interrupted. Times are seconds since the epoch, by the harness's clock.
RUNS: Final = Table(
    "runs",
    METADATA,
    Column("id", _Key, primary_key=True),
    Column("run", String(128), nullable=False),
    Column("machine", String(255), nullable=False),
    Column("folder", Text, nullable=False),
    Column("lab", String(255), nullable=False),
    Column("state", String(16), nullable=False),
    Column("began", Float, nullable=False, index=True),
    Column("ended", Float),
    Column("versions", JSON, nullable=False),
    Column("options", JSON, nullable=False),
    UniqueConstraint("run", "machine"),
)
#: What a card and its host showed in a run: with what it was that a result came about.
DEVICES: Final = Table(
    "devices",
    METADATA,
    Column("id", _Key, primary_key=True),
    _part_of("run"),
    Column("device", String(255), nullable=False),
    Column("environment", JSON, nullable=False),
    UniqueConstraint("run_id", "device", name="uq_devices_run_id_device"),
)
SCENARIOS: Final = Table(
    "scenarios",
    METADATA,
    Column("id", _Key, primary_key=True),
    _part_of("run"),
    Column("scenario", Text, nullable=False),
    Column("device", String(255), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("began", Float, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("state", String(16), nullable=False),
    Column("outcome", String(16)),
    Column("worst", String(32)),
    Column("reason", Text, nullable=False),
    UniqueConstraint("run_id", "scenario", "attempt", name="uq_scenarios_run_id_scenario"),
    Index("ix_scenarios_scenario", "scenario", "began"),
)
VERDICTS: Final = Table(
    "verdicts",
    METADATA,
    Column("id", _Key, primary_key=True),
    _part_of("scenario"),
    Column("kind", String(32), nullable=False),
    Column("reporter", String(255), nullable=False),
    Column("checker", String(255), nullable=False),
    Column("subject", Text, nullable=False),
    Column("claimed", Text, nullable=False),
    Column("truth", Text, nullable=False),
    Column("how_read", Text, nullable=False),
    Column("as_stated", Boolean, nullable=False),
)
#: The records that a divergence rests on, as the history has them (JSON), by their number in it.
EVIDENCE: Final = Table(
    "evidence",
    METADATA,
    Column("id", _Key, primary_key=True),
    _part_of("scenario"),
    Column("seq", Integer, nullable=False),
    Column("record", JSON, nullable=False),
)
FAULTS: Final = Table(
    "faults",
    METADATA,
    Column("id", _Key, primary_key=True),
    _part_of("scenario"),
    Column("point", String(255), nullable=False),
    Column("action", String(255), nullable=False),
    Column("state", String(16), nullable=False),
)
#: Files that a run left, with their SHA-256 and size in bytes.
ARTEFACTS: Final = Table(
    "artefacts",
    METADATA,
    Column("id", _Key, primary_key=True),
    _part_of("run"),
    Column("path", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size", BigInteger, nullable=False),
)
#: Who may write to a card; no history has this. ``token`` counts up with each owner that a card gets, for
#: ever. ``place``: boot and process namespace in which ``pid`` and ``started`` mean something. Times are
#: seconds since the epoch by the DATABASE's clock, ``ttl`` is in seconds.
LEASES: Final = Table(
    "leases",
    METADATA,
    Column("id", _Key, primary_key=True),
    Column("card", String(255), nullable=False, unique=True),
    Column("name", String(255), nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("held", Boolean, nullable=False),
    Column("owner", String(255), nullable=False),
    Column("machine", String(255), nullable=False),
    Column("place", String(255), nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("started", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    Column("taken", Float, nullable=False),
    Column("renewed", Float, nullable=False),
    Column("ttl", Float, nullable=False),
)
#: Leases that somebody has ended for their owner: who, and why.
LEASE_BREAKS: Final = Table(
    "lease_breaks",
    METADATA,
    Column("id", _Key, primary_key=True),
    Column("card", String(255), nullable=False, index=True),
    Column("token", BigInteger, nullable=False),
    Column("owner", String(255), nullable=False),
    Column("broken_by", String(255), nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Float, nullable=False),
)
#: How far a card is to be trusted; no history has this either. ``key`` tells it from all others, ``name`` and
#: ``lab`` are those of whoever spoke of it last. Times are by the DATABASE's clock, as for leases.
HEALTH: Final = Table(
    "health",
    METADATA,
    Column("id", _Key, primary_key=True),
    Column("key", String(255), nullable=False, unique=True),
    Column("name", String(255), nullable=False),
    Column("lab", String(255), nullable=False),
    Column("state", String(16), nullable=False),
    Column("since", Float, nullable=False),
    Column("who", String(255), nullable=False),
    Column("reason", Text, nullable=False),
    Column("run", String(128), nullable=False),
    Column("evidence", Text, nullable=False),
)
#: How the health of a card came about, step by step.
HEALTH_CHANGES: Final = Table(
    "health_changes",
    METADATA,
    Column("id", _Key, primary_key=True),
    Column("key", String(255), nullable=False, index=True),
    Column("at", Float, nullable=False),
    Column("event", String(16), nullable=False),
    Column("before", String(16), nullable=False),
    Column("after", String(16), nullable=False),
    Column("who", String(255), nullable=False),
    Column("reason", Text, nullable=False),
    Column("run", String(128), nullable=False),
    Column("evidence", Text, nullable=False),
)
#: How many updates of a card a run has begun, in all its processes; a run is told as in RUNS.
UPDATES: Final = Table(
    "updates",
    METADATA,
    Column("id", _Key, primary_key=True),
    Column("run", String(128), nullable=False),
    Column("machine", String(255), nullable=False),
    Column("card", String(255), nullable=False),
    Column("begun", Integer, nullable=False),
    Column("at", Float, nullable=False),
    UniqueConstraint("run", "machine", "card"),
)

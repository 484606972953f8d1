"""Health of cards, and how it came about.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "health",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("lab", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        *_why(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_health")),
        sa.UniqueConstraint("key", name=op.f("uq_health_key")),
    )
    op.create_table(
        "health_changes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("before", sa.String(length=16), nullable=False),
        sa.Column("after", sa.String(length=16), nullable=False),
        *_why(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_health_changes")),
    )
    with op.batch_alter_table("health_changes", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_health_changes_key"), ["key"], unique=False)


def _why() -> list[sa.Column[Any]]:
    return [
        sa.Column("who", sa.String(length=255), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("run", sa.String(length=128), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
    ]

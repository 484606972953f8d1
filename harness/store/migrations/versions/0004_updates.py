"""Updates of cards that runs have begun.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "updates",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run", sa.String(length=128), nullable=False),
        sa.Column("machine", sa.String(length=255), nullable=False),
        sa.Column("card", sa.String(length=255), nullable=False),
        sa.Column("begun", sa.Integer(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_updates")),
        sa.UniqueConstraint("run", "machine", "card", name=op.f("uq_updates_run")),
    )

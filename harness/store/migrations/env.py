"""Runs the migrations on the connection that :mod:`harness.store.opening` has opened."""

from alembic import context

from harness.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()

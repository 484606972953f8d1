"""Health in both kinds of database, both real."""

from collections.abc import Iterator

import pytest
from support.databases import server, url

from harness.health.store import HealthStore

__all__ = ["server", "url"]


@pytest.fixture
def store(url: str) -> Iterator[HealthStore]:
    with HealthStore(url) as opened:
        yield opened

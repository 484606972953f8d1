"""Leases in both kinds of database, both real."""

from collections.abc import Iterator

import pytest
from support.databases import server, url

from harness.leases.store import LeaseStore

__all__ = ["server", "url"]


@pytest.fixture
def store(url: str) -> Iterator[LeaseStore]:
    with LeaseStore(url) as opened:
        yield opened

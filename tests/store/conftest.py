"""An index to write to: of both kinds of database, both real."""

from collections.abc import Iterator

import pytest
from support.databases import server, url

from harness.store.index import Index

__all__ = ["server", "url"]


@pytest.fixture
def index(url: str) -> Iterator[Index]:
    with Index(url) as opened:
        yield opened

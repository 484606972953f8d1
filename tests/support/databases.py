"""Both kinds of database, both real: fixtures for the conftest files of what keeps its data in one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.postgres import Server, postgres


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with postgres() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/index.sqlite"
    return str(request.getfixturevalue("server").new_database())

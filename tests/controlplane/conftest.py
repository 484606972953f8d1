"""Emulated StarlingX systems for the tests of what asks them; they end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.served_system import Serve, Served


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Make systems and serve them."""
    made: list[Served] = []

    def give(release: str = "head", **more: Any) -> Served:
        folder = tmp_path / f"system{len(made)}"
        folder.mkdir()
        made.append(Served.begin(folder, release, **more))
        return made[-1]

    yield give
    for served in made:
        served.close()


@pytest.fixture
def served(serve: Serve) -> Served:
    """A system of today's release."""
    return serve()

"""What the tests of an emulated StarlingX system share: systems that end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.starlingx_lab import Lab, MakeLab, labs


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator[MakeLab]:
    """Make systems, each with a folder of its own; they end with the test."""
    with labs(tmp_path) as make:
        yield make


@pytest.fixture
def lab(make_lab: MakeLab) -> Lab:
    """A system of today's release."""
    return make_lab()

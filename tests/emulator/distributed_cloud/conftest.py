"""What the tests of an emulated distributed cloud share: systems and clouds that end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cloud_lab import CloudLab, MakeCloud
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


@pytest.fixture
def make_cloud(tmp_path: Path) -> Iterator[MakeCloud]:
    """Make distributed clouds, each with a folder of its own; they end with the test."""
    made: list[CloudLab] = []

    def make(release: str = "head", **more: Any) -> CloudLab:
        folder = tmp_path / f"cloud{len(made)}"
        folder.mkdir()
        made.append(CloudLab(folder, release, **more))
        return made[-1]

    yield make
    for lab in made:
        lab.close()

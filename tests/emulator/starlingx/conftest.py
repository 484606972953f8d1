"""What the tests of an emulated StarlingX system share: labs that end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.starlingx_lab import Lab, MakeLab

from harness.emulator.starlingx.defects import Defects


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator[MakeLab]:
    """Make labs, each with a folder of its own; they end with the test."""
    made: list[Lab] = []

    def make(
        release: str = "head", *, on: tuple[str, ...] = (), off: tuple[str, ...] = (), **more: Any
    ) -> Lab:
        folder = tmp_path / f"system{len(made)}"
        folder.mkdir()
        made.append(Lab(folder, Defects(release, on, off), **more))
        return made[-1]

    yield make
    for lab in made:
        lab.close()


@pytest.fixture
def lab(make_lab: MakeLab) -> Lab:
    """A system of today's release."""
    return make_lab()

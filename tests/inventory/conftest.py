"""Inventories that a test writes."""

from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path):
    def write_text(text: str) -> Path:
        path = tmp_path / "inventory.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_text

"""Flash tables: one word per state, and nothing else."""

from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.judgement.records import Promise
from harness.scenarios.table import load_cells

TABLE = """
source: a guide
states: {no-root: {root: none}, root-A: {root: A}}
cells:
  image: "lands 0x0C/0x14"
  raw: "not-sent not-sent"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_cell_has_its_state_and_promise(tmp_path: Path) -> None:
    cells = {cell.id: cell for cell in load_cells(write(tmp_path, TABLE))}
    assert list(cells) == ["no-root--image", "root-A--image", "no-root--raw", "root-A--raw"]
    assert cells["no-root--image"].promise == Promise("lands", source="a guide")
    assert cells["root-A--image"].promise == Promise("unchanged", ("0x0C", "0x14"), "a guide")
    assert cells["no-root--raw"].promise == Promise("unchanged", source="a guide")
    assert cells["root-A--image"].given == {"root": "A"}


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (("lands 0x0C/0x14", "lands"), "1 words for 2 states"),
        (("0x0C/0x14", "refused"), "neither lands"),
        (("source: a guide", "sauce: a guide"), "source"),
        (("cells:", "cells: ["), "Cannot read"),
    ],
)
def test_a_wrong_table_says_what_is_wrong(tmp_path: Path, damage: tuple[str, str], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load_cells(write(tmp_path, TABLE.replace(*damage)))


def test_a_missing_table_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Cannot read"):
        load_cells(tmp_path / "absent.yaml")

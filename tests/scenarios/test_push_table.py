"""Tables of pushes: one word per client, known names, and nothing expected of what was not measured."""

from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.scenarios.prepare import NotApplicable
from harness.scenarios.push_table import PushCell, load_push_cells

TABLE = """
source: a fact sheet
clients: {skopeo: skopeo 1.9., docker-naive: engine 20.10.}
cells:
  rotate-keys:
    before:ping: "ok -"
    cut:manifest-put: "false-fail loss"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "measured.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_cell_has_what_is_expected_of_its_client(tmp_path: Path) -> None:
    cells = {cell.id: cell for cell in load_push_cells(write(tmp_path, TABLE))}
    assert {name: cell.expects for name, cell in cells.items()} == {
        "skopeo--rotate-keys--before:ping": {"outcome": "AS_INTENDED", "verdicts": {}},
        "skopeo--rotate-keys--cut:manifest-put": {
            "outcome": "AS_INTENDED",
            "verdicts": {"skopeo": "FALSE_FAILURE"},
        },
        "docker-naive--rotate-keys--cut:manifest-put": {
            "outcome": "FAILED",
            "verdicts": {"docker-naive": "FALSE_SUCCESS"},
        },
    }


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (("source: a fact sheet", "source: ''"), "the source is empty"),
        (("source: a fact sheet", "sauce: a fact sheet"), "source"),
        (("skopeo: ", "scopeo: "), "there is no client scopeo"),
        (("rotate-keys", "rotate-kays"), "no action 'rotate-kays'"),
        (("before:ping", "sent:manifest-put"), "sent:manifest-put"),
        (('"ok -"', '"ok"'), "has 1 words for 2 clients"),
        (("loss", "lost"), "'lost' is none of ok, fail, loss, false-fail and -"),
        (("cells:", "cells: ["), "is not a table"),
    ],
)
def test_a_table_that_cannot_be_meant_is_told(tmp_path: Path, damage: tuple[str, str], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        load_push_cells(write(tmp_path, TABLE.replace(*damage)))


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Cannot read"):
        load_push_cells(tmp_path / "none.yaml")


def test_nothing_is_expected_of_a_version_that_was_not_measured() -> None:
    cell = PushCell("docker-cli", "restart", "before:ping", "ok", "engine 20.10.")
    cell.require_measured("docker 28.2.2, engine 20.10.24+dfsg1")
    with pytest.raises(NotApplicable, match=r"measured with engine 20.10.x, and this is .* engine 27.1"):
        cell.require_measured("docker 28.2.2, engine 27.1")

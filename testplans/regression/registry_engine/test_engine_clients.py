"""Clients of a Docker engine push to a registry that is restarted, with other keys, at exact points.

The engine keeps one token for all of a push. Its SDK raises nothing when that is refused: who drops what
the SDK returns takes a lost image for a pushed one (the second field report).
"""

from pathlib import Path

import pytest

from harness.scenarios.push_table import load_push_cells

CELLS = load_push_cells(Path(__file__).with_name("measured.yaml"))


@pytest.mark.parametrize("client", ["docker-naive", "docker-stream", "docker-inspect", "docker-cli"])
def test_an_undisturbed_push_lands(push, client):
    """Without a fault every client lands, and says so."""
    push(client, "small")


@pytest.mark.parametrize(
    "cell", [pytest.param(each, marks=pytest.mark.hil_expects(**each.expects), id=each.id) for each in CELLS]
)
def test_a_disturbed_push(push, cell):
    """What was measured of this client at this point is so."""
    cell.require_measured(push.client(cell.client).version)
    push(cell.client, "small", at=cell.point, action=cell.action)

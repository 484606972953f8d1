"""Clients without an engine push to a registry that is restarted, with other keys, at exact points.

A client with one token for all of a push fails and says so; one that renews its token lands; none claims
what is not so, but for a client whose last answer was cut.
"""

from pathlib import Path

import pytest

from harness.scenarios.push_table import load_push_cells

pytestmark = pytest.mark.hil_requirement("PUSH-TRUE")

CELLS = load_push_cells(Path(__file__).with_name("measured.yaml"))


@pytest.mark.parametrize("client", ["oci-once", "oci-renew", "skopeo", "skopeo-retry", "verified-push"])
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


@pytest.mark.parametrize("point", ["after:blob-put", "before:manifest-put", "cut:manifest-put"])
def test_the_reference_client_renews_its_token_and_reads_back(push, point):
    """It lands wherever the keys change, and what it says is so: that is what it is for."""
    push("verified-push", "small", at=point, action="rotate-keys")

"""An inventory from the places of labgrid: what is taken over, what never is, and what is left out."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigurationError
from harness.inventory.load import load_inventory
from harness.lab.imported_places import imported
from harness.leases.labgrid import Place

EAST = Place(
    "n3000-east",
    "bench9/ann",
    {"card0": "0000:B2:00.0", "card0_identity": "64:4c:36:12:34:50", "rack": "7", "irreversible": "root-key"},
    {
        "NetworkService": {
            "address": "10.10.7.11",
            "username": "sysadmin",
            "port": 2022,
            "password": "hunter2",
        }
    },
)
POWER = Place("power-only", "", {}, {})


def test_a_place_is_a_host_and_its_tags_are_cards(tmp_path: Path) -> None:
    found = imported("lab.example:20408", [EAST, POWER])
    (tmp_path / "inventory.yaml").write_text(found.text)
    host = load_inventory(tmp_path / "inventory.yaml").lab(None).host("n3000-east")
    assert host.ssh is not None and host.labgrid is not None
    assert (host.ssh.address, host.ssh.user, host.ssh.port) == ("10.10.7.11", "sysadmin", 2022)
    assert (host.labgrid.coordinator, host.labgrid.place) == ("lab.example:20408", "n3000-east")
    (card,) = host.cards.values()
    assert (card.name, card.address, card.identity) == ("card0", "0000:b2:00.0", "64:4c:36:12:34:50")
    assert card.irreversible == (), "what cannot be undone is never permitted by a tag"
    assert found.left_out == {"power-only": "it has 0 resources NetworkService; a host has one"}


def test_no_password_is_taken_over() -> None:
    assert "hunter2" not in imported("lab.example:20408", [EAST]).text


def test_places_that_are_not_there_or_are_no_hosts_are_errors() -> None:
    with pytest.raises(ConfigurationError, match="no place 'n3000-wets'"):
        imported("lab.example:20408", [EAST], ["n3000-wets"])
    with pytest.raises(
        ConfigurationError, match=r"No place .* can be a host: power-only: it has 0 resources"
    ):
        imported("lab.example:20408", [EAST, POWER], ["power-only"])


@given(
    names=st.lists(
        st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1), unique=True, min_size=1
    )
)
def test_whatever_places_are_called_each_is_a_host_of_its_own(
    names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = imported("lab.example:20408", [Place(name, "", {}, EAST.services) for name in names]).text
    folder = tmp_path_factory.getbasetemp() / "imported.yaml"
    folder.write_text(text)
    hosts = load_inventory(folder).lab(None).hosts
    assert [host.labgrid and host.labgrid.place for host in hosts.values()] == names

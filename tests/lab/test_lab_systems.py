"""The systems of a lab are driven as its inventory has them: by API and by command, with its cards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cards.driver import CardDriver
from harness.controlplane.protocol import Upload
from harness.errors import BlockedError, ConfigurationError, RefusedError
from harness.hosts.connect import connect
from harness.images.recipes import build, load_recipes
from harness.inventory.load import load_inventory
from harness.judgement.records import Claim, Observation
from harness.lab.running import RunningLab, start_lab
from harness.lab.systems import Way, login_of, system_driver
from harness.record.history import History

RECIPES = load_recipes((Path(__file__).parents[2] / "fixtures/images.yaml").read_text())
INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      central: {role: system-controller, emulated: true}
      sub1: {role: subcloud, parent: central, emulated: {release: corrected}}
      alone: {role: system-controller, emulated: {release: corrected}}
      real1: {role: system-controller, url: "http://controller:5000/v3", credentials: {env: HIL_TEST_STX}}
    hosts:
      worker: {system: alone, emulated: {hostname: compute-0}}
      boss: {system: alone, emulated: {hostname: controller-0}}
      node1:
        system: sub1
        emulated: {}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:77:00
            irreversible: [root-key]
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    file = tmp_path_factory.mktemp("inventory") / "inventory.yaml"
    file.write_text(INVENTORY)
    with start_lab(load_inventory(file)) as running:
        yield running


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    found = History(tmp_path / "history.jsonl")
    yield found
    found.close()


@pytest.mark.parametrize("way", ["rest", "cli"])
def test_an_image_lands_on_the_card(lab: RunningLab, history: History, way: Way) -> None:
    """What the system says and what the card holds are both in the history, at the lab's time."""
    assert lab.bench is not None
    lab.bench.fit("node1/card0", {})
    entry = lab.entry.host("node1")
    reached = connect(entry, lab.access("node1"))
    card = CardDriver(reached, entry.card("card0"), history, real=False, settle=1.0)
    before = card.truth().flash_count
    driver = system_driver(lab, "sub1", history, way=way)
    recipe = {"rest": "A/csk0", "cli": "A/csk1"}[way]
    image = driver.upload(Upload(build(RECIPES[recipe]), "a.bin", "functional", bitstream_id="0x1"))
    driver.apply(image.uuid)
    (state,) = driver.update_and_wait("controller-0", deadline=60)
    assert (state.image_uuid, state.status) == (image.uuid, "completed")
    driver.look([("controller-0", card)])
    driver.remove(image.uuid)
    driver.close()
    reached.close()
    (held,) = [r for r in history.records if isinstance(r, Observation) and r.probe == "card"]
    assert held.values["system"] == "sub1"
    assert isinstance(before, int)
    assert held.values["flash_count"] == before + 1
    assert held.subject.name == "node1/card0"
    assert held.source_time == pytest.approx(lab.bench.lab_time(), abs=3600)
    assert {r.reporter for r in history.records if isinstance(r, Claim)} == {
        {"rest": "sysinv", "cli": "system"}[way]
    }


def test_cards_of_the_inventory_limit_what_a_system_gets(lab: RunningLab, history: History) -> None:
    """A system controller has no cards; its images go to those of its subclouds, which permit a root key."""
    driver = system_driver(lab, "central", history)
    root_key = Upload(build(RECIPES["root-key-A"]), "k.bin", "root-key", key_signature="1")
    assert driver.upload(root_key).bitstream_type == "root-key"
    with pytest.raises(RefusedError, match="key-cancellation"):
        driver.upload(Upload(build(RECIPES["cancel-A-csk0"]), "c.bin", "key-revocation", revoke_key_id=0))
    driver.close()


def test_commands_run_on_the_controller_wherever_it_stands(lab: RunningLab, history: History) -> None:
    driver = system_driver(lab, "alone", history, way="cli")
    shown = {host.hostname: host.personality for host in driver.hosts()}
    assert shown == {"compute-0": "worker", "controller-0": "controller"}
    driver.close()


def test_what_cannot_be_driven(lab: RunningLab, history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="no controller 'sub9'"):
        system_driver(lab, "sub9", history)
    with pytest.raises(BlockedError, match="central has no host in the inventory"):
        system_driver(lab, "central", history, way="cli")
    monkeypatch.delenv("HIL_TEST_STX", raising=False)
    with pytest.raises(ConfigurationError, match="HIL_TEST_STX"):
        system_driver(lab, "real1", history)
    monkeypatch.setenv("HIL_TEST_STX", "a-secret-of-the-test")
    login = login_of(lab, lab.entry.controllers["real1"])
    assert (login.url, login.user, login.password) == (
        "http://controller:5000/v3", "admin", "a-secret-of-the-test"
    )  # fmt: skip
    assert "a-secret" not in repr(login)

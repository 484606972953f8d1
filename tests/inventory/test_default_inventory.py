"""What the project's own inventory.yaml holds."""

from pathlib import Path

from harness.inventory.load import load_inventory
from harness.inventory.model import Inventory


def test_default_inventory_is_the_lab_of_the_field_reports() -> None:
    inventory = load_inventory(Path(__file__).parents[2] / "inventory.yaml")
    lab = inventory.lab()
    assert isinstance(inventory, Inventory)
    assert lab.emulated
    assert [entry.name for entry in lab.controllers.values() if entry.role == "system-controller"] == [
        "system-controller"
    ]
    placed = {f"{host.name}/{card.name}": card.address for host, card in lab.cards()}
    assert placed == {
        "subcloud1/card0": "0000:b2:00.0",
        "subcloud2/card0": "0000:b2:00.0",
        "subcloud3/card0": "0000:b4:00.0",
        "subcloud4/card0": "0000:b4:00.0",
        "bench1/card0": "0000:1b:00.0",
        "bench1/card1": "0000:5e:00.0",
    }
    without_permits = [f"{host.name}/{card.name}" for host, card in lab.cards() if not card.irreversible]
    assert without_permits == ["bench1/card1"]

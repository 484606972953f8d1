"""The reproductions of defects state what the list of defects predicts, and nothing on a corrected system."""

import importlib.util
from pathlib import Path

import pytest

from harness.inventory.load import load_inventory
from harness.lab.known_defects import known_defect

PROJECT = Path(__file__).parents[2]
LAB = load_inventory(PROJECT / "inventory.yaml").lab("known-defects")


def stated() -> dict[str, dict[str, set[str]]]:
    """Return test name -> system -> the outcomes and verdicts that the scenario states for it."""
    path = PROJECT / "testplans/reproductions/test_device_images.py"
    spec = importlib.util.spec_from_file_location("reproductions_of_device_images", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, dict[str, set[str]]] = {}
    for name, test in vars(module).items():
        for mark in getattr(test, "pytestmark", ()) if name.startswith("test_") else ():
            if mark.name != "parametrize" or mark.args[0] != "system" or len(mark.args[1]) != 2:
                continue  # a circumstance of the host, and no defect of the system
            with_it, corrected = mark.args[1]
            (expects,) = with_it.marks
            words = {expects.kwargs.get("outcome"), *expects.kwargs.get("verdicts", {}).values()} - {None}
            found[name] = {with_it.values[0]: words, corrected: set()}
    return found


STATED = stated()


@pytest.mark.parametrize("name", STATED)
def test_what_is_stated_is_what_the_defect_predicts(name: str) -> None:
    (system, words), (corrected, _) = STATED[name].items()
    entry = LAB.controllers[system].emulated
    assert entry is not None and entry.release == "corrected"
    predicted = {known_defect(defect)["predicts"] for defect in entry.defects}
    assert words and predicted <= words
    without = LAB.controllers[corrected].emulated
    assert without is not None and (without.release, without.defects) == ("corrected", ())


def test_every_system_differs_from_the_corrected_one_in_one_thing() -> None:
    for name, controller in LAB.controllers.items():
        assert controller.emulated is not None
        assert len(controller.emulated.defects) <= 1, name
    assert len(STATED) >= 17

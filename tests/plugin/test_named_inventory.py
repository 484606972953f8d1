"""An inventory that somebody names need not have the labs that scenarios about systems name."""

import pytest
from support.plans import lines_with

ELSEWHERE = """
import pytest

@pytest.mark.hil_lab("elsewhere")
def test_looks(system):
    system.look()
"""


@pytest.mark.parametrize("by", ["option", "variable"])
def test_the_lab_of_a_marker_is_not_looked_for_in_an_inventory_that_is_named(plan, monkeypatch, by) -> None:
    (plan.folder / "inventory.yaml").rename(plan.folder / "rack.yaml")
    if by == "variable":
        monkeypatch.setenv("HIL_INVENTORY", "rack.yaml")
    done = plan.run(ELSEWHERE, *(["--hil-inventory=rack.yaml"] if by == "option" else []))
    assert done.states == {"test_looks": "NOT_APPLICABLE"}
    assert "the lab small has no system" in done.scenarios["test_looks"]["reason"]


def test_it_is_looked_for_in_the_one_that_is_found(plan) -> None:
    done = plan.run(ELSEWHERE)
    assert done.states == {"test_looks": "BLOCKED"}
    assert lines_with(done.text, "There is no lab 'elsewhere' in inventory.yaml.")

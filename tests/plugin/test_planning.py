"""`--hil-plan-only`: what is told of a run that does not take place, and that nothing of it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.plans import INVENTORY

if TYPE_CHECKING:
    from conftest import Plan

BUDGET = INVENTORY.replace(
    "identity: 64:4c:36:00:00:02", "identity: 64:4c:36:00:00:02\n            wear: {per_run: 1}"
)
PLAN = """
    from pathlib import Path

    @pytest.mark.hil_given(root="none")
    def test_a_key(flash):
        Path("it-ran").touch()
        flash("root-key-A", lands(DOC))
        flash("A/csk0", lands(DOC))

    def test_by_a_helper(flash):
        helper(flash)

    def helper(flash):
        flash("unsigned", lands(DOC))

    def test_no_card(hil):
        assert hil

    @pytest.fixture
    def lab():
        raise AssertionError("something was started")
"""
FILE = """
about: Two images, one after the other.
source: a document
given:
  card: {root: none}
steps:
  - flash: unsigned
    promise: lands
  - flash: A/csk0
    promise: lands
  - flash: A/csk0-v2
    promise: lands
"""
#: One of each kind that a lab of two real cards, and nothing else, cannot do.
OTHERS = """
    @pytest.mark.hil_requires("bench")
    def test_held(flash):
        flash("A/csk0", lands(DOC))

    @pytest.mark.hil_requires("power")
    def test_cut(flash):
        flash("A/csk0", lands(DOC))

    def test_of_a_system(system):
        system.upload("root-key-A")

    def test_of_a_cloud(cloud):
        cloud.upload("root-key-A")

    def test_of_a_registry(push, flash):
        flash("A/csk0", lands(DOC))

    @pytest.mark.hil_given(root="none")
    def test_flash(flash):
        flash("A/csk0", lands(DOC))
"""


def test_every_step_its_device_and_its_effect_and_nothing_runs(plan: Plan) -> None:
    (plan.folder / "inventory.yaml").write_text(BUDGET)
    (plan.folder / "two_images.scenario.yaml").write_text(FILE)
    ended = plan.run(PLAN, "--hil-plan-only", "two_images.scenario.yaml", "test_plan.py")
    told = ended.stdout
    assert ended.code == pytest.ExitCode.OK, told + ended.stderr
    programs = "programs the root entry hash a625d632af900462bfba55ed5053debbdbb41ff5d9328837b6059c6ee12f2234"
    of_one = told[told.index("test_a_key   (card given: root none)\n  on one/card0") :].splitlines()
    assert of_one[2].strip() == f"flash root-key-A: {programs} of SR: cannot be undone"
    assert of_one[3].strip() == "permitted"
    assert "\nNOT_APPLICABLE (1) two/card0 is not permitted root-key" in told
    assert "not reached: the scenario ends before it" in told
    assert "NOT_APPLICABLE: its budget of 1 updates in a run is used up" in told
    assert "? flash is handed to something else" in told
    assert "WEAR one/card0: 5 updates, and what is decided while it runs" in told
    assert "WEAR two/card0: 1 update, and what is decided while it runs" in told
    assert "This list is NOT complete" in told
    assert not (plan.folder / "it-ran").exists() and not (plan.folder / "reports").exists()


def test_what_cannot_be_collected_is_no_plan(plan: Plan) -> None:
    ended = plan.run("def test_wrong(:\n", "--hil-plan-only")
    assert ended.code == pytest.ExitCode.INTERRUPTED and "PLAN of" not in ended.stdout
    ended = plan.run("def test_it(flash): ...\n", "--hil-plan-only", "-n", "2", plugins=("xdist",))
    assert ended.code == pytest.ExitCode.USAGE_ERROR and "leave -n out" in ended.stderr


def test_what_does_not_run_on_this_lab_is_told_by_its_reason_alone(plan: Plan, real) -> None:
    real()
    ended = plan.run(OTHERS, "--hil-plan-only", "--hil-device=one")
    told = ended.stdout
    assert ended.code == pytest.ExitCode.OK, told + ended.stderr
    assert "PLAN of 6 scenarios on the lab small" in told and "1 of them wear a card" in told
    after = told[told.index("::test_flash") :]
    assert "::test_" not in after.partition("\n")[2], "all others are listed by their reason"
    assert told.count("A/csk0") == 1 and "root-key-A" not in told
    for line in (
        "NOT_APPLICABLE (1) one is real: "
        "its cards cannot be fitted, held or disturbed, as emulated ones can.",
        "BLOCKED (1) The power of one cannot be switched.",
        "  hint: Give one `power:` with redfish, ipmi or command in the inventory (docs/hosts.md, Power).",
        "NOT_APPLICABLE (1) the lab small has no system with a card",
        "NOT_APPLICABLE (1) the lab small has no cloud of subclouds with cards",
        "NOT_APPLICABLE (1) the lab small has no registry",
        "WEAR one/card0: 1 update at most",
        "No card was read: where one is not in the state that is given, the scenario does not apply.",
    ):
        assert f"{line}\n" in after, line
    assert "NOT complete" not in told


def test_what_the_plan_says_of_a_lab_is_what_the_run_says(plan: Plan, real) -> None:
    real()
    run = plan.run(OTHERS, "--hil-device=one")
    assert {name.partition("[")[0]: state for name, state in run.states.items()} == {
        "test_held": "NOT_APPLICABLE",
        "test_cut": "BLOCKED",
        "test_of_a_system": "NOT_APPLICABLE",
        "test_of_a_cloud": "NOT_APPLICABLE",
        "test_of_a_registry": "NOT_APPLICABLE",
        "test_flash": "as-stated",
    }

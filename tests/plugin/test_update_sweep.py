"""Sweeps of updates by control planes: what each interruption leaves, and what the system says of it then.

Expected: fact sheet of StarlingX, sections 3.2 (the agent's flow) and 4.7 (queue and audit); of the N3000,
section 4.4 (commit point: staging is inert until COPYING).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.plans import PROJECT, lay_out

from harness.cli.sweep_text import closing, render
from harness.errors import ConfigurationError
from harness.inventory.load import load_inventory
from harness.judgement.judge import judge
from harness.judgement.records import Fault
from harness.lab.releases import CORRECTED, Release
from harness.plugin.images import ImageShelf, RootHashes
from harness.plugin.update_sweep import UpdateSweep, kind_of
from harness.plugin.update_trials import UpdatePlan
from harness.record.runs import read_run
from harness.scenarios.image_sweep import cells
from harness.scenarios.promised import Promised
from harness.scenarios.sweep import Sweep
from harness.scenarios.sweep_journal import Journal, judged_entries
from harness.scenarios.sweep_results import LaneResult, SweepResult, Trial
from harness.scenarios.update_actions import ACTIONS, POINTS, makes_sense

INVENTORY = """\
version: 1
default_lab: small
labs:
  small:
    controllers:
      standard: {role: system-controller, emulated: true}
      field: {role: system-controller, url: 'http://127.0.0.1:1', credentials: {env: NOBODY}}
    hosts:
      all-in-one:
        system: standard
        emulated: {hostname: controller-0}
        cards:
          card0:
            address: 0000:b2:00.0
            identity: 64:4c:36:00:00:01
            irreversible: [root-key, key-cancellation]
      real:
        system: field
        ssh: {address: 127.0.0.1, user: root, credentials: {agent: true}}
        cards:
          card0: {address: '0000:b2:00.0', identity: '64:4c:36:00:00:02'}
"""
STATE = "sysinv-image-state"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    lay_out(folder, INVENTORY)
    return folder


def sweep_of(project: Path, plan: UpdatePlan, *systems: str, release: Release = CORRECTED) -> UpdateSweep:
    shelf = ImageShelf.of(PROJECT)
    return UpdateSweep(
        load_inventory(project / "inventory.yaml"),
        None,
        systems or ("standard",),
        plan,
        shelf,
        Promised(shelf.recipes, RootHashes(shelf)),
        release,
    )


def seen(result: SweepResult) -> dict[tuple[str, str], tuple[str, str, str]]:
    return {(t.action, t.point): (t.reported, t.truth, t.verdict) for t in result.trials}


def test_each_trial_is_judged_by_all_that_was_said_in_it(project, tmp_path) -> None:
    """The agent's death keeps it from telling what became of the image; the tool goes on without it. What
    happens to the host after the agent has told changes nothing of what is so."""
    plan = UpdatePlan(("A/csk0",), ("agent-killed", "power-cut"), ("copying", "reported"))
    swept = sweep_of(project, plan)
    result = Sweep(swept, tmp_path, asked=plan.points).run()
    assert seen(result) == {
        ("agent-killed", "copying"): ("failed", "new", "FALSE_FAILURE"),
        ("agent-killed", "reported"): ("completed", "new", "MATCH"),
        ("power-cut", "copying"): ("failed", "old", "MATCH"),
        ("power-cut", "reported"): ("completed", "new", "MATCH"),
    }
    assert result.exit_code() == 0, result.unstated
    assert not result.broken
    assert result.lanes[0].points == {"A/csk0": POINTS}
    entries = Journal(tmp_path, "update", swept.options).entries()
    assert judged_entries(tmp_path, entries) == result.trials, "as one that goes on has them"
    struck = {r.action for r in read_run(tmp_path) if isinstance(r, Fault) and r.state == "fired"}
    assert struck == {"note", "agents", "power-cut"}
    assert judge(read_run(tmp_path)).finished
    text = "\n".join(closing(result))
    assert "standard said failed once of an image that its card holds, of 4 trials (agent-killed 1)." in text
    assert max(map(len, render(result, colour=False).splitlines())) <= 120


def test_a_known_defect_shows_in_what_others_say_and_is_the_result(project, tmp_path) -> None:
    """Section 4.7: the audit takes the image as failed, and leaves the host in progress."""
    plan = UpdatePlan(("A/csk0",), ("agent-killed",), ("copying",))
    release = Release("corrected", ("audit-leaves-host-in-progress",))
    result = Sweep(sweep_of(project, plan, release=release), tmp_path).run()
    (trial,) = result.trials
    assert (trial.reported, trial.truth, trial.verdict) == ("failed", "new", "FALSE_FAILURE")
    assert trial.others["sysinv-host"] == "STALE"
    assert result.exit_code() == 0
    assert "sysinv-host STALE" in render(result, colour=False)


# --- in memory ------------------------------------------------------------------------------------------


def test_what_an_action_does_is_tried_where_it_makes_sense() -> None:
    plan = UpdatePlan(("A/csk0",), ("abort", "disk-full"), repeat=2)
    found = cells(plan, ("before-update", "preparing", "reported"), makes_sense)
    assert found == [("abort", "preparing")] * 2 + [("disk-full", "before-update")] * 2
    named = replace(plan, points=("reported",), repeat=1)
    assert cells(named, POINTS, makes_sense) == [("abort", "reported"), ("disk-full", "reported")]
    assert plan.trials == 2 * 5 + 2


def test_a_point_lies_between_two_acts_or_in_a_phase_of_the_card() -> None:
    assert (
        *("before-upload", "before-apply", "before-update"),
        *("preparing", "transferring", "programming", "authenticating", "copying"),
        "reported",
    ) == POINTS
    assert all(set(action.points) <= set(POINTS) for action in ACTIONS.values())


@pytest.mark.parametrize(
    ("plan", "systems", "hint"),
    [
        (UpdatePlan(("A/csk0",), ("abort",), ("copyng",)), (), "Did you mean 'copying'?"),
        (UpdatePlan(("root-only",), ("abort",)), (), "Take one of"),
        (UpdatePlan(("A/csk0",), ("abort",)), ("field",), "Name an emulated one by --system: standard."),
    ],
)
def test_a_mistake_is_told_before_anything_starts(project, plan, systems, hint) -> None:
    with pytest.raises(ConfigurationError) as told:
        sweep_of(project, plan, *systems).check()
    assert hint in told.value.hint


GOOD = Trial(
    "standard", "copying", "reboot", "completed", "new", "AS_INTENDED", "MATCH", of="A/csk0", by=STATE
)


def ended(release: Release, **changes: Any) -> SweepResult:
    lane = LaneResult("standard", (GOOD, replace(GOOD, **changes)))
    return SweepResult(kind_of(release), (lane,), 1.0)


@pytest.mark.parametrize(
    ("changes", "sound", "defective"),
    [
        ({}, 0, 0),
        ({"verdict": "FALSE_SUCCESS"}, 1, 0),
        ({"verdict": "FALSE_FAILURE", "action": "agent-killed"}, 0, 0),
        ({"verdict": "FALSE_FAILURE", "action": "expire-tokens"}, 1, 0),
        ({"others": {"sysinv-host": "STALE"}}, 1, 0),
        ({"others": {"sysinv-host": "UNVERIFIABLE"}}, 0, 0),
        ({"truth": "mixed"}, 1, 1),
        ({"truth": "unknown"}, 1, 1),
        ({"outcome": "INFRA", "verdict": "INFRA", "truth": ""}, 3, 3),
    ],
)
def test_a_sound_system_says_nothing_but_what_is_so_or_what_documents_say(changes, sound, defective) -> None:
    assert ended(CORRECTED, **changes).exit_code() == sound
    assert ended(Release("stx-2020-07"), **changes).exit_code() == defective


def test_what_no_document_states_is_named() -> None:
    text = "\n".join(closing(ended(CORRECTED, others={"sysinv-host": "STALE"})))
    assert "NOT STATED standard, reboot at copying: sysinv-host STALE." in text
    assert "Right in every trial" not in text

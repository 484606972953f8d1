"""Sweeps of cards: what each interruption of an update leaves, on every driver generation.

Expected: fact sheet of the N3000, sections 4.2 (cancel), 4.4 (commit point: staging is inert until COPYING)
and 5.1 (the tool cancels on Ctrl-C, not on SIGTERM).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.plans import INVENTORY, PROJECT, lay_out

from harness.cli.sweep_text import closing, render
from harness.errors import ConfigurationError
from harness.inventory.load import load_inventory
from harness.judgement.judge import judge
from harness.judgement.records import Fault, Intent
from harness.plugin.images import ImageShelf, RootHashes
from harness.record.runs import read_run
from harness.scenarios.flash_sweep import FlashSweep, kind_of
from harness.scenarios.flash_trials import FlashPlan
from harness.scenarios.promised import FlashedState, Promised
from harness.scenarios.sweep import Sweep
from harness.scenarios.sweep_results import LaneResult, SweepResult, Trial

OLD, NEW, FACTORY = ("old", "MATCH"), ("new", "MATCH"), ("factory", "LOST")
LATE, CUT, GONE = ("new", "FALSE_FAILURE"), ("old", "LOST"), ("new", "LOST")
#: Generation D; columns: transferring, copying.
IN_TREE = {
    "sigterm": (LATE, LATE),
    "sigint": (OLD, LATE),
    "cancel": (OLD, NEW),
    "power-cut": (CUT, FACTORY),
    "reboot": (CUT, GONE),
}
POINTS = ("transferring", "copying")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    lay_out(folder)
    return folder


def sweep_of(project: Path, plan: FlashPlan, *devices: str, **more: Any) -> FlashSweep:
    shelf = ImageShelf.of(PROJECT)
    return FlashSweep(
        load_inventory(project / "inventory.yaml"),
        None,
        devices or ("one/card0",),
        plan,
        shelf,
        Promised(shelf.recipes, RootHashes(shelf)),
        reports=project / "reports",
        **more,
    )


def test_an_interruption_leaves_what_documents_say(project, tmp_path) -> None:
    plan = FlashPlan("flash", ("A/csk0",), tuple(IN_TREE), POINTS)
    result = Sweep(sweep_of(project, plan), tmp_path, asked=POINTS).run()
    seen = {(trial.action, trial.point): (trial.truth, trial.verdict) for trial in result.trials}
    assert seen == {(a, p): due for a, row in IN_TREE.items() for p, due in zip(POINTS, row, strict=True)}
    assert result.exit_code() == 0
    assert not result.broken
    faults = [record for record in read_run(tmp_path) if isinstance(record, Fault)]
    struck = [fault for fault in faults if fault.state == "fired" and fault.action != "note"]
    assert len(struck) == len(result.trials) == 10
    assert judge(read_run(tmp_path)).finished
    text = "\n".join(closing(result))
    assert "one/card0 reported failed 3 times while it had done what was meant, of 10 trials" in text
    assert (
        "one/card0 said nothing 4 times of what became of it, of 10 trials (power-cut 2, reboot 2)." in text
    )
    assert max(map(len, render(result, colour=False).splitlines())) <= 120


def test_every_generation_is_left_whole(project, tmp_path) -> None:
    plan = FlashPlan("flash", ("A/csk0",), ("sigterm", "power-cut"), ("copying",))
    result = Sweep(sweep_of(project, plan, generations="ABC"), tmp_path).run()
    seen = {(trial.lane, trial.action): (trial.truth, trial.verdict) for trial in result.trials}
    assert seen == {
        (f"one/card0 {generation}", action): due
        for generation in "ABC"
        for action, due in (("sigterm", LATE), ("power-cut", FACTORY))
    }
    assert result.exit_code() == 0


def test_an_update_that_is_refused_passes_no_copying_and_leaves_the_old_image(project, tmp_path) -> None:
    plan = FlashPlan("flash", ("unsigned",), ("sigterm", "cancel"), ("authenticating", "copying"), root="A")
    result = Sweep(sweep_of(project, plan), tmp_path, asked=plan.points).run()
    seen = {(trial.action, trial.point): trial for trial in result.trials}
    assert seen["sigterm", "authenticating"].truth == "old"
    assert seen["sigterm", "authenticating"].outcome == "AS_INTENDED"
    never = seen["sigterm", "copying"]
    assert (never.outcome, never.verdict, never.reached) == ("NOT_REACHED", "NOT_REACHED", False)
    assert result.exit_code() == 1, "a point that was named and never came"
    assert "NOT_REACHED one/card0, nothing was tested there: copying (sigterm: an undisturbed" in "\n".join(
        closing(result)
    )


def test_what_a_card_does_not_permit_is_listed_and_never_tried(project, tmp_path) -> None:
    plan = FlashPlan("flash", ("root-key-A",), ("cancel",))
    result = Sweep(sweep_of(project, plan, "two/card0"), tmp_path).run()
    assert not result.trials
    assert "NOT_APPLICABLE two/card0: root-key-A, not permitted root-key." in "\n".join(closing(result))
    assert not [record for record in read_run(tmp_path) if isinstance(record, Intent)]


def test_a_reset_whose_card_stays_away_is_reported_done(project, tmp_path) -> None:
    """Fact sheet, section 5.2: rsu's 0 does not prove that the card came back. It is known for that."""
    plan = FlashPlan("reset", ("",), ("move", "stays-away", "busy"))
    result = Sweep(sweep_of(project, plan), tmp_path).run()
    seen = {trial.action: (trial.truth, trial.verdict) for trial in result.trials}
    assert seen == {"move": OLD, "stays-away": ("old", "FALSE_SUCCESS"), "busy": OLD}
    assert result.exit_code() == 0
    assert "it is known for that" in "\n".join(closing(result))


# --- real cards: wear -----------------------------------------------------------------------------------

REAL = INVENTORY.replace(
    "      one:\n        emulated: {}\n        cards:\n",
    "      one:\n        ssh: {address: 127.0.0.1, user: root, credentials: {agent: true}}\n        cards:\n"
    "          card1: {address: '0000:c2:00.0'}\n",
)


@pytest.fixture
def real(tmp_path: Path) -> Path:
    lay_out(tmp_path, REAL)
    return tmp_path


def test_a_real_card_is_not_updated_without_a_budget(real) -> None:
    with pytest.raises(ConfigurationError) as told:
        sweep_of(real, FlashPlan("flash", ("A/csk0",), ("cancel",))).check()
    assert "--wear" in told.value.hint
    sweep_of(real, FlashPlan("flash", ("A/csk0",), ("cancel",), wear=4)).check()


def test_cards_of_a_real_host_come_one_after_the_other(real) -> None:
    plan = FlashPlan("flash", ("A/csk0",), ("cancel",), wear=4)
    assert sweep_of(real, plan, "one/card0", "two/card0").groups == [["one/card0"], ["two/card0"]]
    assert sweep_of(real, plan, "one/card0", "one/card1").groups == [["one/card0", "one/card1"]]


# --- what documents promise -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def promised() -> Promised:
    shelf = ImageShelf.of(PROJECT)
    return Promised(shelf.recipes, RootHashes(shelf))


@pytest.fixture(scope="module")
def roots() -> RootHashes:
    return RootHashes(ImageShelf.of(PROJECT))


@pytest.mark.parametrize(
    ("root", "cancelled", "image", "promise"),
    [
        ("", (), "unsigned", ("lands", ())),
        ("", (), "root-key-A", ("lands", ())),
        ("", (), "cancel-A-csk0", ("unchanged", ("0x10",))),
        ("A", (), "A/csk0", ("lands", ())),
        ("A", (), "unsigned", ("unchanged", ("0x11",))),
        ("A", (), "B/csk0", ("unchanged", ("0x11",))),
        ("A", (0,), "A/csk0", ("unchanged", ("0x15",))),
        ("A", (), "root-key-B", ("unchanged", ("0x1A",))),
        ("B", (), "A/csk0", ("unchanged", ("0x11",))),
    ],
)
def test_the_promise_follows_what_was_read_of_the_card(
    promised, roots, root, cancelled, image, promise
) -> None:
    """Fact sheet, section 3.3."""
    state = FlashedState(0x1, roots[root] if root else "", frozenset(cancelled))
    found = promised.of(image, state)
    assert (found.effect, tuple(found.codes)) == promise


def test_what_a_card_holds_after_an_update_is_known_beforehand(promised, roots) -> None:
    """So that an image which is to be refused, and is taken, leaves a card that is neither old nor new."""
    keyed, fresh = FlashedState(0x1, roots["A"], frozenset()), FlashedState(0x1, "", frozenset())
    assert promised.after("unsigned", keyed) == keyed
    assert promised.after("A/csk0", keyed) == FlashedState(0x23000410010311, roots["A"], frozenset())
    assert promised.after("root-key-A", fresh) == FlashedState(0x1, roots["A"], frozenset())
    assert promised.after("cancel-A-csk0", keyed) == FlashedState(0x1, roots["A"], frozenset({0}))


def test_a_root_that_nobody_has_the_key_of_takes_no_image(promised) -> None:
    state = FlashedState(0x1, "ab" * 32, frozenset())
    assert promised.of("A/csk0", state).codes == ("0x11",)
    with pytest.raises(ConfigurationError, match="takes no image but A/csk0"):
        promised.before("A/csk0", state)


@pytest.mark.parametrize("image", ["p384/csk0", "root-only", "csk-only"])
def test_an_image_of_which_documents_say_nothing_is_not_swept(promised, image) -> None:
    with pytest.raises(ConfigurationError, match=image):
        promised.check((image,))


# --- how such a sweep ends ------------------------------------------------------------------------------

GOOD = Trial("one/card0", "copying", "cancel", "done", "new", "AS_INTENDED", "MATCH", of="A/csk0")


@pytest.mark.parametrize(
    ("truth", "outcome", "verdict", "code"),
    [
        ("new", "AS_INTENDED", "MATCH", 0),
        ("factory", "FAILED", "LOST", 0),
        ("mixed", "FAILED", "MATCH", 1),
        ("unknown", "UNKNOWN", "UNVERIFIABLE", 1),
        ("old", "FAILED", "FALSE_SUCCESS", 1),
        ("", "INFRA", "INFRA", 3),
        ("", "REFUSED", "REFUSED", 4),
        ("", "BUG", "BUG", 5),
    ],
)
def test_the_exit_code_says_whether_a_card_is_broken_or_a_tool_lied(truth, outcome, verdict, code) -> None:
    from dataclasses import replace

    other = replace(GOOD, truth=truth, outcome=outcome, verdict=verdict)
    result = SweepResult(kind_of("flash"), (LaneResult("one/card0", (GOOD, other)),), 1.0)
    assert result.exit_code() == code

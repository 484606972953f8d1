"""Faults from a scenario's side: what was not reached fails, what cannot be done is said before it begins."""

import time

from harness.judgement.records import Fault, Intent

PLAN = """
@pytest.mark.hil_given(root="A")
def test_refused_before_copying(flash, faults):
    faults.arm("copying", "cancel")
    flash("unsigned", unchanged("0x11", source=DOC))

@pytest.mark.hil_given(root="A")
def test_file_that_is_not_sent(flash, faults):
    faults.arm("transferring", "sigterm")
    flash("truncated-short", unchanged(source=DOC))

@pytest.mark.hil_given(root="A")
def test_driver_that_never_starts(flash, faults):
    faults.arm("start", "ignore-upload")
    faults.arm("preparing", "sigterm")
    flash("A/csk0", lands(DOC))

@pytest.mark.hil_given(root="none")
def test_root_key_is_never_copied(flash, faults):
    faults.arm("copying", "cancel")
    flash("root-key-A", lands(DOC))

@pytest.mark.hil_given(root="A")
def test_armed_and_never_flashed(card, faults):
    faults.arm("programming", "sigterm")
    card.reset()

@pytest.mark.hil_given(root="A")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "FALSE_FAILURE"})
def test_two_points_in_one_flash(flash, faults):
    faults.arm("copying", "sigterm")
    faults.arm("transferring", "busy")
    flash("A/csk0", lands(DOC), activate=False)
    faults.undo()
    flash.reset()

@pytest.mark.hil_given(root="A")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "FALSE_FAILURE"})
def test_two_faults_at_one_point(flash, faults):
    faults.arm("authenticating", "cancel")
    faults.arm("authenticating", "sigterm")
    flash("A/csk0", lands(DOC))

@pytest.mark.hil_given(root="A")
def test_the_next_flash_is_undisturbed(flash, faults):
    faults.arm("transferring", "cancel")
    flash("A/csk0", unchanged(source=DOC))
    flash("A/csk0", lands(DOC))

@pytest.mark.hil_given(root="A")
def test_by_firmware_upload(flash, faults):
    faults.arm("programming", "cancel")
    flash("A/csk0", lands(DOC), by="firmware-upload")

@pytest.mark.hil_given(root="A")
def test_signal_at_the_start(flash, faults):
    faults.arm("start", "sigterm")

@pytest.mark.hil_given(root="A")
def test_unknown_point(flash, faults):
    faults.arm("programing", "sigterm")

@pytest.mark.hil_given(root="A")
def test_unknown_action(flash, faults):
    faults.arm("programming", "sigtrm")

@pytest.mark.hil_given(root="A")
@pytest.mark.hil_requires("power")
def test_power_is_cut_before_the_flash(flash, faults):
    faults.arm("start", "power-cut")
    flash("A/csk0", unchanged(source=DOC))
"""


def test_faults_in_scenarios(plan) -> None:
    began = time.monotonic()
    run = plan.run(PLAN, "--hil-device=one", "--junitxml=junit.xml")
    # A point that never comes is not waited for: that would take 30 s each.
    assert time.monotonic() - began < 60
    states = {name.partition("[")[0].removeprefix("test_"): state for name, state in run.states.items()}
    assert states == {
        "refused_before_copying": "not-as-stated",
        "file_that_is_not_sent": "not-as-stated",
        "driver_that_never_starts": "not-as-stated",
        "root_key_is_never_copied": "not-as-stated",
        "armed_and_never_flashed": "not-as-stated",
        "two_points_in_one_flash": "as-stated",
        "two_faults_at_one_point": "as-stated",
        "the_next_flash_is_undisturbed": "as-stated",
        "by_firmware_upload": "BLOCKED",
        "signal_at_the_start": "BLOCKED",
        "unknown_point": "BLOCKED",
        "unknown_action": "BLOCKED",
        "power_is_cut_before_the_flash": "as-stated",
    }
    for name, fault in (
        ("refused_before_copying", "the fault cancel at copying was NOT_REACHED on one/card0"),
        ("file_that_is_not_sent", "the fault sigterm at transferring was NOT_REACHED on one/card0"),
        ("driver_that_never_starts", "the fault sigterm at preparing was NOT_REACHED on one/card0"),
        ("root_key_is_never_copied", "the fault cancel at copying was NOT_REACHED on one/card0"),
        ("armed_and_never_flashed", "the fault sigterm at programming was NOT_REACHED on one/card0"),
    ):
        assert fault in run.scenarios[f"test_{name}[one/card0]"]["reasons"]
    for name, words in (
        ("by_firmware_upload", "'programming', which only the tool announces"),
        ("signal_at_the_start", "Nothing runs at the point 'start'"),
        ("unknown_point", "Did you mean 'programming'?"),
        ("unknown_action", "Did you mean 'sigterm'?"),
    ):
        case = run.junit[f"test_{name}[one/card0]"]
        assert words in case["failure"]
        assert case["cause"] == "configuration"
    flashes = sum(1 for record in run.records if isinstance(record, Intent) and record.operation == "flash")
    assert flashes == 9, "what is wrongly armed never begins"
    assert {r.state for r in run.records if isinstance(r, Fault)} == {
        "armed",
        "fired",
        "undone",
        "not-reached",
    }

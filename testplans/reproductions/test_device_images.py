"""Historical failures of StarlingX's device images: each seen on a system that has it, silent on one without.

The systems are those of the lab `known-defects`; which defect each has, the inventory says. A scenario says
what is done, and by which outcome or verdicts the defect shows. References: fact sheet of StarlingX, sections
3, 4 and 6.1.
"""

import pytest

pytestmark = pytest.mark.hil_lab("known-defects")


def seen_on(system, corrected="corrected", **stated):
    """Run on the system with the defect, where it is stated, and on the one without it."""
    with_it = pytest.param(system, marks=pytest.mark.hil_expects(**stated))
    return pytest.mark.parametrize("system", [with_it, corrected], indirect=True)


@seen_on("labels-vanish", "corrected-elsewhere", verdicts={"sysinv-image-state": "LOST"})
def test_lp_1890296_labels_and_states_vanish_at_a_boot(system):
    """The device is at the same address after the boot, but stood elsewhere before its reset: it is forgotten."""
    system.label(site="lab")
    image = system.upload("A/csk0")
    system.apply(image, site="lab")
    system.update()
    system.boot()


@seen_on("content-host", "corrected-keyed", verdicts={"sysinv-host": "FALSE_SUCCESS"})
def test_lp_1890296_a_host_with_a_failed_image_has_nothing_to_update(system):
    """The queue is empty, and nobody looks at what has failed."""
    key = system.upload("root-key-B", promise="unchanged")
    system.apply(key)
    system.update()


@seen_on("bmc-evicts-user", verdicts={"sysinv-image-state": "LOST"})
def test_lp_1951602_a_bmc_image_takes_the_place_of_the_user_image(system):
    """Both are functional images, and one card holds both."""
    system.apply(system.upload("A/csk0"))
    system.apply(system.upload("bmc-A/csk0"))


@seen_on("no-agent", verdicts={"sysinv-device": "LOST"})
def test_lp_1981824_nobody_reports_the_card(system):
    """All that is shown of the card is None, and stays so."""
    system.pass_time(600)


@seen_on("old-tools", verdicts={"sysinv-device": "UNKNOWN_AS_VALUE"})
def test_lp_2160223_tools_that_do_not_know_the_kernel_show_empty_fields(system):
    """The attributes that the agent reads are gone with the kernel's drivers; it shows empty text."""
    system.boot()


@pytest.mark.parametrize(
    "kernel", [pytest.param("unknown", marks=pytest.mark.hil_expects(outcome="FAILED")), "known"]
)
@pytest.mark.parametrize("system", ["corrected"], indirect=True)
def test_lp_2160223_a_host_stays_locked_where_its_cards_cannot_be_reset(system, kernel):
    """A mainline kernel offers no way to load an image again: the boot manifest fails, at every try."""
    if kernel == "unknown":
        system.disturb_host("no-image-load")
    system.boot()


@seen_on("stuck-alarm", verdicts={"alarm-900.006": "STALE"})
def test_lp_1883293_an_alarm_outlives_its_image(system):
    """The alarm says that an update is in progress, and nothing is to be written."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.remove(image)


@seen_on("no-booleans", outcome="FAILED")
def test_lp_1980405_an_upload_with_a_boolean_fails(system):
    """A BMC image cannot be uploaded: `--bmc` is answered by what is no JSON."""
    system.attempt(system.upload, "bmc-A/csk0")
    system.look()


@seen_on("silent-failure", "corrected-keyed", verdicts={"sysinv-image-state": "LOST"})
def test_a_failing_fpgasupdate_is_never_reported(system):
    """A second root key is refused by the card, and is in progress for ever (section 3.2)."""
    system.apply(system.upload("root-key-B", promise="unchanged"))
    system.update()
    system.pass_time(200)


@seen_on("unrelated-steps", "corrected-keyed", outcome="BREACH")
def test_the_functional_image_is_written_after_a_failed_root_key(system):
    """Section 4.7: each image is a step of its own, whatever became of the one before it."""
    system.apply(system.upload("root-key-B", promise="unchanged"))
    system.apply(system.upload("A/csk0", promise="unchanged"))
    system.update()
    system.boot()


@seen_on("one-inventory", verdicts={"sysinv-device": "STALE"})
def test_a_root_key_that_was_programmed_is_not_shown(system):
    """An agent reports a card once in its life (section 3.1)."""
    system.apply(system.upload("root-key-A"))
    system.update()
    system.pass_time(1200)


@seen_on("shared-label", verdicts={"sysinv-applied": "CONTRADICTION"})
def test_two_images_are_applied_to_one_label(system):
    """What the first field report's system controller shows (section 4.6): no device carries the label."""
    system.apply(system.upload("A/csk0"), subcloud="abc")
    system.apply(system.upload("A/csk0-v2"), subcloud="abc")


@seen_on("old-flag", verdicts={"sysinv-applied": "MISREPORT"})
def test_an_image_stays_applied_after_another_took_its_place(system):
    """Section 4.3: applied without labels."""
    system.apply(system.upload("A/csk0"))
    system.apply(system.upload("A/csk0-v2"))


@seen_on("restless-host", verdicts={"sysinv-host": "STALE"})
def test_a_host_is_pending_with_nothing_to_update(system):
    """Section 4.4."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.remove(image)


@seen_on("asleep-host", verdicts={"sysinv-host": "CONTRADICTION", "alarm-900.006": "CONTRADICTION"})
def test_a_label_brings_an_image_and_the_host_does_not_know(system):
    """Section 4.5: apply to a label, then label the device."""
    system.apply(system.upload("A/csk0"), site="lab")
    system.label(site="lab")
    system.look()


@seen_on(
    "greedy-label",
    verdicts={
        "sysinv-image-state": "LOST",
        "sysinv-applied": "CONTRADICTION",  # with the states that are gone
        "alarm-900.006": "STALE",  # it stands for what nobody knows of any more
    },
)
def test_removing_a_label_takes_what_is_owed_to_another(system):
    """Section 4.5."""
    system.label(site="lab", rack="one")
    system.apply(system.upload("root-key-A"), rack="one")
    system.unlabel("site")


@seen_on("forgetful", verdicts={"sysinv-image-state": "MISREPORT"})
def test_lp_1890340_what_is_completed_is_pending_again(system):
    """Applied once more, it would be written once more."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.update()
    system.boot()
    system.apply(image)


@seen_on(
    "moving-card",
    "corrected-moving",
    verdicts={"sysinv-image-state": "LOST", "sysinv-applied": "CONTRADICTION"},
)
def test_a_card_that_moved_loses_its_images(system):
    """Section 3.3: its address changes at a reset; the card is the same, by its identity."""
    system.apply(system.upload("A/csk0"))
    system.update()
    system.boot()

"""Historical failures of StarlingX's device images: each seen on a system that has it, silent on one without.

A scenario says what is done, and by which outcome or verdicts the defect shows. An emulated system is a
corrected one with that defect, and then one without it; a real system is what it is, and is asked once.
References: fact sheet of StarlingX, sections 2 to 4 and 6.1.
"""

import pytest

pytestmark = pytest.mark.hil_lab("device-images")
KEYED = pytest.mark.hil_given(root="A")


def seen_with(defect, *, on="standard", without=None, **stated):
    """Run on a system with the defect, where it is as stated, and on one without, as ``without`` states."""
    here = pytest.param(
        on,
        id=defect,
        marks=[pytest.mark.hil_release("corrected", defects=(defect,)), pytest.mark.hil_expects(**stated)],
    )
    not_here = pytest.param(
        on,
        id="corrected",
        marks=[pytest.mark.hil_release("corrected"), pytest.mark.hil_expects(**without or {})],
    )
    return pytest.mark.parametrize("system", [here, not_here], indirect=True)


# -- what became of an image ------------------------------------------------------------------------------


@seen_with("labels-lost-at-boot", verdicts={"sysinv-image-state": "LOST"})
def test_lp_1890296_labels_and_states_vanish_at_a_boot(system):
    """Between the boot and the reset that follows the card is elsewhere; then nothing is known of it."""
    system.disturb("boot-elsewhere")
    system.label(site="lab")
    image = system.upload("A/csk0")
    system.apply(image, site="lab")
    system.update()
    system.boot()


@seen_with("labels-lost-on-move", verdicts={"sysinv-image-state": "LOST", "sysinv-applied": "CONTRADICTION"})
def test_a_card_that_moved_loses_its_images(system):
    """Section 3.3: its address changes at a reset; the card is the same, by its identity."""
    system.disturb("move")
    system.apply(system.upload("A/csk0"))
    system.update()
    system.boot()


@KEYED
@seen_with("host-not-pending-after-failure", verdicts={"sysinv-host": "FALSE_SUCCESS"})
def test_lp_1890296_a_host_with_a_failed_image_has_nothing_to_update(system):
    """The queue is empty, and nobody looks at what has failed."""
    key = system.upload("root-key-B", promise="unchanged")
    system.apply(key)
    system.update()


@seen_with("bmc-drops-user-image", verdicts={"sysinv-image-state": "LOST"})
def test_lp_1951602_a_bmc_image_takes_the_place_of_the_user_image(system):
    """Both are functional images, and one card holds both."""
    system.apply(system.upload("A/csk0"))
    system.apply(system.upload("bmc-A/csk0"))


@seen_with("apply-again-resets", verdicts={"sysinv-image-state": "MISREPORT"})
def test_lp_1890340_what_is_completed_is_pending_again(system):
    """Applied once more, it would be written once more."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.update()
    system.boot()
    system.apply(image)


@KEYED
@seen_with("failed-flash-not-reported", verdicts={"sysinv-image-state": "LOST"})
def test_a_failing_fpgasupdate_is_never_reported(system):
    """A second root key is refused by the card, and is in progress for ever (section 3.2)."""
    system.apply(system.upload("root-key-B", promise="unchanged"))
    system.update()
    system.pass_time(200)


@KEYED
@seen_with("failure-not-propagated", outcome="BREACH")
def test_the_functional_image_is_written_after_a_failed_root_key(system):
    """Section 4.7: each image is a step of its own, whatever became of the one before it."""
    system.apply(system.upload("root-key-B", promise="unchanged"))
    system.apply(system.upload("A/csk0", promise="unchanged"))
    system.update()
    system.boot()


@seen_with("duplicate-states", verdicts={"sysinv-image-state": "MISREPORT"})
def test_one_image_is_owed_twice(system):
    """Section 4.6: applied to two labels, which a device is given afterwards."""
    system.apply(system.upload("A/csk0"), site="lab", rack="one")
    system.label(site="lab", rack="one")
    system.look()


@seen_with(
    "label-assign-keeps-both-images",
    outcome="BREACH",
    verdicts={"sysinv-image-state": "UNVERIFIABLE"},  # of the image that was written over
)
def test_two_functional_images_are_written_to_one_card(system):
    """Section 4.6: each is applied to a label, and a device is given both."""
    system.apply(system.upload("A/csk0"), site="lab")
    system.apply(system.upload("A/csk0-v2"), rack="one")
    system.label(site="lab", rack="one")
    system.look()
    system.update()
    system.boot()


# -- images and labels ------------------------------------------------------------------------------------


@seen_with("two-images-on-floating-label", verdicts={"sysinv-applied": "CONTRADICTION"})
def test_two_images_are_applied_to_one_label(system):
    """What the first field report's system controller shows (section 4.6): no device carries the label."""
    system.apply(system.upload("A/csk0"), subcloud="abc")
    system.apply(system.upload("A/csk0-v2"), subcloud="abc")


@seen_with("old-flag-kept", verdicts={"sysinv-applied": "MISREPORT"})
def test_an_image_stays_applied_after_another_took_its_place(system):
    """Section 4.3: applied without labels."""
    system.apply(system.upload("A/csk0"))
    system.apply(system.upload("A/csk0-v2"))


@seen_with("duplicate-applied-labels", on="pair", verdicts={"sysinv-applied": "MISREPORT"})
def test_lp_1890296_a_label_of_two_devices_is_shown_twice(system):
    """An image is applied to a label, not to each device that carries it."""
    for card in system.bench.cards:
        system.label(card, site="lab")
    system.apply(system.upload("A/csk0"), site="lab")


@seen_with(
    "label-removal-drops-all-states",
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


@seen_with("label-removal-breaks-list", verdicts={"sysinv-image": "LOST"})
def test_no_image_can_be_listed_once_a_label_is_removed(system):
    """Section 4.8: the whole list is refused for one label that is not there any more."""
    system.label(site="lab")
    system.apply(system.upload("A/csk0"), site="lab")
    system.attempt(system.unlabel, "site")


@seen_with("floating-labels-left", verdicts={"sysinv-label": "STALE"})
def test_lp_1890299_a_label_outlives_the_image_that_it_was_made_for(system):
    """Applied to a label that no device carries, then deleted."""
    image = system.upload("A/csk0")
    system.apply(image, subcloud="abc")
    system.delete(image)


@seen_with(
    "root-key-blocks-itself",
    outcome="BREACH",
    verdicts={"alarm-900.006": "CONTRADICTION"},  # the first label is done, and no alarm was raised
)
def test_lp_1890324_a_root_key_cannot_be_applied_to_two_labels(system):
    """Both are labels of one device, which is owed the key once."""
    system.label(site="lab", rack="one")
    system.taken(system.apply, system.upload("root-key-A"), site="lab", rack="one")


@seen_with("third-identical-label", outcome="BREACH")
def test_a_device_is_given_the_same_label_twice(system):
    """Section 2.3: that it has it is looked for only while its key has one value."""
    system.label(site="lab")
    system.label(site="field")
    system.refused(system.label, site="lab")


@seen_with("any-device-labelled", outcome="BREACH")
def test_a_device_is_labelled_that_is_no_fpga(system):
    """Section 2.3: images that are applied to the label are owed to it."""
    hostname = next(iter(system.bench.cards.values())).hostname
    others = [d.address for d in system.driver.devices(hostname) if d.device_id not in ("0b30", None)]
    assert others, "the host has no device but its cards"
    system.refused(system.label, others[0], site="lab")


# -- uploads and who may do what --------------------------------------------------------------------------


@seen_with("upload-booleans-fail", outcome="FAILED")
def test_lp_1980405_an_upload_with_a_boolean_fails(system):
    """A BMC image cannot be uploaded: `--bmc` is answered by what is no JSON."""
    system.attempt(system.upload, "bmc-A/csk0")
    system.look()


@seen_with("device-id-not-checked", outcome="BREACH")
def test_lp_1889451_an_image_for_another_device_is_taken(system):
    """8086:0b30 is the one device that can be updated."""
    system.refused(system.upload, "A/csk0", pci_device="0b31")


@seen_with("upload-id-not-checked", outcome="BREACH")
def test_lp_1883998_an_image_is_known_by_what_is_no_uuid(system):
    """The id is the caller's to choose, and is one."""
    system.refused(system.upload, "A/csk0", uuid="junk")


@seen_with("custom-actions-denied", outcome="BREACH")
def test_lp_2102054_an_administrator_may_not_update(system):
    """Access is decided without looking at what is asked of a host."""
    system.apply(system.upload("root-key-A"))
    system.taken(system.update)


# -- hosts, alarms and what is shown of cards -------------------------------------------------------------


@seen_with("agent-not-installed", verdicts={"sysinv-device": "LOST"})
def test_lp_1981824_nobody_reports_the_card(system):
    """All that is shown of the card is None, and stays so."""
    system.pass_time(600)


@seen_with("kernel-unknown-to-tools", verdicts={"sysinv-device": "UNKNOWN_AS_VALUE"})
def test_lp_2160223_a_kernel_that_the_agent_does_not_know_shows_empty_fields(system):
    """The attributes that the agent reads are gone with the kernel's drivers; it shows empty text."""
    system.boot()


@pytest.mark.parametrize(
    "kernel", [pytest.param("unknown", marks=pytest.mark.hil_expects(outcome="FAILED")), "known"]
)
def test_lp_2160223_a_host_stays_locked_where_its_cards_cannot_be_reset(system, kernel):
    """A mainline kernel offers no way to load an image again: the boot manifest fails, at every try.

    A circumstance of the host, and no defect of the system: it says what is true.
    """
    if kernel == "unknown":
        system.disturb_host("no-image-load")
    system.boot()


@seen_with("leftover-container", on="containers", outcome="FAILED")
def test_lp_2142481_a_reset_that_was_cut_short_fails_for_ever(system):
    """The container of the reset before it is there still, with its name."""
    system.disturb_host("power-cut-in-container")
    system.boot()


@KEYED
@seen_with("retimer-flag-after-failure", outcome="BREACH")
def test_retimers_are_reset_for_an_image_that_was_refused(system):
    """Section 3.2, step 7: the flag is set whatever became of the image."""
    system.apply(system.upload("bmc-A/csk0", promise="unchanged", retimer_included=True))
    system.update()
    system.boot()


@seen_with("inventory-reported-once", verdicts={"sysinv-device": "STALE"})
def test_a_root_key_that_was_programmed_is_not_shown(system):
    """An agent reports a card once in its life (section 3.1)."""
    system.apply(system.upload("root-key-A"))
    system.update()
    system.pass_time(1200)


@seen_with("alarm-without-update", verdicts={"alarm-900.006": "STALE"})
def test_lp_1883293_an_alarm_outlives_its_image(system):
    """The alarm says that an update is in progress, and nothing is to be written."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.remove(image)


@seen_with("remove-leaves-host-pending", verdicts={"sysinv-host": "STALE"})
def test_a_host_is_pending_with_nothing_to_update(system):
    """Section 4.4."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.remove(image)


@seen_with(
    "label-assign-leaves-host-alone",
    verdicts={"sysinv-host": "CONTRADICTION", "alarm-900.006": "CONTRADICTION"},
)
def test_a_label_brings_an_image_and_the_host_does_not_know(system):
    """Section 4.5: apply to a label, then label the device."""
    system.apply(system.upload("A/csk0"), site="lab")
    system.label(site="lab")
    system.look()


@seen_with(
    "audit-leaves-host-in-progress",
    verdicts={"sysinv-host": "STALE", "sysinv-image-state": "FALSE_FAILURE"},
    without={"verdicts": {"sysinv-image-state": "FALSE_FAILURE"}},
)
def test_a_host_is_at_an_update_that_has_timed_out(system):
    """Section 4.7: the word that a root key is done is lost; the audit says failed, and goes no further."""
    system.apply(system.upload("root-key-A"))
    system.disturb("completions", None)
    system.update()
    system.pass_time(700)
    system.pass_time(400)


@seen_with("remove-drops-running-state", verdicts={"sysinv-host": "LOST"}, without={"outcome": "FAILED"})
def test_an_image_is_removed_while_it_is_written(system):
    """Section 4.8: a corrected system refuses that; another one waits for a word on what is not there."""
    image = system.upload("root-key-A")
    system.apply(image)
    system.at("programming", system.attempt, system.remove, image)
    system.update()
    system.pass_time(400)


@seen_with(
    "delete-orphans-states",
    outcome="UNKNOWN",
    verdicts={
        "sysinv-host": "LOST",
        "sysinv-image-state": "MISREPORT",
        "alarm-900.006": "CONTRADICTION",  # no image is left, and something is pending
    },
)
def test_a_state_of_no_image_is_left(system):
    """Section 4.8: an image that is pending is deleted, and the next update never ends."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.delete(image)
    system.update()
    system.pass_time(400)

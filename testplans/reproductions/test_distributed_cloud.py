"""Historical failures of dcmanager: each seen on a cloud that has the defect, silent on one without.

A scenario says what is done, and by which outcome or verdicts the defect shows. An emulated cloud is a
corrected one with that defect, and then one without it. Where a defect needs another to be seen, both have
that one. References: fact sheet of StarlingX, sections 5 and 6.1.
"""

import pytest

pytestmark = pytest.mark.hil_lab("two-subclouds")
LABEL = {"site": "lab"}


def seen_with(defect, *, beside=(), without=None, **stated):
    """Run on a cloud with the defect, where it is as stated, and on one without, as ``without`` states.

    :param beside: defects that both clouds have.
    """
    clouds = ((defect, (defect, *beside), stated), ("corrected", tuple(beside), without or {}))
    return pytest.mark.parametrize(
        "cloud",
        [
            pytest.param(
                "central",
                id=name,
                marks=[
                    pytest.mark.hil_release("corrected", defects=defects),
                    pytest.mark.hil_expects(**expected),
                ],
            )
            for name, defects, expected in clouds
        ],
        indirect=True,
    )


def apply(cloud, image, **labels):
    """Have the controller apply an image, and its audit look; return the image's uuid."""
    uuid = cloud.controller.upload(image)
    cloud.controller.apply(uuid, **labels)
    cloud.audit()
    return uuid


def run(cloud, **options):
    """Orchestrate, let the audit look, and delete the strategy; return how it ended."""
    state = cloud.orchestrate(**options).state
    cloud.audit()
    cloud.delete_strategy()
    return state


def exchange(cloud, card):
    """Put another card into a host, which holds nothing of what was written; the audit looks."""
    cloud.given(card, root="B")
    cloud.disturb("audit-now")
    cloud.look()


# -- the status of a subcloud -----------------------------------------------------------------------------


@seen_with("sync-by-uuid", beside=("sync-from-rows-only",), verdicts={"dcmanager-sync": "FALSE_FAILURE"})
def test_lp_1952444_the_same_image_by_another_uuid_is_out_of_sync(cloud):
    """As on a controller that took a subcloud over: its card holds the image, and its rows say so, too."""
    old = apply(cloud, "A/csk0")
    run(cloud)
    cloud.controller.remove(old)
    apply(cloud, "A/csk0")
    cloud.pass_time(100)


@seen_with("key-images-not-audited", verdicts={"dcmanager-sync": "LOST"})
def test_lp_1952444_a_root_key_leaves_the_status_unknown(cloud):
    """Unknown is never read as in-sync, and no audit ends it."""
    apply(cloud, "root-key-A")
    cloud.pass_time(3700)


@seen_with("status-stays-unknown", verdicts={"dcmanager-sync": "LOST"})
def test_story_2007267_the_status_stays_unknown(cloud):
    """The worker that audits cannot read what it is sent."""
    apply(cloud, "A/csk0")
    cloud.pass_time(3700)


@seen_with("out-of-sync-until-all-finish", verdicts={"dcmanager-sync": "STALE"})
def test_lp_1890952_a_subcloud_that_is_done_is_out_of_sync(cloud):
    """Until the whole strategy is: one after the other, and the second one takes its time."""
    apply(cloud, "A/csk0")
    cloud.create_strategy(subcloud_apply_type="serial")
    with cloud.applied_until("far/card0", "transferring") as go_on:
        cloud.look()
        go_on("programming")
        cloud.look()
    cloud.wait_for_strategy()
    cloud.audit()


@seen_with("forced-audit-lost", verdicts={"dcmanager-sync": "STALE"})
def test_lp_1890294_a_subcloud_has_no_status_after_it_was_managed(cloud):
    """For up to an hour: the audit that comes with it forgets that it was asked for this."""
    apply(cloud, "A/csk0")
    cloud.disturb("subcloud-unmanaged", "near")
    cloud.look()
    cloud.disturb("subcloud-unmanaged", "-near")
    cloud.look()
    cloud.pass_time(300)


@seen_with("unmanaged-in-sync", verdicts={"dcmanager-sync": "FALSE_SUCCESS"})
def test_lp_2081077_a_subcloud_that_is_not_managed_is_in_sync(cloud):
    """Nobody asks it, and its card does not hold the image."""
    cloud.disturb("subcloud-unmanaged", "near")
    apply(cloud, "A/csk0")


@seen_with(
    "sync-from-rows-only",
    verdicts={"dcmanager-sync": "FALSE_SUCCESS", "sysinv-image-state": "FALSE_SUCCESS"},
    without={"verdicts": {"sysinv-image-state": "FALSE_SUCCESS"}},
)
def test_in_sync_by_rows_alone(cloud):
    """The card was exchanged for another one: every row says completed, and no one reads the card."""
    apply(cloud, "A/csk0")
    run(cloud)
    exchange(cloud, "near/card0")


@seen_with(
    "no-labels-in-sync",
    beside=("labels-lost-at-boot",),
    verdicts={
        "dcmanager-sync": "FALSE_SUCCESS",
        "controller-applied": "CONTRADICTION",
        "vim-strategy": "UNVERIFIABLE",
    },
    without={"verdicts": {"controller-applied": "CONTRADICTION", "vim-strategy": "UNVERIFIABLE"}},
)
def test_no_labels_are_in_sync(cloud):
    """The labels went at the boot (LP 1890296), and the card was exchanged: there is nothing to compare.

    With the labels went the states of the images, by which the VIM's word could be held to the card.
    """
    cloud.given("near/card0", boots_at="0000:b3:00.0")
    cloud.subclouds["near"].label(**LABEL)
    apply(cloud, "A/csk0", **LABEL)
    run(cloud)
    exchange(cloud, "near/card0")


@seen_with("no-devices-in-sync", verdicts={"dcmanager-sync": "FALSE_SUCCESS"})
def test_a_subcloud_whose_card_is_disabled_is_in_sync(cloud):
    """Devices that are disabled are passed over, and no other is left that the image is for."""
    near = cloud.subclouds["near"]
    near.lock()
    near.enable_device(False)
    near.unlock()
    apply(cloud, "A/csk0")


@seen_with("regionone-error-in-sync", verdicts={"dcmanager-sync": "FALSE_SUCCESS"})
def test_all_are_in_sync_while_the_controllers_images_cannot_be_listed(cloud):
    """An error is taken for an empty list."""
    apply(cloud, "A/csk0")
    cloud.disturb("refuse-requests", 1)
    cloud.disturb("audit-now")
    cloud.look()


@seen_with(
    "finishing-forces-in-sync",
    beside=("two-images-on-floating-label",),
    verdicts={
        "dcmanager-sync": "FALSE_SUCCESS",
        "sysinv-applied": "CONTRADICTION",
    },
    without={"verdicts": {"sysinv-applied": "CONTRADICTION"}},
)
def test_a_step_that_is_complete_makes_its_subcloud_in_sync(cloud):
    """Whatever it holds, until the next audit: the controller lists two images for one card."""
    cloud.subclouds["near"].label(**LABEL)
    apply(cloud, "A/csk0", **LABEL)
    apply(cloud, "A/csk1", **LABEL)
    run(cloud)


# -- strategies -------------------------------------------------------------------------------------------


@seen_with("subcloud-labels-applied", verdicts={"controller-applied": "CONTRADICTION"})
def test_lp_1890355_an_image_is_applied_to_labels_that_it_is_not_for(cloud):
    """To all of the device, whatever labels the controller applies it to."""
    cloud.subclouds["near"].label(rack="one", **LABEL)
    apply(cloud, "A/csk0", **LABEL)
    run(cloud)


@seen_with("leftover-vim-strategy", outcome="FAILED")
def test_lp_1891521_a_strategy_that_is_left_blocks_the_next_one(cloud):
    """The first one fails, rightly: the card has a root key and refuses an unsigned image."""
    cloud.given("near/card0", root="A")
    cloud.subclouds["near"].label(**LABEL)
    refused = apply(cloud, "unsigned", **LABEL)
    assert run(cloud) == "failed"
    cloud.controller.remove(refused, **LABEL)
    apply(cloud, "A/csk0", **LABEL)
    run(cloud)


@seen_with(
    "rerun-alternates-images",
    beside=("two-images-on-floating-label", "sync-from-rows-only"),
    outcome="FAILED",
    verdicts={
        "dcmanager-step": "FALSE_SUCCESS",
        "dcmanager-strategy": "FALSE_SUCCESS",
        "sysinv-applied": "CONTRADICTION",
        "controller-applied": "CONTRADICTION",
    },
    # By rows alone the subcloud stays out-of-sync for the older image, for which there is nothing to do.
    without={"verdicts": {"sysinv-applied": "CONTRADICTION", "dcmanager-step": "FALSE_FAILURE"}},
)
def test_each_run_writes_the_other_one_of_two_images(cloud):
    """The controller lists both, and each evicts the other: the second run brings back the older one."""
    cloud.subclouds["near"].label(**LABEL)
    apply(cloud, "A/csk0", **LABEL)
    apply(cloud, "A/csk1", **LABEL)
    run(cloud)
    run(cloud)
    run(cloud)


@seen_with("finishing-without-retries", verdicts={"dcmanager-step": "FALSE_FAILURE"})
def test_lp_1922281_a_step_fails_where_an_api_is_away_after_the_unlock(cloud):
    """The card holds the image; nobody could be asked at that moment."""
    apply(cloud, "A/csk0")
    cloud.disturb("api-down-after-unlock", 600, subcloud="near")
    cloud.create_strategy()
    cloud.apply_strategy()
    cloud.driver.wait_for_strategy(deadline=120)  # without a look, which the API would not answer
    cloud.pass_time(700)


@seen_with("revocation-upload-fails", outcome="FAILED")
def test_lp_1890340_a_key_revocation_is_not_brought_to_a_subcloud(cloud):
    """Its number does not go into the form of an upload."""
    cloud.given("near/card0", root="A")
    cloud.subclouds["near"].label(**LABEL)
    apply(cloud, "cancel-A-csk1", **LABEL)
    run(cloud)


@seen_with(
    "upload-without-vault-file",
    outcome="FAILED",
    verdicts={"controller-upload": "FALSE_SUCCESS"},
    without={"outcome": "FAILED"},  # the upload is refused, as it must be
)
def test_an_image_that_the_vault_did_not_take_is_uploaded(cloud):
    """Errors of the copy to the vault are logged, and nobody is told."""
    cloud.disturb("vault-takes-files", False)
    uuid = cloud.controller.attempt(cloud.controller.upload, "A/csk0")
    cloud.disturb("vault-takes-files", True)
    if uuid is not None:
        cloud.controller.apply(uuid)
        cloud.audit()
        run(cloud)


# -- the VIM of a subcloud --------------------------------------------------------------------------------

#: What is said, and not to be held to a card that was written and never reset: the strategy ends before.
NOT_RESET = {
    "vim-strategy": "FALSE_FAILURE",
    "sysinv-image-state": "UNVERIFIABLE",
    "dcmanager-sync": "UNVERIFIABLE",
    "dcmanager-step": "UNVERIFIABLE",
}


@seen_with("vim-hangs-on-pending", verdicts={"vim-strategy": "STALE", "dcmanager-step": "STALE"})
def test_lp_1890915_a_strategy_goes_on_after_the_update_has_failed(cloud):
    """The card has a root key and refuses an unsigned image; its host goes back to pending."""
    cloud.given("near/card0", root="A")
    apply(cloud, "unsigned")
    cloud.create_strategy()
    with cloud.applied_for(1200) as go_on:
        cloud.look()
        go_on(300)
        cloud.look()
    cloud.wait_for_strategy()


@seen_with("vim-restart-traceback", outcome="UNKNOWN", verdicts=NOT_RESET)
def test_lp_1929251_a_strategy_fails_after_the_vim_was_restarted(cloud):
    """Its looks at the host it updates end in a traceback from then on; the card is written."""
    apply(cloud, "A/csk0")
    cloud.create_strategy()
    with cloud.applied_until("near/card0", "programming"):
        cloud.restart_vim("near")
    cloud.wait_for_strategy()
    cloud.pass_time(600)


@seen_with("vim-ignores-null", outcome="UNKNOWN", verdicts=NOT_RESET)
def test_a_strategy_fails_where_its_host_says_nothing_of_its_update(cloud):
    """NULL is not the empty status to the VIM: it waits until the hour is over. The card is written."""
    cloud.disturb("host-update-null", True, subcloud="near")
    apply(cloud, "A/csk0")
    cloud.orchestrate()
    cloud.pass_time(600)

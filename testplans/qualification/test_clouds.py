"""What must hold of a distributed cloud: what a subcloud is said to be is what its cards are.

On a cloud without known defects all that is said is true, but for what sysinv keeps of an exchanged card.
"""

import pytest

LABEL = {"site": "lab"}
#: Of a card that was exchanged; no one can ask sysinv to look.
KEPT = {"sysinv-image-state": "FALSE_SUCCESS"}


def applied(cloud, image="A/csk0", **labels) -> str:
    """Have an image applied on the controller, and the audit look."""
    uuid = cloud.controller.upload(image)
    cloud.controller.apply(uuid, **labels)
    cloud.audit()
    return uuid


def run(cloud, **options) -> None:
    """Orchestrate if anything is due, let the audit look, delete the strategy."""
    if all(subcloud.firmware_sync_status == "in-sync" for subcloud in cloud.driver.subclouds()):
        return
    cloud.orchestrate(**options)
    cloud.audit()
    cloud.delete_strategy()


def exchanged(cloud) -> None:
    """Put another card into a subcloud, and have the audit look."""
    cloud.given("near/card0", root="B")
    cloud.disturb("audit-now")
    cloud.look()


def test_an_orchestration_one_subcloud_after_the_other(cloud) -> None:
    """What is out of sync comes into sync with its own step."""
    applied(cloud)
    cloud.create_strategy(subcloud_apply_type="serial")
    with cloud.applied_until("far/card0", "programming"):
        cloud.look()
    cloud.wait_for_strategy()
    cloud.audit()


def test_the_status_is_known_in_time(cloud) -> None:
    """Of a user image, and of a root key."""
    first = applied(cloud)
    cloud.pass_time(3700)
    cloud.controller.remove(first)
    cloud.controller.delete(first)
    applied(cloud, "root-key-A")
    cloud.pass_time(3700)


def test_an_image_is_applied_to_its_own_labels(cloud) -> None:
    """A device has more of them than the image."""
    cloud.subclouds["near"].label(rack="one", **LABEL)
    applied(cloud, **LABEL)
    run(cloud)


def test_a_subcloud_that_is_not_managed_for_a_while(cloud) -> None:
    """Nobody asks it then; once it is managed again, its status is known."""
    cloud.disturb("subcloud-unmanaged", "near")
    applied(cloud)
    cloud.disturb("subcloud-unmanaged", "-near")
    cloud.look()
    cloud.pass_time(300)


@pytest.mark.hil_expects(verdicts=KEPT)
def test_a_card_that_was_exchanged_is_out_of_sync(cloud) -> None:
    """It holds nothing of what was written to the one before it."""
    applied(cloud)
    run(cloud)
    exchanged(cloud)


@pytest.mark.hil_expects(verdicts=KEPT)
def test_a_card_that_was_exchanged_after_a_boot_is_out_of_sync(cloud) -> None:
    """It stands elsewhere from its boot to the reset that follows, and carries a label."""
    cloud.given("near/card0", boots_at="0000:b3:00.0")
    cloud.subclouds["near"].label(**LABEL)
    applied(cloud, **LABEL)
    run(cloud)
    exchanged(cloud)


def test_the_same_image_under_another_uuid(cloud) -> None:
    """Removed and uploaded anew: the cards hold it."""
    first = applied(cloud)
    run(cloud)
    cloud.controller.remove(first)
    applied(cloud)
    cloud.pass_time(100)


def test_two_images_for_one_label(cloud) -> None:
    """The newer one is due, once, and stays."""
    cloud.subclouds["near"].label(**LABEL)
    applied(cloud, **LABEL)
    applied(cloud, "A/csk1", **LABEL)
    for _ in range(3):
        run(cloud)


def test_a_revocation_comes_to_every_card(cloud) -> None:
    """On a card that has the root key."""
    cloud.given("near/card0", root="A")
    cloud.subclouds["near"].label(**LABEL)
    applied(cloud, "cancel-A-csk1", **LABEL)
    run(cloud)


def test_a_refused_image_is_followed_by_a_good_one(cloud) -> None:
    """The strategy of the first one leaves nothing that keeps the second one from its end."""
    cloud.given("near/card0", root="A")
    cloud.subclouds["near"].label(**LABEL)
    refused = cloud.controller.upload("unsigned", promise="unchanged")
    cloud.controller.apply(refused, **LABEL)
    cloud.audit()
    run(cloud)
    cloud.controller.remove(refused, **LABEL)
    applied(cloud, **LABEL)
    run(cloud)


def test_an_api_that_is_away_after_the_unlock_is_waited_for(cloud) -> None:
    """For ten minutes, in which nothing can be looked at."""
    applied(cloud)
    cloud.disturb("api-down-after-unlock", 600, subcloud="near")
    cloud.create_strategy()
    cloud.apply_strategy()
    cloud.driver.wait_for_strategy(deadline=120)
    cloud.pass_time(700)


def test_a_controller_that_does_not_answer_itself_makes_nothing_in_sync(cloud) -> None:
    """Its own images cannot be listed during an audit."""
    applied(cloud)
    cloud.disturb("refuse-requests", 1)
    cloud.disturb("audit-now")
    cloud.look()


def test_an_upload_that_the_vault_does_not_keep_is_refused(cloud) -> None:
    """No subcloud could ever get it."""
    cloud.disturb("vault-takes-files", False)
    with cloud.controller.driver.promised("refused"):
        uuid = cloud.controller.attempt(cloud.controller.upload, "A/csk0")
    cloud.disturb("vault-takes-files", True)
    if uuid is not None:
        cloud.controller.apply(uuid)
        cloud.audit()
        run(cloud)


def test_a_subcloud_whose_card_is_disabled_is_out_of_sync(cloud) -> None:
    """The card is there, and does not hold what is listed for it."""
    near = cloud.subclouds["near"]
    near.lock()
    near.enable_device(False)
    near.unlock()
    applied(cloud)


def test_a_refusal_is_told_by_the_strategy_of_its_subcloud(cloud) -> None:
    """Soon after it: it asks the host every minute."""
    cloud.given("near/card0", root="A")
    applied(cloud, "unsigned")
    cloud.create_strategy()
    with cloud.applied_for(1200) as go_on:
        cloud.look()
        go_on(300)
        cloud.look()
    cloud.wait_for_strategy()
    cloud.audit()


def test_a_restart_of_the_vim_stops_no_strategy(cloud) -> None:
    """The VIM of a subcloud alone is restarted while its card is written."""
    applied(cloud)
    cloud.create_strategy()
    with cloud.applied_until("near/card0", "programming"):
        cloud.restart_vim("near")
    cloud.wait_for_strategy()
    cloud.pass_time(600)


def test_a_host_that_says_nothing_of_its_update_has_nothing_to_do(cloud) -> None:
    """sysinv knows no status of the update of a host that was never given one; NULL is as good as empty."""
    cloud.disturb("host-update-null", True, subcloud="near")
    applied(cloud)
    run(cloud)

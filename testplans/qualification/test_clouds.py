"""What must hold of a distributed cloud: what a subcloud is said to be is what its cards are.

On a cloud without known defects all that is said is true, but for what sysinv keeps of an exchanged card.
"""

import pytest


def applied(cloud, image="A/csk0", **labels) -> str:
    """Have an image applied on the controller, and the audit look."""
    uuid = cloud.controller.upload(image)
    cloud.controller.apply(uuid, **labels)
    cloud.audit()
    return uuid


def exchanged(cloud) -> None:
    """Put another card into a subcloud, and have the audit look."""
    cloud.given("near/card0", root="none")
    cloud.disturb("audit-now")
    cloud.audit()


def test_an_orchestration_one_subcloud_after_the_other(cloud) -> None:
    """What is out of sync comes into sync with its own step."""
    applied(cloud)
    cloud.create_strategy(subcloud_apply_type="serial")
    with cloud.applied_until("far/card0", "programming"):
        cloud.look()
    cloud.wait_for_strategy()
    cloud.audit()
    cloud.delete_strategy()


def test_images_of_labels_that_not_all_devices_carry(cloud) -> None:
    """An image is applied to two labels, of which a subcloud has one."""
    cloud.subclouds["near"].label(site="lab")
    applied(cloud, site="lab", rack="one")
    cloud.orchestrate()
    cloud.audit()


@pytest.mark.hil_expects(verdicts={"sysinv-image-state": "FALSE_SUCCESS"})
def test_a_card_that_was_exchanged_is_out_of_sync(cloud) -> None:
    """It holds nothing of what was written to the one before it; sysinv does not look."""
    applied(cloud)
    cloud.orchestrate()
    cloud.audit()
    cloud.delete_strategy()
    exchanged(cloud)


def test_keys_are_audited_and_revoked(cloud) -> None:
    """A root key, then the revocation of one of its keys."""
    applied(cloud, "root-key-A")
    cloud.orchestrate()
    cloud.audit()
    cloud.delete_strategy()
    applied(cloud, "cancel-A-csk1")
    cloud.orchestrate()
    cloud.audit()


def test_a_refused_image_is_followed_by_a_good_one(cloud) -> None:
    """The strategy of the first one leaves nothing that keeps the second one from its end."""
    cloud.given("near/card0", root="A")
    refused = cloud.controller.upload("unsigned", promise="unchanged")
    cloud.controller.apply(refused)
    cloud.audit()
    cloud.orchestrate(cloud_name="near")
    cloud.audit()
    cloud.delete_strategy()
    cloud.controller.remove(refused)
    cloud.controller.delete(refused)
    applied(cloud)
    cloud.orchestrate()
    cloud.audit()


def test_an_api_that_is_away_after_the_unlock_is_waited_for(cloud) -> None:
    """For a quarter of an hour."""
    applied(cloud)
    cloud.disturb("api-down-after-unlock", 600, subcloud="near")
    cloud.orchestrate()
    cloud.audit()


def test_a_controller_that_does_not_answer_itself_makes_nothing_in_sync(cloud) -> None:
    """Its own images cannot be listed during an audit."""
    applied(cloud)
    cloud.disturb("refuse-requests", 1)
    cloud.disturb("audit-now")
    cloud.look()
    cloud.audit()


def test_an_upload_that_the_vault_does_not_keep_is_refused(cloud) -> None:
    """No subcloud could ever get it."""
    cloud.disturb("vault-takes-files", False)
    cloud.controller.refused(cloud.controller.upload, "A/csk0")
    cloud.audit()


def test_a_subcloud_that_is_restarted_comes_to_its_end(cloud) -> None:
    """All of its services, while its card is written."""
    applied(cloud)
    cloud.create_strategy()
    with cloud.applied_until("near/card0", "programming"):
        cloud.disturb("restart", subcloud="near")
    cloud.wait_for_strategy()
    cloud.audit()


def test_the_same_image_under_another_uuid(cloud) -> None:
    """Removed, deleted and uploaded anew: the cards hold it."""
    first = applied(cloud)
    cloud.orchestrate()
    cloud.audit()
    cloud.delete_strategy()
    cloud.controller.remove(first)
    cloud.controller.delete(first)
    applied(cloud)

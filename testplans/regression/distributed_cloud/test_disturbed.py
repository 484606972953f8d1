"""Something goes wrong around an orchestration: what is said of it is true, and the next strategy mends it.

What is expected: fact sheet of StarlingX, sections 5.1 (vault), 5.5 (what dcmanager waits for, and how long)
and 5.6 (audit).
"""

import pytest

pytestmark = [
    pytest.mark.hil_lab("emulated"),
    pytest.mark.hil_release("corrected"),
    pytest.mark.hil_requirement("CLOUD-SYNC"),
]


def begin(cloud, **options):
    """Apply one image to every card, and create the strategy for it."""
    image = cloud.controller.upload("A/csk0")
    cloud.controller.apply(image)
    cloud.audit()
    cloud.create_strategy(**options)
    return image


def test_a_subcloud_is_away_for_a_while(cloud):
    """Polls that fail are tolerated for half an hour."""
    begin(cloud)
    with cloud.applied_until("subcloud2/card0", "transferring") as go_on:
        cloud.disturb("subcloud-offline", "subcloud2")
        go_on("programming")
        cloud.disturb("subcloud-offline", "-subcloud2")
    assert cloud.wait_for_strategy().state == "complete"
    cloud.audit()


@pytest.mark.hil_expects(verdicts={"dcmanager-step": "FALSE_FAILURE"})
def test_a_subcloud_goes_away_for_good(cloud):
    """Its step fails after thirty polls, while its card gets the image all the same: nobody can tell it."""
    begin(cloud)
    with cloud.applied_until("subcloud2/card0", "transferring"):
        cloud.disturb("subcloud-offline", "subcloud2")
    assert cloud.wait_for_strategy().state == "failed"
    cloud.audit()
    cloud.disturb("subcloud-offline", "-subcloud2")
    cloud.audit()
    cloud.delete_strategy()


def test_dcmanager_is_restarted(cloud):
    """Strategy and steps are in its database: it goes on, and has missed what became of cards meanwhile."""
    begin(cloud)
    with cloud.applied_until("subcloud1/card0", "transferring") as go_on:
        cloud.disturb("dcmanager", False)
        go_on("programming")
        cloud.disturb("dcmanager", True)
    assert cloud.wait_for_strategy().state == "complete"
    cloud.audit()


def test_the_controller_is_restarted(cloud):
    """All services of the system controller at once."""
    begin(cloud)
    with cloud.applied_until("subcloud1/card0", "programming"):
        cloud.disturb("restart")
    assert cloud.wait_for_strategy().state == "complete"
    cloud.audit()


@pytest.mark.hil_expects(outcome="FAILED", verdicts={"sysinv-image-state": "LOST"})
def test_a_step_times_out(cloud):
    """No progress for an hour, as the word that the image is written is lost; the others are done."""
    begin(cloud)
    cloud.disturb("completions", None, subcloud="subcloud3")
    cloud.apply_strategy()
    assert cloud.wait_for_strategy().state == "failed"
    cloud.audit()


def test_an_api_that_is_down_after_the_unlock(cloud):
    """Its subcloud's step waits for it."""
    begin(cloud)
    cloud.disturb("api-down-after-unlock", 600, subcloud="subcloud1")
    cloud.apply_strategy()
    assert cloud.wait_for_strategy().state == "complete"
    cloud.audit()


def test_one_subcloud_is_slow(cloud):
    """The others do not wait for it, and are told to be done before it."""
    begin(cloud, max_parallel=4)
    cloud.disturb("slow", 10, subcloud="subcloud4")
    cloud.apply_strategy()
    assert cloud.wait_for_strategy().state == "complete"
    cloud.audit()


@pytest.mark.hil_expects(outcome="FAILED", verdicts={"controller-upload": "FALSE_SUCCESS"})
def test_the_file_is_missing_in_the_vault(cloud):
    """The upload was told to be one, and no step can import the image; once it is uploaded anew, they can."""
    image = begin(cloud)
    cloud.disturb("vault-missing", image)
    cloud.apply_strategy()
    assert cloud.wait_for_strategy().state == "failed"
    cloud.audit()
    cloud.controller.remove(image)
    cloud.controller.delete(image)
    cloud.controller.apply(cloud.controller.upload("A/csk0"))
    cloud.delete_strategy()
    cloud.audit()
    assert cloud.orchestrate().state == "complete"
    cloud.audit()

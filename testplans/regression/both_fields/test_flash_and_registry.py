"""An orchestration flashes cards while the registry that their tool image comes from gets new certificates.

Both fields are judged in one history: what dcmanager, sysinv and the cards show, and what the clients of the
registry say and it holds. Neither knows of the other, so that trouble in one is no excuse for the other.
What is expected: fact sheets of StarlingX, sections 5.5 and 7.3, and of the registry, section 3.
"""

import pytest

pytestmark = [pytest.mark.hil_lab("emulated"), pytest.mark.hil_release("corrected")]

#: The image with the tools that write to cards, as hosts have it from the local registry (section 3.2).
TOOLS = "docker.io/starlingx/n3000-opae"


@pytest.fixture
def begun(cloud):
    """A strategy that is to bring an image to every card, created and not applied."""
    cloud.controller.apply(cloud.controller.upload("A/csk0"))
    cloud.audit()
    cloud.create_strategy(max_parallel=4)


def end(cloud):
    """Wait for the strategy, and hold everybody to the cards."""
    assert cloud.wait_for_strategy().state == "complete"
    cloud.audit()


@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize(("hil_way", "flashed"), [("rest", "subcloud1/card0"), ("cli", "subcloud3/card0")])
def test_certificates_rotate_and_the_tool_image_is_pulled(cloud, push, pull, flashed):
    """It is pulled before and after, with a card being written; and pushed anew with the keys of after."""
    repository = f"{push.repository}/{TOOLS}"
    before = push("verified-push", "small", repository=repository)
    pull("skopeo-pull", before)
    with cloud.applied_until(flashed, "programming"):
        push.disturb("rotate-certificate")
        pull("oci-pull", before)
        push.disturb("rotate-keys")
        pull("skopeo-pull", before)
        push("verified-push", "shared", repository=repository, tag="v2")
    end(cloud)
    push.look_again(before)


@pytest.mark.usefixtures("begun")
@pytest.mark.hil_expects(outcome="FAILED")
def test_the_push_of_the_tool_image_dies_with_the_rotation(cloud, push):
    """Its client has one token for all, and says that it failed; the cards have nothing to do with it."""
    with cloud.applied_until("subcloud2/card0", "programming"):
        repository = f"{push.repository}/{TOOLS}"
        push("oci-once", "small", repository=repository, at="before:manifest-put", action="rotate-keys")
    end(cloud)

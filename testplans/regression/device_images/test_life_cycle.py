"""Device images through a StarlingX system, by its API and by its command, every statement held to the card.

What is expected: fact sheet of StarlingX, sections 1 to 4; Intel FPGA PAC N3000 Security User Guide (683519).
"""

import pytest

pytestmark = [
    pytest.mark.hil_requirement("IMAGE-STATE"),
    pytest.mark.hil_lab("device-images"),
    pytest.mark.parametrize("hil_way", ["rest", "cli"]),
]


def test_life_of_a_user_image(system):
    """Upload, label, apply, update, boot, remove, delete: the card runs it after the boot, not before."""
    system.label(site="lab")
    image = system.upload("A/csk0")
    system.apply(image, site="lab")
    system.update()
    system.boot()
    system.remove(image, site="lab")
    system.delete(image)
    system.unlabel("site")


def test_every_kind_of_image_in_its_order(system):
    """A root key; key revocation and user image in one update, in this order (section 4.7); a BMC image.

    The BMC section carries Intel's own root from the factory: no image of ours passes it.
    """
    key = system.upload("root-key-A")
    system.apply(key)
    system.update()
    system.boot()
    user, revocation = system.upload("A/csk0-v2"), system.upload("cancel-A-csk1")
    system.apply(user)
    system.apply(revocation)
    system.update()
    system.boot()
    bmc = system.upload("bmc-A/csk0", promise="unchanged")
    system.apply(bmc)
    system.update()
    system.boot()
    for image in (key, user, revocation, bmc):
        system.remove(image)
        system.delete(image)


def test_an_image_that_the_card_refuses_has_failed(system):
    """An unsigned image on a card with a root key: the card keeps its own, and the system says failed."""
    key = system.upload("root-key-A")
    system.apply(key)
    system.update()
    system.boot()
    image = system.upload("unsigned", promise="unchanged")
    system.apply(image)
    system.update()
    system.boot()
    system.remove(image)
    system.delete(image)


def test_a_new_user_image_takes_the_place_of_the_old_one(system):
    """One functional image is applied to a device (section 4.2)."""
    for name in ("unsigned", "A/csk0"):
        image = system.upload(name)
        system.apply(image)
        system.update()
        system.boot()


@pytest.mark.hil_given(bmc_root="A")
@pytest.mark.parametrize("retimers", [False, True], ids=["alone", "with-retimers"])
def test_life_of_a_bmc_image(system, retimers):
    """A card whose BMC section has our root takes a BMC image of ours, beside its user image.

    Both are active after the boot; with retimers these are reset then, too (section 3.2, step 7).
    """
    user, bmc = system.upload("A/csk0"), system.upload("bmc-A/csk0", retimer_included=retimers)
    for image in (user, bmc):
        system.apply(image)
    system.update()
    system.boot()
    for image in (user, bmc):
        system.remove(image)
        system.delete(image)


@pytest.mark.parametrize("system", ["pair"], indirect=True)
def test_a_controller_that_boots_itself(system):
    """An all-in-one host: by the command, the link that unlocks it breaks with it."""
    system.apply(system.upload("A/csk0"))
    system.update()
    system.boot()

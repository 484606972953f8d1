"""What must hold of device images, from the upload to the deletion, by what a system says and by its cards.

Nothing here states a divergence: on a system without known defects all that is said is true.
"""

import pytest

#: The second card of the lab.
OTHER = "worker/card1"
#: Lab seconds after which an image that was never reported as written has failed, and an audit more.
GIVEN_UP = 3600 + 301


@pytest.fixture
def keyed(system):
    """The system, its cards with root A."""
    key = system.upload("root-key-A")
    system.apply(key)
    system.update()
    system.boot()
    system.remove(key)
    system.delete(key)
    return system


def test_life_of_an_image_on_two_cards_with_one_label(system) -> None:
    """Label, apply, update, boot, apply again, remove, delete."""
    system.label(site="lab")
    system.label(OTHER, site="lab")
    image = system.upload("A/csk0")
    system.apply(image, site="lab")
    system.update()
    system.boot()
    system.apply(image, site="lab")
    system.remove(image, site="lab")
    system.delete(image)


def test_cards_are_shown_as_they_are(system) -> None:
    """After the boot, and after a root key was programmed."""
    system.boot()
    system.pass_time(600)
    system.apply(system.upload("root-key-A"))
    system.taken(system.update)
    system.pass_time(1200)


def test_an_image_that_is_removed_is_owed_no_more(system) -> None:
    """Applied to all devices; host and alarm say so."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.remove(image)
    system.delete(image)


def test_an_image_that_is_deleted_is_owed_no_more(system) -> None:
    """Applied to all devices, and deleted as it is; the next update has nothing to write."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.attempt(system.delete, image)
    system.update()
    system.pass_time(400)


def test_a_newer_image_takes_the_place_of_an_older_one(system) -> None:
    """Without labels, and of a label that no device carries."""
    system.apply(system.upload("A/csk0"))
    system.apply(system.upload("A/csk0-v2"))
    system.apply(system.upload("A/csk1"), site="elsewhere")
    system.apply(system.upload("unsigned"), site="elsewhere")


def test_a_bmc_image_and_a_user_image_are_owed_side_by_side(system) -> None:
    """One card holds both."""
    system.apply(system.upload("A/csk0"))
    image = system.taken(system.upload, "bmc-A/csk0", promise="unchanged")
    if image is not None:
        system.apply(image)


def test_a_card_that_moves_keeps_what_is_owed_to_it(system) -> None:
    """Its address changes at the reset; it is the same card."""
    system.label(site="lab")
    system.apply(system.upload("A/csk0"))
    system.disturb("move")
    system.update()
    system.boot()


def test_a_refused_root_key_is_told_and_stops_what_follows(keyed) -> None:
    """A second root key fails, and the functional image of the same update is not written."""
    keyed.apply(keyed.upload("root-key-B", promise="unchanged"))
    keyed.apply(keyed.upload("A/csk0", promise="unchanged"))
    keyed.update()
    keyed.pass_time(200)
    keyed.boot()


def test_a_refused_image_resets_no_retimer(keyed) -> None:
    """A BMC image with a retimer, of which the card takes nothing."""
    keyed.apply(keyed.upload("bmc-A/csk0", promise="unchanged", retimer_included=True))
    keyed.update()
    keyed.boot()


def test_an_update_whose_end_nobody_hears_of_is_given_up(keyed) -> None:
    """What the card refused has failed at the audit, and its host is busy no more."""
    keyed.label(site="lab")
    keyed.apply(keyed.upload("root-key-B", promise="unchanged"), site="lab")
    keyed.disturb("completions", None)
    keyed.update()
    keyed.pass_time(GIVEN_UP)
    keyed.pass_time(400)


def test_an_image_is_removed_while_it_is_written(system) -> None:
    """That is refused, and the host comes to its end."""
    image = system.upload("A/csk0")
    system.apply(image)
    system.at("programming", system.refused, system.remove, image)
    system.update()
    system.pass_time(400)
    system.attempt(system.boot)


def test_a_label_brings_what_is_applied_to_it(system) -> None:
    """Apply to the label first, label the device then."""
    system.apply(system.upload("A/csk0"), site="lab")
    system.label(site="lab")
    system.look()


def test_two_labels_bring_one_functional_image(system) -> None:
    """Each has another one; a device has room for one."""
    system.apply(system.upload("A/csk0"), site="lab")
    system.apply(system.upload("A/csk0-v2"), rack="one")
    system.attempt(system.label, site="lab", rack="one")
    system.look()
    system.update()
    system.boot()


def test_two_labels_bring_an_image_once(system) -> None:
    """Applied to both of them."""
    image = system.upload("A/csk0")
    system.apply(image, site="lab", rack="one")
    system.label(site="lab", rack="one")
    system.look()
    system.taken(system.remove, image, site="lab", rack="one")


def test_a_label_that_is_removed_takes_its_own_image_alone(system) -> None:
    """What is owed to another label of the device stays."""
    system.label(site="lab", rack="one")
    system.apply(system.upload("root-key-A"), rack="one")
    system.unlabel("site")


def test_a_label_that_carries_an_image_is_removed(system) -> None:
    """Images are still listed; what is owed without a label stays."""
    system.apply(system.upload("root-key-A"))
    system.label(site="lab")
    system.apply(system.upload("A/csk0"), site="lab")
    system.attempt(system.unlabel, "site")
    system.look()


def test_a_root_key_is_applied_to_two_labels_of_one_device(system) -> None:
    """It is one root key."""
    system.label(site="lab", rack="one")
    image = system.upload("root-key-A")
    system.taken(system.apply, image, site="lab", rack="one")


def test_a_label_of_no_device_goes_with_its_image(system) -> None:
    """Nothing is owed to anybody, and no label is left."""
    image = system.upload("A/csk0")
    system.apply(image, site="elsewhere")
    system.remove(image, site="elsewhere")
    system.delete(image)
    system.look()


def test_a_label_that_an_image_was_applied_to_goes_with_it(system) -> None:
    """Deleted as it is; no device carries the label."""
    image = system.upload("A/csk0")
    system.apply(image, site="elsewhere")
    system.attempt(system.delete, image)
    system.look()


def test_a_label_is_not_given_twice(system) -> None:
    """The same key and value to the same device."""
    system.label(site="lab")
    system.label(site="attic")
    system.refused(system.label, site="lab")
    system.look()


def test_a_device_that_is_no_fpga_gets_no_label(system) -> None:
    """The function of the card that has the network."""
    system.refused(system.label, "0000:b4:00.0", site="lab")
    system.look()


def test_an_upload_for_a_device_that_cannot_be_updated_is_refused(system) -> None:
    """By its PCI id."""
    system.refused(system.upload, "A/csk0", pci_device="0b31")
    system.look()


def test_an_upload_under_an_id_that_is_none_is_refused(system) -> None:
    """An image is known by a UUID."""
    system.refused(system.upload, "A/csk0", uuid="junk")
    system.look()


@pytest.mark.parametrize("system", ["containers"], indirect=True)
def test_a_reset_that_was_cut_short_is_made_at_the_next_boot(system) -> None:
    """The tools run in containers; the power goes while one resets the card."""
    system.disturb_host("power-cut-in-container")
    system.boot()

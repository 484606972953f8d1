"""The images of one update, card after card: their order, and what follows a step that failed.

What is expected: fact sheet of StarlingX, section 4.7.
"""

import pytest

pytestmark = [
    pytest.mark.hil_lab("device-images"),
    pytest.mark.parametrize("system", ["pair"], indirect=True),
]


@pytest.mark.hil_expects(outcome="FAILED")
def test_three_kinds_of_images_on_two_cards(system):
    """Both root keys, then both key revocations, then both user images; never two cards at once.

    A card takes a revocation only once its root key is active, after a reset: until then it has failed, and
    nothing follows it on its card. The next update begins with it.
    """
    for image in ("A/csk0-v2", "cancel-A-csk1", "root-key-A"):
        system.apply(system.upload(image))
    for _ in range(2):
        system.update(watch=True)
        system.boot()


@pytest.mark.hil_given(root="A")
def test_what_follows_a_root_key_that_failed_on_one_card(system):
    """The first card has another root key: nothing more is written to it, and the second one gets it all."""
    first, second = system.bench.cards
    system.label(first, card="first")
    system.label(second, card="second")
    system.apply(system.upload("root-key-B", promise="unchanged"), card="first")
    system.apply(system.upload("A/csk0", promise="unchanged"), card="first")
    system.apply(system.upload("root-key-A"), card="second")
    system.apply(system.upload("A/csk0-v2"), card="second")
    system.update(watch=True)
    system.boot()

"""Something goes wrong around a corrected StarlingX system: what it says is true, or diverges as documented.

What is expected: fact sheet of StarlingX, sections 3.2 (the agent's flow) and 4.7 (queue and audit).
"""

import pytest

pytestmark = pytest.mark.hil_lab("device-images")


@pytest.mark.hil_expects(outcome="FAILED", verdicts={"sysinv-image-state": "NOT_ATTEMPTED"})
def test_an_image_that_cannot_be_downloaded_has_failed(system):
    """The card never saw it: a failure that says nothing of the card (section 3.2)."""
    system.apply(system.upload("A/csk0"))
    system.disturb("downloads", "missing")
    system.update()
    system.boot()


@pytest.mark.hil_expects(outcome="FAILED")
def test_an_image_that_is_downloaded_by_half_is_refused_by_the_card(system):
    """Nobody compares what was downloaded with what was uploaded; the card does not take it."""
    system.apply(system.upload("A/csk0"))
    system.disturb("downloads", "short")
    system.update()
    system.boot()


@pytest.mark.hil_expects(outcome="FAILED", verdicts={"sysinv-image-state": "NOT_ATTEMPTED"})
def test_no_room_for_an_image_on_the_host(system):
    """The same, of a full disk."""
    system.apply(system.upload("A/csk0"))
    system.disturb_host("disk-full")
    system.update()
    system.disturb_host("disk-full", on=False)
    system.boot()


@pytest.mark.hil_expects(verdicts={"sysinv-image-state": "LOST"})
def test_the_word_that_an_image_is_done_is_lost(system):
    """The root key is on the card, and in progress for ever."""
    system.apply(system.upload("root-key-A"))
    system.disturb("completions", None)
    system.update()
    system.pass_time(200)


def test_an_api_that_is_away_for_a_moment_and_a_token_that_expires(system):
    """Questions are asked again; what was said stays true."""
    image = system.upload("A/csk0")
    system.disturb("refuse-requests", 2)
    system.look()
    system.apply(image)
    system.disturb("expire-tokens")
    system.update()
    system.boot()


def test_a_system_that_is_restarted_keeps_what_it_said(system):
    """Images, states and labels are on disk."""
    system.label(site="lab")
    system.apply(system.upload("A/csk0"), site="lab")
    system.disturb("restart")
    system.update()
    system.boot()

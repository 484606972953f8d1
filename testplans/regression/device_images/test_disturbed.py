"""Something goes wrong around a corrected StarlingX system: what it says is true, or diverges as documented.

What is expected: fact sheet of StarlingX, sections 3.2 (the agent's flow) and 4.7 (queue and audit).
"""

import pytest

from harness.errors import InfrastructureError

pytestmark = [pytest.mark.hil_lab("device-images"), pytest.mark.hil_requirement("IMAGE-FAILS")]


@pytest.mark.hil_expects(
    outcome="FAILED", verdicts={"sysinv-image-state": "NOT_ATTEMPTED", "file-server": "LOST"}
)
def test_an_image_that_cannot_be_downloaded_has_failed(system):
    """The card never saw it: a failure that says nothing of the card (section 3.2)."""
    system.apply(system.upload("A/csk0"))
    system.disturb("downloads", "missing")
    system.update()
    system.boot()


@pytest.mark.hil_expects(outcome="FAILED", verdicts={"file-server": "MISREPORT"})
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


@pytest.mark.hil_expects(verdicts={"sysinv-image-state": "FALSE_FAILURE"})
def test_the_word_that_an_image_is_done_comes_after_the_audit(system):
    """Failed by the audit after 300 s, completed by the late word: each is held to the card (section 4.7)."""
    system.apply(system.upload("root-key-A"))
    system.disturb("completions", 700)
    system.update()
    system.pass_time(650)
    system.pass_time(100)


@pytest.mark.hil_expects(verdicts={"sysinv-image-state": "FALSE_FAILURE"})
def test_an_agent_that_is_killed_while_the_card_programs(system):
    """The tool goes on without it, and nobody tells what became of it: the audit takes it as failed."""
    system.apply(system.upload("root-key-A"))
    system.disturb("agents", False, at="programming")
    system.at("programming", system.look)
    system.update()
    system.disturb("agents", True)
    system.pass_time(650)


@pytest.mark.hil_expects(verdicts={"sysinv-image-state": "FALSE_FAILURE"})
def test_a_conductor_that_is_down_when_an_image_is_done(system):
    """The agent's word is lost with it; what it knew before it knows again (section 3.2)."""
    system.label(site="lab")
    system.apply(system.upload("root-key-A"), site="lab")
    system.disturb("conductor", False, at="programming")
    system.update()
    system.disturb("conductor", True)
    system.pass_time(650)


@pytest.mark.hil_expects(verdicts={"sysinv-image-state": "FALSE_FAILURE"})
def test_a_system_that_is_restarted_while_the_card_programs(system):
    """Images, labels and states are kept, and so is that the image is in progress."""
    system.label(site="lab")
    system.apply(system.upload("root-key-A"), site="lab")
    system.disturb("restart", at="programming")
    system.update()
    system.pass_time(650)


@pytest.mark.hil_expects(outcome="FAILED")
def test_a_host_that_is_rebooted_while_an_image_is_transferred(system):
    """The tool is gone with its host, before the card has the image; the audit takes it as failed."""
    system.apply(system.upload("root-key-A"))
    system.disturb("reboot", at="transferring")
    system.update()
    system.pass_time(650)


def test_a_card_whose_address_changes_at_its_reset(system):
    """Labels and states go with the card (the class of LP 1890296)."""
    system.label(site="lab")
    image = system.upload("A/csk0")
    system.apply(image, site="lab")
    system.disturb("move")
    system.update()
    system.boot()
    system.remove(image, site="lab")


def test_a_token_that_expires_while_an_image_is_written(system):
    """A new one is asked for, and what was asked is asked again."""
    system.apply(system.upload("root-key-A"))
    system.disturb("expire-tokens", at="programming")
    system.at("programming", system.look)
    system.update()


@pytest.mark.hil_expects(outcome="UNKNOWN")
def test_a_change_that_an_absent_api_did_not_answer_is_not_repeated(system):
    """Whether it took place is for the next look; here it did not."""
    image = system.upload("A/csk0")
    system.disturb("refuse-requests", 1)
    with pytest.raises(InfrastructureError, match="503"):
        system.apply(image)
    assert not system.driver.states()
    system.apply(image)


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

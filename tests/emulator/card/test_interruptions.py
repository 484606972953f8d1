"""What is in flash, and what runs, after an update was cut off in each of its phases (4.4, 3.1)."""

import pytest

from harness.emulator.card import CardState
from harness.errors import ConfigurationError

OLD, NEW = "A/csk1", "A/csk0"
OLD_ID, NEW_ID, FACTORY_ID = 0x23000410010312, 0x23000410010311, 0x23001410010310


@pytest.fixture
def running_old(bench, image):
    """A card with root A that runs the image OLD from its user page."""
    assert bench.flash(image(OLD)) == ""
    bench.reset()
    assert bench.card.bitstream_id == OLD_ID
    return bench


@pytest.mark.parametrize(
    ("phase", "status", "afterwards"),
    [
        ("preparing", "preparing", OLD_ID),
        ("transferring", "transferring", OLD_ID),
        ("programming", "programming", OLD_ID),
        ("authenticating", "programming", OLD_ID),
        ("copying", "programming", FACTORY_ID),
    ],
)
def test_power_cut(running_old, image, phase: str, status: str, afterwards: int) -> None:
    bench = running_old
    bench.card.hold(phase)
    bench.start(image(NEW))
    bench.reach(phase)
    assert bench.card.upload.status() == status
    bench.card.power_off()
    assert (bench.card.address, bench.card.functions(), bench.card.held()) == (None, [], None)
    bench.card.power_on()
    assert bench.card.bitstream_id == afterwards
    assert bench.card.running_page == ("factory" if afterwards == FACTORY_ID else "user")
    assert (bench.card.upload.status(), bench.card.upload.error()) == ("idle", "")
    assert bench.card.flash_count == 2
    assert bench.flash(image(NEW)) == ""  # it recovers by another update
    bench.reset()
    assert bench.card.bitstream_id == NEW_ID


def test_power_cut_halfway_through_copying_leaves_half_a_page(running_old, image) -> None:
    bench = running_old
    bench.start(image(NEW))
    while bench.card.doorbell >> 4 & 0xF != 5:  # COPYING
        bench.clock.sleep(0.01)
    bench.clock.sleep(0.19)  # half of 16384 bytes at 43000 bytes a second
    bench.card.power_off()
    page = bench.card.state.user_page
    assert page == image(NEW)[0x400 : 0x400 + len(page)]
    assert 0.4 < len(page) / 16384 < 0.6


@pytest.mark.parametrize("name", ["root-key-A", "cancel-A-csk0"])
def test_power_cut_before_a_key_is_programmed_leaves_none(make_bench, image, root_hash, name: str) -> None:
    state = CardState() if name == "root-key-A" else CardState(sr_root=root_hash("A"))
    bench = make_bench(state)
    bench.card.hold("keys")
    bench.start(image(name))
    bench.reach("keys")
    assert bench.card.doorbell >> 4 & 0xF == (7 if name == "root-key-A" else 6)
    bench.power_cycle()
    assert bench.card.root_entry_hash("SR") == state.sr_root
    assert bench.card.cancelled("SR") == frozenset()


def test_a_refused_image_never_reaches_copying(bench, image) -> None:
    bench.card.hold("copying")
    assert bench.flash(image("unsigned")) == "programming:hw-error"
    assert bench.card.held() is None
    bench.card.release()


@pytest.mark.parametrize("phase", ["programming", "copying"])
def test_host_reboot_while_programming_lets_the_card_finish(running_old, image, phase: str) -> None:
    bench = running_old
    bench.card.hold(phase)
    bench.start(image(NEW))
    bench.reach(phase)
    bench.card.host_restarted()
    assert (bench.card.upload.status(), bench.card.upload.error()) == ("idle", "")
    bench.card.release()
    assert bench.flash(image(NEW)) == "preparing:device-busy"
    bench.clock.sleep(10)
    assert bench.card.bitstream_id == OLD_ID
    bench.reset()
    assert bench.card.bitstream_id == NEW_ID
    assert bench.card.flash_count == 2


@pytest.mark.parametrize("phase", ["preparing", "transferring"])
def test_host_reboot_before_that_leaves_the_card_waiting_until_it_gives_up(
    running_old, image, phase: str
) -> None:
    bench = running_old
    bench.card.hold(phase)
    bench.start(image(NEW))
    bench.reach(phase)
    bench.card.host_restarted()
    bench.card.release()
    assert bench.flash(image(NEW)) == "preparing:device-busy"
    bench.clock.sleep(20 + bench.card.profile.host_timeout_seconds)
    assert bench.card.doorbell == 0x00010000  # idle, status 01: host timeout
    assert bench.card.bitstream_id == OLD_ID
    assert bench.flash(image(NEW)) == ""


def test_a_reset_is_refused_during_an_update(bench, image) -> None:
    bench.start(image(NEW))
    bench.clock.sleep(1)
    with pytest.raises(OSError, match="busy"):
        bench.card.image_load("bmc_user")
    bench.wait_idle()
    assert bench.card.upload.error() == ""


def test_an_update_whose_program_died_goes_on(running_old, image) -> None:
    """SIGTERM ends the tool, not the kernel's worker: nothing of it is told to the card."""
    bench = running_old
    bench.start(image(NEW))
    bench.clock.sleep(1000)
    assert bench.card.upload.error() == ""
    assert bench.card.state.user_page == image(NEW)[0x400:]


def test_a_hold_set_in_the_phase_takes_effect_at_once(bench, image) -> None:
    bench.start(image(NEW))
    while bench.card.upload.status() != "preparing":
        bench.clock.sleep(0.1)
    bench.card.hold("preparing")
    assert bench.card.held() == "preparing"
    bench.card.release()
    assert bench.card.held() is None
    bench.wait_idle()
    assert bench.card.upload.error() == ""


def test_a_hold_of_no_phase_is_refused(bench) -> None:
    with pytest.raises(ConfigurationError, match="no phase 'erasing'"):
        bench.card.hold("erasing")

"""Resets: what was flashed takes effect, the card is found again, wear and busy cards are told apart."""

import pytest

from harness.scenarios.promises import lands, unchanged

pytestmark = pytest.mark.hil_requirement("RESET-ACTIVATES")

GUIDE = "Intel FPGA PAC N3000 Security User Guide (683519)"
RSU = "OFS/opae-sdk rsu.py: rescan of the bus; starlingx/config 275cc2314: b3:00.0 came back as b2:00.0"
WEAR = "Open FPGA Stack user guide: over 1000 updates, 30 s after boot and between updates"
KERNEL = "Documentation/ABI/testing/sysfs-class-firmware: error"


@pytest.mark.hil_given(root="none")
def test_reset_activates(card, flash, images) -> None:
    """Before the reset the card runs the old image, after it the new one."""
    before = card.truth().bitstream_id
    flash("A/csk0", lands(GUIDE), activate=False)
    assert card.truth().bitstream_id == before
    flash.reset()
    assert card.truth().bitstream_id == images["A/csk0"].facts.bitstream_id


@pytest.mark.hil_given(root="none")
@pytest.mark.hil_requires("bench")
@pytest.mark.hil_expects(verdicts={"inventory": "STALE"})
def test_address_moves(card, flash, faults) -> None:
    """A card that comes back at another address is the same card; who kept the address is out of date."""
    faults.arm("start", "move")
    flash("A/csk0", lands(RSU))


@pytest.mark.hil_given(root="none")
@pytest.mark.hil_requires("bench")
@pytest.mark.hil_expects(outcome="FAILED", verdicts={"rsu": "FALSE_SUCCESS"})
def test_card_stays_away(card, faults) -> None:
    """rsu says complete although the card never comes back."""
    faults.arm("start", "stays-away")
    card.reset()


@pytest.mark.hil_given(root="none", flash_count=1500)
def test_wear_out(card, flash) -> None:
    """A card with many updates behind it takes none for a while after its BMC has started."""
    card.reset()
    flash("A/csk0", unchanged(source=WEAR))


@pytest.mark.hil_given(root="none")
@pytest.mark.hil_requires("bench")
def test_busy(flash, faults) -> None:
    """A card whose doorbell is busy refuses the update before it starts."""
    faults.arm("start", "busy")
    flash("A/csk0", unchanged(source=KERNEL), activate=False)
    faults.undo()
    flash.reset()

"""What fpgainfo says about a card, against what the card holds."""

import pytest

from harness.scenarios.promises import lands

pytestmark = pytest.mark.hil_requirement("REPORT-CARD")

GUIDE = "Intel FPGA PAC N3000 Security User Guide (683519)"


@pytest.mark.hil_given(root="A", cancelled=[0])
def test_fpgainfo_tells_the_truth(card, flash) -> None:
    """Every field that fpgainfo prints is what the driver exposes."""
    flash("A/csk1", lands(GUIDE))
    card.report()


@pytest.mark.hil_given(root="none")
@pytest.mark.hil_requires("bench")
@pytest.mark.hil_expects(verdicts={"fpgainfo": "UNKNOWN_AS_VALUE"})
def test_all_ones_is_no_value(card, faults) -> None:
    """A card that fell off the bus reads all ones; printing them as an id is a misreport."""
    faults.arm("start", "all-ones")
    card.report()


@pytest.mark.hil_given(root="none")
@pytest.mark.hil_requires("bench")
@pytest.mark.hil_expects(verdicts={"fpgainfo": "UNVERIFIABLE"})
def test_no_security_group(card, faults) -> None:
    """Without the security attributes nothing can be said about root keys, and nothing is claimed."""
    faults.arm("start", "no-security-group")
    card.report()

"""Updates that are interrupted in each phase: what the tool says, and what the card holds afterwards."""

import pytest

from harness.scenarios.driver_needs import require_update_attributes
from harness.scenarios.promises import factory, lands, unchanged

pytestmark = pytest.mark.hil_requirement("FLASH-INTERRUPTED")

KERNEL = "Documentation/ABI/testing/sysfs-class-firmware; drivers/fpga/intel-m10-bmc-sec-update.c"
TOOL = "OFS/opae-sdk fpgasupdate: Ctrl-C writes cancel, SIGTERM only ends the tool"
GUIDE = "Intel FPGA PAC N3000 Security User Guide (683519)"
#: Only a bench tells this phase of the card from the next one, and holds it.
AUTHENTICATING = pytest.param("authenticating", marks=pytest.mark.hil_requires("bench"))
BMC = f"{GUIDE}: the staging area is inert until it is copied"


@pytest.mark.hil_given(root="A")
@pytest.mark.parametrize("point", ["preparing", "transferring"])
def test_ctrl_c_before_programming(point: str, flash, faults) -> None:
    """Ctrl-C before the card programs makes the tool cancel the update; nothing changes."""
    faults.arm(point, "sigint")
    flash("A/csk0", unchanged(source=TOOL))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "FALSE_FAILURE"})
def test_ctrl_c_while_programming(card, flash, faults) -> None:
    """Once the card programs, a cancel comes too late: the tool ends with an error, the image lands."""
    require_update_attributes(card)
    faults.arm("programming", "sigint")
    flash("A/csk0", lands(KERNEL))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "FALSE_FAILURE"})
@pytest.mark.parametrize("point", ["preparing", "transferring", "programming"])
def test_sigterm_ends_only_the_tool(point: str, card, flash, faults) -> None:
    """On SIGTERM the tool goes without a cancel; the kernel has the image already, so it lands."""
    require_update_attributes(card)
    faults.arm(point, "sigterm")
    flash("A/csk0", lands(TOOL))


@pytest.mark.hil_given(root="A")
def test_cancel_while_transferring(card, flash, faults) -> None:
    """The driver's cancel takes effect while the image is transferred."""
    require_update_attributes(card)
    faults.arm("transferring", "cancel")
    flash("A/csk0", unchanged(source=KERNEL))


@pytest.mark.hil_given(root="A")
def test_cancel_while_programming(card, flash, faults) -> None:
    """A cancel while the card programs is accepted and has no effect."""
    require_update_attributes(card)
    faults.arm("programming", "cancel")
    flash("A/csk0", lands(KERNEL))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_requires("power")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "LOST"})
@pytest.mark.parametrize("point", ["preparing", "transferring", AUTHENTICATING])
def test_power_cut_before_copying(point: str, flash, faults) -> None:
    """A power cut before the card copies the staging area leaves the old image."""
    flash("A/csk0-v2", lands(GUIDE))
    faults.arm(point, "power-cut")
    flash("A/csk0", unchanged(source=BMC))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_requires("power", "bench")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "LOST"})
def test_power_cut_while_copying(flash, faults) -> None:
    """A power cut while the card copies leaves half an image: the card comes up from its factory page."""
    flash("A/csk0-v2", lands(GUIDE))
    faults.arm("copying", "power-cut")
    flash("A/csk0", factory(source=BMC))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_requires("power", "bench")
@pytest.mark.hil_expects(outcome="FAILED", verdicts={"fpgasupdate": "LOST"})
def test_reboot_while_transferring(flash, faults) -> None:
    """A host that reboots while it transfers the image never completes the update.

    What fails is the reset that follows: the card waits for the rest of the image, and the driver refuses it
    with EBUSY (fact sheet of the N3000, section 4.5).
    """
    flash("A/csk0-v2", lands(GUIDE))
    faults.arm("transferring", "reboot")
    flash("A/csk0", unchanged(source=BMC))

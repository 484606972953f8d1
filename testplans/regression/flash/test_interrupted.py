"""Updates that are interrupted in each phase: what the tool says, and what the card holds afterwards."""

import pytest

from harness.scenarios.promises import factory, lands, unchanged

KERNEL = "Documentation/ABI/testing/sysfs-class-firmware; drivers/fpga/intel-m10-bmc-sec-update.c"
BMC = "Intel FPGA PAC N3000 Security User Guide (683519): the staging area is inert until it is copied"


@pytest.mark.hil_given(root="A")
@pytest.mark.parametrize("point", ["preparing", "transferring"])
@pytest.mark.parametrize("signal", ["sigterm", "sigint"])
def test_signal_before_programming(point: str, signal: str, flash, faults) -> None:
    """A signal before the card programs cancels the update; the tool says so and nothing changes."""
    faults.arm(point, signal)
    flash("A/csk0", unchanged(source=KERNEL))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "FALSE_FAILURE"})
@pytest.mark.parametrize("signal", ["sigterm", "sigint"])
def test_signal_while_programming(signal: str, flash, faults) -> None:
    """Once the card programs, a signal ends only the tool: it says interrupted, the image lands."""
    faults.arm("programming", signal)
    flash("A/csk0", lands(KERNEL))


@pytest.mark.hil_given(root="A")
def test_cancel_while_transferring(flash, faults) -> None:
    """The driver's cancel takes effect while the image is transferred."""
    faults.arm("transferring", "cancel")
    flash("A/csk0", unchanged(source=KERNEL))


@pytest.mark.hil_given(root="A")
def test_cancel_while_programming(flash, faults) -> None:
    """A cancel while the card programs is accepted and has no effect."""
    faults.arm("programming", "cancel")
    flash("A/csk0", lands(KERNEL))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_requires("power")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "LOST"})
@pytest.mark.parametrize("point", ["preparing", "transferring", "authenticating"])
def test_power_cut_before_copying(point: str, flash, faults) -> None:
    """A power cut before the card copies the staging area leaves the old image."""
    faults.arm(point, "power-cut")
    flash("A/csk0", unchanged(source=BMC))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_requires("power")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "LOST"})
def test_power_cut_while_copying(flash, faults) -> None:
    """A power cut while the card copies leaves half an image: the card comes up from its factory page."""
    faults.arm("copying", "power-cut")
    flash("A/csk0", factory(source=BMC))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_requires("power")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "LOST"})
def test_reboot_while_transferring(flash, faults) -> None:
    """A host that reboots while it transfers the image never completes the update."""
    faults.arm("transferring", "reboot")
    flash("A/csk0", unchanged(source=BMC))

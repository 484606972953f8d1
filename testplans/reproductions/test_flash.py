"""Field failures of the flash path, reproduced: each states the divergence that it shows."""

import pytest

from harness.scenarios.driver_needs import require_update_attributes
from harness.scenarios.promises import lands, unchanged

GUIDE = "Intel FPGA PAC N3000 Security User Guide (683519): policy; DPDK drivers/raw/ifpga: codes"
KERNEL = "Documentation/ABI/testing/sysfs-class-firmware"


@pytest.mark.hil_given(root="A")
def test_unsigned_image_on_a_keyed_card(flash) -> None:
    """The first field report's subcloud3: an unsigned image is refused, and rightly so."""
    flash("unsigned", unchanged("0x11", source=GUIDE))


@pytest.mark.hil_given(root="A")
def test_second_root_key(flash) -> None:
    """A root entry hash is programmed once; a second one is refused."""
    flash("root-key-B", unchanged("0x1A", source=GUIDE))


@pytest.mark.hil_given(root="A", cancelled=[0])
def test_cancelled_csk(flash) -> None:
    """An image signed with a cancelled CSK is refused, another CSK under the same root is not."""
    flash("A/csk0", unchanged("0x15", source=GUIDE))
    flash("A/csk1", lands(GUIDE))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_requires("bench")
@pytest.mark.hil_expects(outcome="FAILED", verdicts={"fpgasupdate": "FALSE_SUCCESS"})
def test_ok_and_nothing_flashed(flash, faults) -> None:
    """fpgasupdate takes an idle status for success: where the driver never starts, it says OK."""
    faults.arm("start", "ignore-upload")
    flash("A/csk0", lands(GUIDE))


@pytest.mark.hil_given(root="A")
@pytest.mark.hil_expects(verdicts={"fpgasupdate": "FALSE_FAILURE"})
def test_sigterm_says_failed_and_the_flash_is_new(card, flash, faults) -> None:
    """A service that is stopped while the card programs reports a failure; the image lands all the same."""
    require_update_attributes(card)
    faults.arm("programming", "sigterm")
    flash("A/csk0", lands(KERNEL))

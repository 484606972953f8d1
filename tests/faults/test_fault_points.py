"""Points of an update: the kernel's phases, and those that only the card tells apart."""

import pytest

from harness.errors import ConfigurationError
from harness.faults.points import CARD_PHASES, POINTS, UPDATE_POINTS, announced_as, check_point

#: Documentation/ABI/testing/sysfs-class-firmware, `status`, without idle and receiving.
KERNEL_PHASES = ["preparing", "transferring", "programming"]


def test_points_are_the_kernels_phases_in_their_order_and_what_the_card_adds() -> None:
    assert list(UPDATE_POINTS) == ["start", *KERNEL_PHASES]
    assert list(POINTS) == ["start", *KERNEL_PHASES, "authenticating", "copying"]
    assert {announced_as(point) for point in POINTS} == {"start", *KERNEL_PHASES}
    assert {announced_as(point) for point in CARD_PHASES} == {"programming"}


@pytest.mark.parametrize("point", POINTS)
def test_known_point_is_itself(point: str) -> None:
    assert check_point(point) == point


@pytest.mark.parametrize(
    ("point", "hint"),
    [
        ("programing", "Did you mean 'programming'?"),
        ("", "Known: start, preparing, transferring, programming, authenticating, copying."),
        ("idle", "Known: start, preparing, transferring, programming, authenticating, copying."),
    ],
)
def test_unknown_point_is_told_with_what_is_known(point: str, hint: str) -> None:
    with pytest.raises(ConfigurationError, match="There is no fault point") as caught:
        check_point(point)
    assert caught.value.hint == hint

"""The points of an update at which a fault can be bound: protocol states, never instants."""

from __future__ import annotations

import difflib

from harness.errors import ConfigurationError

#: A phase of the kernel's firmware-upload interface (Documentation/ABI/testing/sysfs-class-firmware),
#: or ``start``: before the tool is run. The flashing tool announces the phases in its output.
UPDATE_POINTS = ("start", "preparing", "transferring", "programming")

#: Phases that only the card itself tells apart; a lab with a bench can hold them, and the tool
#: shows them all as ``programming``.
CARD_PHASES = {"authenticating": "programming", "copying": "programming"}


#: In the order in which an update comes to them.
POINTS = (*UPDATE_POINTS, *CARD_PHASES)


def announced_as(point: str) -> str:
    """Return the phase that the flashing tool announces when an update comes to ``point``."""
    return CARD_PHASES.get(point, point)


def check_point(point: str) -> str:
    """Return ``point``. :raises ConfigurationError: there is no such fault point."""
    if point not in POINTS:
        near = difflib.get_close_matches(point, POINTS, 1)
        raise ConfigurationError(
            f"There is no fault point {point!r} in an update.",
            hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(POINTS)}.",
        )
    return point

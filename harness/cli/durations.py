"""Times as people write them on a command line: 90s, 30m, 2h, 1d."""

from __future__ import annotations

import re
from typing import Final

from harness.errors import ConfigurationError

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_of(text: str) -> float:
    """Return the seconds of ``2h``. :raises ConfigurationError: it is no time."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if match is None or float(match[1]) <= 0:
        raise ConfigurationError(f"{text!r} is no time.", hint="Such as 90s, 30m, 2h, 1d.")
    return float(match[1]) * UNITS[match[2]]

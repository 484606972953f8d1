"""Times as people write them on a command line: 90s, 30m, 2h, 1d."""

from __future__ import annotations

import re
from typing import Final

from harness.errors import ConfigurationError

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
#: Nobody means more; what is not finite is no number in JSON, nor to a clock.
_LONGEST_DAYS: Final = 366


def seconds_of(text: str) -> float:
    """Return the seconds of ``2h``. :raises ConfigurationError: it is no time, or more than a year."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhd])", text)
    if match is None or float(match[1]) <= 0:
        raise ConfigurationError(f"{text[:40]!r} is no time.", hint="Such as 90s, 30m, 2h, 1d.")
    seconds = float(match[1]) * UNITS[match[2]]
    if seconds > _LONGEST_DAYS * UNITS["d"]:
        raise ConfigurationError(f"{text[:40]!r} is too long a time.", hint=f"At most {_LONGEST_DAYS}d.")
    return seconds

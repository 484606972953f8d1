"""The times that lines of logs state, in all their forms; what a form leaves open is assumed, and said so."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Final

#: Taken where no year is stated anywhere: one with a 29th of February.
NO_YEAR: Final = 1972
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FULL: Final = re.compile(
    r"(?<![\d-])(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)[T ]"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_OLD: Final = re.compile(
    r"(?:<\d{1,3}>)?(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<part>\d{1,9}))?(?= )"
)
#: A stamp of the line itself stands near its beginning; further on, a time may be about anything.
_NEAR: Final = 40


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time that a line states. ``seconds``: since the epoch, by the source's clock.

    ``zoned``: it states its zone; without, UTC is assumed, as StarlingX logs. ``dated``: it states its year.
    """

    seconds: float
    zoned: bool
    dated: bool


def stamp_of(text: str, year: int = NO_YEAR) -> Stamp | None:
    """Return the time that a line states of itself; None where it states none that there is.

    :param year: assumed where a line states none, as syslog's old form does not.
    """
    near = text[: _NEAR + 40]
    if (found := _FULL.search(near)) is not None and found.start() <= _NEAR:
        seconds = _seconds(found, int(found["year"]), int(found["month"]), found["zone"])
        return None if seconds is None else Stamp(seconds, found["zone"] is not None, True)
    if (found := _OLD.match(near)) is not None and found["month"] in _MONTHS:
        seconds = _seconds(found, year, _MONTHS.index(found["month"]) + 1, None)
        return None if seconds is None else Stamp(seconds, False, False)
    return None


def told_moment(seconds: float | None) -> str:
    """Return a time as people read it, in UTC; empty where there is none."""
    if seconds is None:
        return ""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"


def _seconds(found: re.Match[str], year: int, month: int, zone: str | None) -> float | None:
    try:
        whole = datetime.datetime(
            year, month, int(found["day"]), int(found["hour"]), int(found["minute"]),
            min(int(found["second"]), 59),  # a leap second is none of its own here
            tzinfo=datetime.UTC,
        ).timestamp()  # fmt: skip
    except ValueError:
        return None
    part = float(f"0.{found['part']}") if found["part"] else 0.0
    return whole + part - _offset(zone)


def _offset(zone: str | None) -> int:
    """Return how many seconds a zone is ahead of UTC."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)

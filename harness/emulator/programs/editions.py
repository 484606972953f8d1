"""The editions of the OPAE tools: what each prints in another way (which one a host has is its tool era)."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edition:
    """One age of the tools.

    ``hundredths``: times as ``15:01:31.41`` and ``0:10:29.69`` instead of ``15:01:31,413`` and
    ``0:10:29.698702``; ``time_label``: before the time in a progress bar. ``modern``: ``fpgainfo`` begins
    with the product line, has rows for interface and vendor, a colon after ``version``, ids in capitals, and
    numbers its sensors without gaps; else it has ``Numa Node``. ``label_width``: of its rows.
    """

    version: str
    hundredths: bool
    time_label: str
    modern: bool
    label_width: int

    def stamp(self, now: float) -> str:
        """Return a moment as its log has it."""
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now))
        return f"{text}.{int(now % 1 * 100):02d}" if self.hundredths else f"{text},{int(now % 1 * 1000):03d}"

    def duration(self, seconds: float) -> str:
        """Return a length of time as ``h:mm:ss`` and its fraction; Python leaves a fraction of 0 away."""
        unit, digits = (100, 2) if self.hundredths else (1_000_000, 6)
        minutes, rest = divmod(int(seconds * unit + 0.5), 60 * unit)
        whole, fraction = divmod(rest, unit)
        text = f"{minutes // 60}:{minutes % 60:02d}:{whole:02d}"
        return text if not fraction and not self.hundredths else f"{text}.{fraction:0{digits}d}"


#: Of the host packages (opae-sdk 2.14).
LATEST = Edition("2.14.0", hundredths=True, time_label="Elapsed Time: ", modern=True, label_width=32)
#: Of the vendor's packages for this card (OPAE 1.x), which are in the container images.
VENDOR = Edition("1.4.1", hundredths=False, time_label="Time:", modern=False, label_width=29)

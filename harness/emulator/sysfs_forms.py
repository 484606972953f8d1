"""The forms that the kernel gives to a card's values, and what all driver generations show alike."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from harness.emulator.card import Card, Section

#: Name of a section in attributes -> section.
SECTIONS: dict[str, Section] = {"sr": "SR", "bmc": "BMC", "pr": "PR"}
_NOT_PROGRAMMED = "hash not programmed"


@dataclass(frozen=True, slots=True)
class Sensor:
    """One sensor. ``number``: of the vendor's tool 1.x, with gaps; ``old_label``: its name there."""

    number: int
    label: str
    reading: int
    old_label: str = ""


#: hwmon name -> sensor, in the units of the hwmon ABI (mV, mA, uW, thousandths of a degree).
SENSORS: dict[str, Sensor] = {
    "power1": Sensor(1, "Board Power", 69_420_000),
    "curr1": Sensor(2, "12V Backplane Current", 3_180),
    "in0": Sensor(3, "12V Backplane Voltage", 12_060),
    "in1": Sensor(4, "1.2V Voltage", 1_190),
    "in2": Sensor(6, "1.8V Voltage", 1_800),
    "temp1": Sensor(13, "Board Temperature", 41_500),
    "temp2": Sensor(12, "FPGA Die Temperature", 58_250, "FPGA Core Temperature"),
}


def bitmap_list(numbers: frozenset[int]) -> str:
    """Return ``numbers`` as the kernel prints a bitmap: ``1,2-6,9``; empty for none."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def line(text: str) -> str:
    """Return ``text`` as a line; nothing at all where it is empty."""
    return f"{text}\n" if text else ""


def root_hash(card: Card, section: Section, prefix: str = "") -> str:
    """Return the text of a root entry hash; drivers before generation D put ``0x`` before it (4.2)."""
    root = card.root_entry_hash(section)
    return f"{prefix}{root}\n" if root else f"{_NOT_PROGRAMMED}\n"


def cancelled_csks(card: Card, section: Section) -> str:
    """Return the text of the cancelled CSK ids."""
    return f"{bitmap_list(card.cancelled(section))}\n"


def unreadable() -> str:
    """Show nothing: reading ends with EIO."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))

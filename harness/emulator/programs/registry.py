"""The programs of emulated hosts and of tool images, by the name that they are installed under."""

from __future__ import annotations

from harness.emulator.programs import (
    files,
    find,
    flock,
    fpgainfo,
    fpgasupdate,
    grep,
    lspci,
    rsu,
    system,
    text,
)
from harness.emulator.programs.base import Main
from harness.emulator.programs.editions import Edition

#: What every host has.
PROGRAMS: dict[str, Main] = {
    **text.PROGRAMS,
    **grep.PROGRAMS,
    **files.PROGRAMS,
    **find.PROGRAMS,
    **system.PROGRAMS,
    **flock.PROGRAMS,
    **lspci.PROGRAMS,
}


def opae_tools(edition: Edition) -> dict[str, Main]:
    """Return the vendor's tools in one edition."""
    return {**fpgainfo.programs(edition), **fpgasupdate.programs(edition), **rsu.programs(edition)}

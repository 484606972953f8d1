"""Every program of an emulated host, by the name that it is installed under."""

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

PROGRAMS: dict[str, Main] = {
    **text.PROGRAMS,
    **grep.PROGRAMS,
    **files.PROGRAMS,
    **find.PROGRAMS,
    **system.PROGRAMS,
    **flock.PROGRAMS,
    **lspci.PROGRAMS,
    **fpgainfo.PROGRAMS,
    **fpgasupdate.PROGRAMS,
    **rsu.PROGRAMS,
}

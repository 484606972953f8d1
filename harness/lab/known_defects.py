"""What `hil defects` tells of the emulated StarlingX systems, without a lab."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.errors import ConfigurationError


def known_releases() -> list[str]:
    """Return the releases that an emulated system can be."""
    from harness.emulator.starlingx.defects import RELEASES

    return list(RELEASES)


def known_defects(release: str | None = None) -> list[dict[str, Any]]:
    """Return every known defect, or those of one release, as JSON objects.

    :raises ConfigurationError: there is no such release; the hint has the known ones.
    """
    from harness.emulator.starlingx.defects import DEFECTS, Defects

    held = Defects(release) if release else None
    return [asdict(defect) for name, defect in DEFECTS.items() if held is None or held.on(name)]


def known_defect(name: str) -> dict[str, Any]:
    """Return one defect. :raises ConfigurationError: there is none; the hint has those close to it."""
    from difflib import get_close_matches

    found = {defect["name"]: defect for defect in known_defects()}
    if name not in found:
        near = ", ".join(get_close_matches(name, found)) or "see `hil defects list`"
        raise ConfigurationError(f"There is no known defect {name!r}.", hint=f"Did you mean: {near}?")
    return found[name]

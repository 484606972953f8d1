"""The catalogue of known defects that an emulated lab can have, of every kind, without a lab."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, get_args

from harness.errors import ConfigurationError
from harness.lab.defect_table import TABLE, Kind, KnownDefect

#: Defect of a cloud -> others without which it cannot show: the rows, labels or images that they leave.
_BESIDE: Final = {
    "sync-by-uuid": ("sync-from-rows-only",),
    "no-labels-in-sync": ("labels-lost-at-boot",),
    "finishing-forces-in-sync": ("two-images-on-floating-label",),
    "rerun-alternates-images": ("two-images-on-floating-label", "sync-from-rows-only"),
}
KINDS: Final[tuple[str, ...]] = get_args(Kind)


def known_releases() -> list[str]:
    """Return the releases that an emulated system can be."""
    from harness.emulator.starlingx.defects import RELEASES

    return list(RELEASES)


def known_defects(release: str | None = None, kind: str | None = None) -> list[dict[str, Any]]:
    """Return every known defect, or those of one release or kind, as JSON objects.

    :raises ConfigurationError: there is no such release or kind; the hint has the known ones.
    """
    from harness.emulator.starlingx.defects import Defects

    if kind is not None and kind not in KINDS:
        from harness.inventory.entries import unknown_name

        raise unknown_name("kind", kind, list(KINDS), "known defects")
    held = Defects(release) if release else None
    found = [each for each in catalogue() if kind is None or each.kind == kind]
    return [
        {key: value for key, value in asdict(each).items() if key != "switch"}
        for each in found
        if held is None or (each.kind in ("system", "cloud") and held.on(each.name))
    ]


def catalogue() -> list[KnownDefect]:
    """Return all known defects, those of systems first."""
    from harness.emulator.distributed_cloud.known import CLOUD_DEFECTS
    from harness.emulator.starlingx.defects import DEFECTS

    clouds = {each.name for each in CLOUD_DEFECTS}
    systems = [
        KnownDefect(
            name,
            "cloud" if name in clouds else "system",
            each.reference,
            each.claims,
            each.predicts,
            each.releases,
            beside=_BESIDE.get(name, ()),
        )
        for name, each in DEFECTS.items()
    ]
    return [*systems, *TABLE]


def known_defect(name: str) -> dict[str, Any]:
    """Return one defect. :raises ConfigurationError: there is none; the hint has those close to it."""
    from difflib import get_close_matches

    found = {defect["name"]: defect for defect in known_defects()}
    if name not in found:
        near = ", ".join(get_close_matches(name, found))
        hint = f"Did you mean: {near}?" if near else "See all of them: hil defects list"
        raise ConfigurationError(f"There is no known defect {name!r}.", hint=hint)
    return found[name]

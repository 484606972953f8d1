"""The releases that are emulated, and what is stated of a known defect of theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Releases that have a set of their own; `corrected` is what users would want.
RELEASES: Final = ("stx-2020-07", "stx-6", "stx-8", "head", "corrected")
#: Release -> tool era and driver generation of its hosts, where they are not said to be others.
HOSTS_OF: Final = {
    "stx-2020-07": ("docker", "A"),
    "stx-6": ("containerd", "A"),
    "stx-8": ("containerd", "A"),
    "head": ("host", "D"),
    "corrected": ("host", "D"),
}
FIRST: Final = ("stx-2020-07",)
OLD: Final = ("stx-2020-07", "stx-6", "stx-8")
EVER: Final = ("stx-2020-07", "stx-6", "stx-8", "head")
PYTHON3: Final = ("stx-6", "stx-8", "head")
LATER: Final = PYTHON3


@dataclass(frozen=True, slots=True)
class Defect:
    """One behaviour that is a bug, or that history fixed.

    ``reference``: bug number, commit, or section of the fact sheet. ``releases``: where it holds; empty where
    it came and went between them. ``claims``: what it makes the system say. ``predicts``: the outcome or
    verdict that detects it; anything else, INFRA and BLOCKED above all, does not count.
    """

    name: str
    reference: str
    releases: tuple[str, ...]
    claims: str
    predicts: str

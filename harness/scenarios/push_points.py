"""The points of a push at which a sweep disturbs it, and which of them a client's push passes at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.faults.proxy.exchanges import Exchange
from harness.faults.registry_points import LAST, FaultPoint

#: Where the measured tables disturb a push, without the points that are a race ("sent"; fact sheet of the
#: registry, section 3). Clients send blobs by PATCH and an empty PUT, or by one PUT: each passes its own.
_DEFAULT = (
    "before:ping",
    "before:blob-post#1",
    "after:blob-post#1",
    "mid@{half}:blob-patch#1",
    "mid@{half}:blob-put#1",
    "after:blob-patch#1",
    "before:blob-put#1",
    "after:blob-put#1",
    "before:blob-put#last",
    "before:manifest-put#1",
    "after:manifest-put#1",
    "cut:manifest-put#1",
)


def default_points(layer_size: int) -> tuple[FaultPoint, ...]:
    """Return the points of a sweep; ``mid`` is the middle of a layer of ``layer_size`` bytes."""
    return tuple(FaultPoint.parse(text.format(half=max(1, layer_size // 2))) for text in _DEFAULT)


def passed(point: FaultPoint, push: Sequence[Exchange]) -> FaultPoint | None:
    """Return ``point`` with its request counted, as a recorded push passes it; None where it does not.

    :param push: the requests of one undisturbed push, in order.
    """
    of_step = [each for each in push if each.step == point.step]
    nth = len(of_step) if point.nth == LAST else point.nth
    if not 1 <= nth <= len(of_step):
        return None
    if point.when == "mid" and of_step[nth - 1].received <= point.offset:
        return None
    return replace(point, nth=nth)

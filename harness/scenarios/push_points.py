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
    # In the middle of a body can be held what is large enough; smaller ones beside it do not count.
    least = point.offset + 1 if point.when == "mid" else 0
    count = sum(each.step == point.step and each.received >= least for each in push)
    nth = count if point.nth == LAST else point.nth
    return replace(point, nth=nth) if 1 <= nth <= count else None

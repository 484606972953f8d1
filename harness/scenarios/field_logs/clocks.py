"""Whether the clocks behind several files differ, by one thing that two of them tell of: a refused push."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.registry.log_claims import REFUSED
from harness.scenarios.field_logs.events import Event, Told

#: Seconds within which an engine tells of a refusal of its registry: it follows in milliseconds.
_AT_ONCE: Final = 5.0
_UNAUTHORIZED: Final = "unauthorized"


def clock_notes(events: Sequence[Event]) -> Iterator[str]:
    """Yield, for each file of an engine, by how much its clock seems to differ from a registry's.

    What is compared is the first refusal on both sides; that it is the same one is for people to see.
    """
    refused: dict[str, float] = {}
    heard: dict[str, float] = {}
    for event in events:
        if not isinstance(event, Told) or event.time is None:
            continue
        error = str(event.claim.statement.get("error", ""))
        if event.claim.reporter == "log:registry" and error == REFUSED:
            refused.setdefault(event.place.file, event.time)
        elif event.claim.reporter == "log:dockerd" and error.startswith(_UNAUTHORIZED):
            heard.setdefault(event.place.file, event.time)
    for engine, later in heard.items():
        for registry, earlier in refused.items():
            ahead = later - earlier
            if engine not in refused and abs(ahead) > _AT_ONCE:
                yield (
                    f"{engine}: its first refused push is told {ahead:+.0f} s from the first refusal in "
                    f"{registry}. If it is the same, the clocks differ: --skew {engine}={ahead:.0f}"
                )

"""Was a card reset after something was written to it?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from harness.judgement.grouping import field_of
from harness.judgement.records import Observation
from harness.judgement.system_story import SystemStory
from harness.judgement.values import Unknown, Value

#: What has a host write what is owed to its cards: by itself, or with the boot that follows (section 3.4).
_ORDERS: Final = ("host-update", "strategy-apply")


def is_reset_between(earlier: Observation | None, later: Observation) -> Value[bool]:
    """Return whether the host booted, which resets its cards, between two readings of one (section 3.3)."""
    was, is_now = field_of(earlier, "boot_id"), field_of(later, "boot_id")
    if isinstance(was, Unknown) or isinstance(is_now, Unknown):
        return Unknown("whether the host booted meanwhile was not read")
    return bool(was != is_now)


def readings_of(story: SystemStory, card: str) -> list[Observation]:
    """Return how a card was seen, look by look."""
    return [look.cards[card] for look in story.looks if card in look.cards]


def last_seen(story: SystemStory, card: str, seq: int) -> Observation | None:
    """Return how a card was last seen before the record ``seq``."""
    return next((seen for seen in reversed(readings_of(story, card)) if seen.seq < seq), None)


class Resets(NamedTuple):
    """The readings of a card by which its resets after a write show.

    ``before``: the last one before it was written. ``later``: those that followed it. ``why``: why a boot
    since ``before`` says nothing, since it may have come before the write.
    """

    before: Observation | None
    later: list[Observation]
    why: str = ""

    def by(self, seen: Observation) -> Value[bool]:
        """Return whether the card was reset after the write, by the reading ``seen``."""
        earlier = (each for each in self.later if each.seq < seen.seq)
        if any(is_reset_between(each, seen) is True for each in earlier):
            return True
        reset = is_reset_between(self.before, seen)
        return Unknown(self.why) if self.why and reset is True else reset


def resets_after(story: SystemStory, card: str, since: int) -> Resets:
    """Return what shows whether a card was reset after that was written which was told of since a record.

    A boot that came after the last look and before the order to write is none that brings up what it wrote,
    and the next look cannot tell it from one that does.
    """
    before = last_seen(story, card, since)
    later = [seen for seen in readings_of(story, card) if seen.seq > since]
    order = ordered_before(story, since)
    if before is not None and any(before.seq < boot < order for boot in story.boots):
        why = "the host was booted before the image was to be written, and nobody looked between both"
        return Resets(before, later, why)
    return Resets(before, later)


def ordered_before(story: SystemStory, seq: int) -> int:
    """Return the last record before another by which what is owed was to be written; 0 for none."""
    systems: Iterable[SystemStory] = (story,) if story.parent is None else (story, story.parent)
    return max(
        (
            change.seq
            for system in systems
            for change in system.changes
            if change.operation in _ORDERS and change.seq <= seq and change.seq not in system.declined
        ),
        default=0,
    )

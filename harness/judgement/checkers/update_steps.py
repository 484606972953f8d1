"""The steps of an update: their order on the cards of a host, and what it must not begin or leave behind."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations
from typing import Any, Final

from harness.judgement.grouping import field_of, word
from harness.judgement.records import Observation
from harness.judgement.system_story import Look, SystemStory
from harness.judgement.values import Unknown

#: Written in this order, over all cards of a host (fact sheet of StarlingX, section 4.7).
_ORDER: Final = {"root-key": 0, "key-cancellation": 1, "user-image": 2, "bmc-image": 2}
Breach = tuple[str, tuple[int, ...]]


def out_of_order(story: SystemStory, hostname: Any, since: int, until: int | None) -> Iterator[Breach]:
    """Yield what looks during an update show that is not in the order of the documents, one at a time.

    That a card is written, its own update interface says; with which image, the system.

    :param since: the update's intent. :param until: the next update's.
    """
    last: tuple[int, str] | None = None
    for look in story.looks:
        if not since < look.seq < (until or look.seq + 1):
            continue
        busy = written(look, hostname)
        seqs = (look.seq, *(seen.seq for seen in busy.values()))
        if len(busy) > 1:
            yield (
                f"{', '.join(sorted(busy))} are written at once, and a host writes one after the other",
                seqs,
            )
        for card in busy:
            for image in _images_in_progress(look, hostname, card):
                rank, name = _ORDER.get(word(story.facts(image), "effect"), -1), story.image_name(image)
                if rank < 0:
                    continue
                if last is not None and rank < last[0]:
                    yield f"{name} is written to {card} after {last[1]}, and goes before it", seqs
                last = rank, f"{name} to {card}"


def rivals_owed(story: SystemStory, before: Look, owed: Collection[tuple[str, str]]) -> Iterator[Breach]:
    """Yield each two images for the same part of one card that an update was to write there (section 4.2)."""
    for (card, one), (other_card, other) in combinations(sorted(owed), 2):
        part = _part(story, before, one)
        if card and card == other_card and part is not None and part == _part(story, before, other):
            names = f"{story.image_name(one)} and {story.image_name(other)}"
            yield f"{names} are both owed to {card}, which holds one of them", (before.seq,)


def retimers_due(
    story: SystemStory, hostname: Any, before: Look, after: Look, owed: Collection[tuple[str, str]]
) -> Iterator[Breach]:
    """Yield that the retimers are to be reset at the next boot, where no image with them was written.

    Section 3.2, step 7: the host has a file that says so.
    """
    was, due = (
        field_of(look.hosts.get(word({"": hostname}, "")), "retimer_flag") for look in (before, after)
    )
    done = {
        word(claim.statement, "image_uuid")
        for claim in after.states_of(hostname)
        if claim.statement.get("status") == "completed"
    }
    written = any(_with_retimers(before, image) for _, image in owed if image in done)
    if due is True and was is False and not written:
        yield (
            f"{hostname} resets the retimers at its next boot, and no image with them was written",
            (before.seq, after.seq),
        )


def written(look: Look, hostname: Any) -> dict[str, Observation]:
    """Return the cards of a host that are being written in a look, by what they themselves show."""
    return {card: seen for card, seen in look.cards.items() if _is_written(seen, hostname)}


def _is_written(seen: Observation, hostname: Any) -> bool:
    status = field_of(seen, "update_status")
    return seen.values.get("hostname") == hostname and not isinstance(status, Unknown) and status != "idle"


def _images_in_progress(look: Look, hostname: Any, card: str) -> list[str]:
    return [
        word(claim.statement, "image_uuid")
        for claim in look.states_of(hostname)
        if claim.statement.get("status") == "in-progress"
        and look.card_at(hostname, claim.statement.get("address")) == card
    ]


def _part(story: SystemStory, look: Look, image: str) -> tuple[str, bool] | None:
    """Return the part of a card that an image is for; a BMC image stays beside one with retimers."""
    effect = word(story.facts(image), "effect")
    return (effect, _with_retimers(look, image)) if effect in ("user-image", "bmc-image") else None


def _with_retimers(look: Look, image: str) -> bool:
    return any(
        claim.statement.get("uuid") == image and claim.statement.get("retimer_included") is True
        for claim in look.said["image"]
    )

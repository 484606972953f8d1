"""Does a card hold an image that a control plane speaks of, by what the card itself shows?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.judgement.grouping import fact, field_of, show, source_of, word
from harness.judgement.records import Observation
from harness.judgement.system_story import Look, SystemStory
from harness.judgement.values import Unknown, Value

#: Effects of images that are active only after a reset (fact sheet of StarlingX, section 3.4).
AFTER_RESET = frozenset({"user-image", "bmc-image"})


class Holding(NamedTuple):
    """Whether a card holds an image. ``truth`` and ``how_read``: for people."""

    holds: Value[bool]
    truth: str
    how_read: str
    records: tuple[int, ...]


def holding_of(image: Mapping[str, Any], seen: Observation) -> Holding:
    """Return whether the card, as it was ``seen``, shows that it holds ``image`` (facts of its bytes)."""
    effect = word(image, "effect")
    section = (word(image, "section") or "SR").lower()
    wanted: dict[str, Any]
    if effect == "user-image":
        wanted = {"bitstream_id": fact(image, "bitstream_id")}
    elif effect == "bmc-image":
        names = ("bmc_version", "bmcfw_version")
        wanted = {name: fact(image, name) for name in names if not isinstance(fact(image, name), Unknown)}
    elif effect == "root-key":
        wanted = {f"{section}_root": fact(image, "programs_root")}
    elif effect == "key-cancellation":
        wanted = {f"{section}_cancelled": fact(image, "cancel_id")}
    else:
        why = Unknown("what the image would change is not known: its bytes were not read, or are no image")
        return Holding(why, str(why), "nothing", (seen.seq,))
    found = {name: field_of(seen, name) for name in wanted}
    holds: Value[bool] = True
    for name, value in wanted.items():
        if isinstance(value, Unknown) or isinstance(found[name], Unknown):
            unread = value if isinstance(value, Unknown) else found[name]
            holds = Unknown(f"{name} is {unread}") if holds is True else holds
        elif value != found[name] and not (effect == "key-cancellation" and value in found[name]):
            holds = False
    truth = ", ".join(f"{name} is {show(name, value)}" for name, value in found.items())
    due = ", ".join(show(name, value) for name, value in wanted.items())
    where = ", ".join(source_of(seen, name) for name in wanted)
    return Holding(holds, f"{truth} (the image's: {due})", where, (seen.seq,))


def is_reset_between(earlier: Observation | None, later: Observation) -> Value[bool]:
    """Return whether the host booted, which resets its cards, between two readings of one (section 3.3)."""
    was, is_now = field_of(earlier, "boot_id"), field_of(later, "boot_id")
    if isinstance(was, Unknown) or isinstance(is_now, Unknown):
        return Unknown("whether the host booted meanwhile was not read")
    return bool(was != is_now)


def last_seen(story: SystemStory, card: str, seq: int) -> Observation | None:
    """Return how a card was last seen before the record ``seq``."""
    found = [look.cards[card] for look in story.looks if card in look.cards]
    earlier = [seen for seen in found if seen.seq < seq]
    return earlier[-1] if earlier else None


def looks_at(story: SystemStory, card: str, first: Look) -> list[Observation]:
    """Return how a card was seen in ``first`` and every look after it."""
    return [look.cards[card] for look in story.looks if look.seq >= first.seq and card in look.cards]


def active_holding(
    story: SystemStory, card: str, image: str, since: int, first: Look, until: int | None = None
) -> Holding:
    """Return whether a card came to hold an image that was written after the record ``since``.

    What shows only after a reset is looked for in every look from ``first`` on, up to the record ``until``.
    """
    facts = story.facts(image)
    before = last_seen(story, card, since)
    answer = Holding(
        Unknown("the card was not read after it"), "the card was not read after it", "nothing", ()
    )
    for seen in looks_at(story, card, first):
        if until is not None and seen.seq > until:
            break
        answer = holding_of(facts, seen)
        if isinstance(answer.holds, Unknown) or answer.holds or word(facts, "effect") not in AFTER_RESET:
            if not isinstance(answer.holds, Unknown):
                return answer
            continue
        was_reset = is_reset_between(before, seen)
        if was_reset is True:
            return answer
        why = (
            "the card was not reset, so the image is not active yet" if was_reset is False else str(was_reset)
        )
        answer = answer._replace(holds=Unknown(why), truth=f"{why}; {answer.truth}")
    return answer

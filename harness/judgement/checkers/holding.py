"""Does a card hold an image that a control plane speaks of, by what the card itself shows?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harness.judgement.checkers.resets import resets_after
from harness.judgement.grouping import digits, fact, field_of, show, source_of, word
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
    effect, wanted = word(image, "effect"), _shows(image)
    if not wanted:
        why = Unknown("what the image would change is not known: its bytes were not read, or are no image")
        return Holding(why, str(why), "nothing", (seen.seq,))
    found = {name: _spelt(name, field_of(seen, name)) for name in wanted}
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


def twins_of(story: SystemStory, image: str) -> list[str]:
    """Return the images that a card shows just as it shows this one, and whose bytes are others."""
    facts = story.facts(image)
    sha256, shows = word(facts, "sha256"), _shows(facts)
    if not sha256 or word(facts, "effect") not in AFTER_RESET or not shows:
        return []
    if any(isinstance(value, Unknown) for value in shows.values()):
        return []
    others = ((other, story.facts(other)) for other in story.known_images() if other != image)
    return [
        other
        for other, its in others
        if word(its, "effect") == word(facts, "effect")
        and word(its, "sha256") not in ("", sha256)
        and _shows(its) == shows
    ]


def written_there(story: SystemStory, card: str, images: Iterable[str], seen: Observation) -> list[str]:
    """Return those of some images that the system said to be written to a card, up to the look in which it
    was ``seen``, since it last showed that it holds none of them."""
    until = next((look.seq for look in story.looks if look.cards.get(card) is seen), seen.seq)
    wanted, words = list(images), story.words()
    since = max(
        (
            look.seq
            for look in story.looks
            if look.seq < until
            and card in look.cards
            and all(holding_of(story.facts(image), look.cards[card]).holds is False for image in wanted)
        ),
        default=0,
    )
    return [
        image
        for image in wanted
        if any(
            each.status in ("in-progress", "completed") and since < each.look.seq <= until
            for each in words.get((card, image), ())
        )
    ]


def _spelt(name: str, value: Any) -> Any:
    """Return a field as facts of images spell it."""
    return digits(value) if name.endswith("_root") and isinstance(value, str) else value


def _shows(image: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields by which a card shows that it holds an image; empty where that is not known."""
    effect = word(image, "effect")
    section = (word(image, "section") or "SR").lower()
    if effect == "user-image":
        return {"bitstream_id": fact(image, "bitstream_id")}
    if effect == "bmc-image":
        names = ("bmc_version", "bmcfw_version")
        return {name: fact(image, name) for name in names if not isinstance(fact(image, name), Unknown)}
    if effect == "root-key":
        return {f"{section}_root": fact(image, "programs_root")}
    if effect == "key-cancellation":
        return {f"{section}_cancelled": fact(image, "cancel_id")}
    return {}


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
    resets = resets_after(story, card, since)
    answer = Holding(
        Unknown("the card was not read after it"), "the card was not read after it", "nothing", ()
    )
    for seen in looks_at(story, card, first):
        if until is not None and seen.seq > until:
            break
        answer = holding_of(facts, seen)
        if answer.holds is True and written_there(story, card, twins_of(story, image), seen):
            why = "an image of other bytes, which shows as this one does, was written there before"
            return answer._replace(holds=Unknown(why), truth=f"{why}; {answer.truth}")
        if isinstance(answer.holds, Unknown) or answer.holds or word(facts, "effect") not in AFTER_RESET:
            if not isinstance(answer.holds, Unknown):
                return answer
            continue
        was_reset = resets.by(seen)
        if was_reset is True:
            return answer
        why = (
            "the card was not reset, so the image is not active yet" if was_reset is False else str(was_reset)
        )
        answer = answer._replace(holds=Unknown(why), truth=f"{why}; {answer.truth}")
    return answer

"""Do the cards of a subcloud hold every image that its system controller lists as applied for them?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from harness.judgement.checkers.holding import (
    AFTER_RESET,
    Holding,
    holding_of,
    twins_of,
    written_there,
)
from harness.judgement.checkers.resets import resets_after
from harness.judgement.cloud_story import CloudCard, CloudLook, CloudStory
from harness.judgement.grouping import word
from harness.judgement.labels import told
from harness.judgement.records import Claim
from harness.judgement.system_story import Look, SystemStory
from harness.judgement.values import Unknown, Value


class Standing(NamedTuple):
    """Whether a subcloud holds all that is listed for it. ``truth`` and ``how_read``: for people."""

    good: Value[bool]
    truth: str
    how_read: str
    records: tuple[int, ...]


def standing_of(cloud: CloudStory, look: CloudLook, subcloud: str) -> Standing:
    """Return whether each card of a subcloud holds every image that the controller lists for it, and of
    each of its parts one functional image."""
    cards = look.cards.get(subcloud, ())
    if not cards:
        return _unread(f"no card of {subcloud} was read")
    found = [each for card in cards for each in _of_card(cloud, look, card)]
    if look.unread[subcloud]:
        found.append(_unread(f"{look.unread[subcloud]} of its cards were not read"))
    wrong = [each for each in found if each.good is False]
    unknown = [each for each in found if isinstance(each.good, Unknown)]
    shown = wrong or unknown or found
    return Standing(
        shown[0].good,
        "; ".join(each.truth for each in shown),
        ", ".join(dict.fromkeys(each.how_read for each in shown)),
        tuple(seq for each in shown for seq in each.records),
    )


def holding_in(cloud: CloudStory, look: CloudLook, card: CloudCard, image: str) -> Holding:
    """Return whether a card holds an image; unknown where it was written and no boot followed yet, and where
    the card would show an image of other bytes just so."""
    story = cloud.subclouds[card.subcloud]
    facts = story.facts(image)
    held = holding_of(facts, card.seen)
    if held.holds is True and (twins := twins_of(story, image)):
        return _told_apart(story, card, image, twins, held)
    if held.holds is not False or word(facts, "effect") not in AFTER_RESET:
        return held
    own = look.subclouds[card.subcloud]
    if status_of(own, card.name, image) != "completed":
        return held
    if resets_after(story, card.name, _written_since(story, own, card, image)).by(card.seen) is True:
        return held
    why = "it is written, and whether the card was reset since then is not known"
    return held._replace(holds=Unknown(why), truth=f"{why}; {held.truth}")


def _told_apart(
    story: SystemStory, card: CloudCard, image: str, twins: Sequence[str], held: Holding
) -> Holding:
    """Return ``held`` where the image, and none of its twins, is said to be written; false where a twin is,
    and the subcloud never had the image; else unknown."""
    written = written_there(story, card.name, (image, *twins), card.seen)
    if written == [image]:
        return held
    names = " and ".join(story.image_name(twin) for twin in twins)
    why = f"{names} shows just so, and has other bytes"
    looks = [look for look in story.looks if look.seq < card.seen.seq]
    had = any(image == word(row.statement, "uuid") for look in looks for row in look.said["image"])
    if written and not had and all("image" in look.asked for look in looks):
        return held._replace(holds=False, truth=f"{card.subcloud} never had it, and {why}; {held.truth}")
    return held._replace(holds=Unknown(why), truth=f"{why}; {held.truth}")


def evidence_of(cloud: CloudStory, look: CloudLook, card: CloudCard, rows: Iterable[Claim]) -> str:
    """Return, for people, which of some images a card shows that it holds."""
    shown = []
    for row in rows:
        held = holding_in(cloud, look, card, word(row.statement, "uuid"))
        shown.append(f"{_verb(held)} {cloud.name_of(row)} ({held.truth})")
    return f"{card.name} at {card.address or 'no address'} {', '.join(shown)}"


def status_of(look: Look, card: str, image: str) -> str:
    """Return the status that a system shows of an image on a card; empty where it shows none."""
    for claim in look.said["state"]:
        said = claim.statement
        if (
            said.get("image_uuid") == image
            and look.card_at(said.get("hostname"), said.get("address")) == card
        ):
            return word(said, "status")
    return ""


def by_part(cloud: CloudStory, rows: Iterable[Claim]) -> dict[Any, list[Claim]]:
    """Return rows of images by the part of a card that they are for; under None those that it takes all."""
    parts: dict[Any, list[Claim]] = defaultdict(list)
    for row in rows:
        parts[cloud.part_of(row)].append(row)
    return parts


def _of_card(cloud: CloudStory, look: CloudLook, card: CloudCard) -> Iterator[Standing]:
    rows = look.listed_for(card)
    gone = f"; its label {told(sorted(card.lost))} is gone, and nobody took it off" if card.lost else ""
    if not rows:
        truth = f"no image that the controller lists is for {card.name}{gone}"
        yield Standing(True, truth, "the controller's images", (card.seen.seq,))
    for part, rivals in by_part(cloud, rows).items():
        if part is None or len(rivals) == 1:
            yield from (_of_image(cloud, look, card, row, gone) for row in rivals)
        else:
            yield _of_rivals(cloud, look, card, rivals, gone)


def _of_image(cloud: CloudStory, look: CloudLook, card: CloudCard, row: Claim, gone: str) -> Standing:
    held = holding_in(cloud, look, card, word(row.statement, "uuid"))
    truth = f"{card.name} {_verb(held)} {cloud.name_of(row)}: {held.truth}{gone}"
    return Standing(held.holds, truth, held.how_read, (row.seq, *held.records))


def _of_rivals(
    cloud: CloudStory, look: CloudLook, card: CloudCard, rivals: Sequence[Claim], gone: str
) -> Standing:
    names = " and ".join(cloud.name_of(row) for row in rivals)
    truth = f"the controller lists {names} for {card.name}, which can hold one of them{gone}; "
    how_read = holding_of(cloud.facts(word(rivals[0].statement, "uuid")), card.seen).how_read
    records = (*(row.seq for row in rivals), card.seen.seq)
    return Standing(False, truth + evidence_of(cloud, look, card, rivals), how_read, records)


def _written_since(story: SystemStory, look: Look, card: CloudCard, image: str) -> int:
    """Return the first record since which the image is said to be completed on the card, up to ``look``."""
    since = look.seq
    for earlier in reversed(story.whole_looks):
        if earlier.seq < look.seq and card.name in earlier.cards:
            if status_of(earlier, card.name, image) != "completed":
                break
            since = earlier.seq
    return since


def _unread(why: str) -> Standing:
    return Standing(Unknown(why), why, "nothing", ())


def _verb(held: Holding) -> str:
    if isinstance(held.holds, Unknown):
        return "may hold"
    return "holds" if held.holds else "does not hold"

"""What a system has said of an image on a card must stay until somebody takes it away: else it is LOST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.judgement.checkers.image_state import REPORTER
from harness.judgement.grouping import field_of, listed, source_of, word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim, Intent
from harness.judgement.system_story import Look, SystemStory


def check_kept_states(story: SystemStory) -> Iterator[Verdict]:
    """Yield a verdict for each state that is gone in the next look without cause."""
    for first, second in story.pairs():
        if "state" not in second.asked or "state" not in first.asked:
            continue
        left = {_key(second, claim) for claim in second.said["state"]}
        for claim in first.said["state"]:
            card, image = key = _key(first, claim)
            if not card or not image or key in left or card not in second.cards:
                continue
            if not any(
                _takes_away(story, (second, first), claim, image, c)
                for c in story.changes_between(first, second)
            ) and not _strategy_takes_away(story, second, card, image):
                yield _lost(story, second, claim, card, image)


def _key(look: Look, claim: Claim) -> tuple[str, str]:
    said = claim.statement
    return look.card_at(said.get("hostname"), said.get("address")), word(said, "image_uuid")


def _takes_away(
    story: SystemStory, looks: tuple[Look, Look], claim: Claim, image: str, change: Intent
) -> bool:
    """Whether what was asked for is a reason for a state to go (sections 4.2 to 4.5)."""
    target = change.parameters.get("target")
    if change.operation in ("image-remove", "image-delete"):
        return bool(target == image)
    if change.operation == "label-remove":
        return target == claim.statement.get("hostname") and _is_owed_by_label(looks[1], image, change)
    if change.operation == "image-apply":
        return target != image and _replaces(story, looks, str(target), image)
    return False


def _strategy_takes_away(story: SystemStory, look: Look, card: str, image: str) -> bool:
    """Whether a strategy of the system controller is a reason: it brought another image for the same part of
    the card, or the controller does not apply the image any more (section 5.5)."""
    acts = [act for act in story.parent.changes if act.seq < look.seq] if story.parent is not None else []
    if not any(act.operation == "strategy-apply" for act in acts):
        return False
    if any(
        act.operation in ("image-remove", "image-delete") and act.parameters.get("target") == image
        for act in acts
    ):
        return True
    return any(
        other != image and _replaces(story, (look,), other, image)
        for of_card, other in (_key(look, claim) for claim in look.said["state"])
        if of_card == card
    )


def _is_owed_by_label(look: Look, image: str, change: Intent) -> bool:
    labels = _image(look, image).get("applied_labels")
    if not isinstance(labels, (list, tuple)):
        return True
    keys = listed(change.parameters, "keys")
    return any(isinstance(label, (list, tuple)) and label and label[0] in keys for label in labels)


def _replaces(story: SystemStory, looks: tuple[Look, ...], new: str, old: str) -> bool:
    """Whether a new image takes the place of an old one: both functional, for the same part of the card.

    Section 4.2; a BMC image without retimer leaves one with retimer beside it.
    """
    fresh, gone = (next(filter(None, (_image(look, uuid) for look in looks)), {}) for uuid in (new, old))
    if gone.get("bitstream_type") != "functional" or fresh.get("bitstream_type") != "functional":
        return False
    beside = (
        story.is_bmc(new, fresh) is True
        and fresh.get("retimer_included") is not True
        and gone.get("retimer_included") is True
    )
    return bool(story.is_bmc(new, fresh) == story.is_bmc(old, gone)) and not beside


def _image(look: Look, uuid: str) -> Mapping[str, Any]:
    said = (claim.statement for claim in look.said["image"] if claim.statement.get("uuid") == uuid)
    return next(said, {})


def _lost(story: SystemStory, look: Look, claim: Claim, card: str, image: str) -> Verdict:
    seen = look.cards[card]
    return Verdict(
        VerdictKind.LOST,
        "kept-states",
        REPORTER,
        claim.subject,
        f"nothing of {story.image_name(image)} on {card}, which was {word(claim.statement, 'status')}",
        f"the card with the identity {field_of(seen, 'identity')} is at {field_of(seen, 'address')}, and no "
        "one took the image from it",
        f"the card's identity, from {source_of(seen, 'identity')}",
        None,
        (claim.seq, look.seq, seen.seq),
    )

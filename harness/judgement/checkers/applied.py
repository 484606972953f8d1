"""Does what a system says of an image's being applied, and to which labels, agree with its own states?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from harness.judgement.grouping import word
from harness.judgement.labels import EVERY, Label, carriers, labels_of, told
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim
from harness.judgement.system_story import Look, SystemStory

REPORTER: Final = "sysinv-applied"


class _Finding(NamedTuple):
    kind: VerdictKind
    truth: str
    records: tuple[int, ...] = ()


def check_applied(story: SystemStory) -> Iterator[Verdict]:
    """Yield a verdict on each image in each look."""
    for look in story.whole_looks:
        carried = {(k, v): cards for (k, v), cards in carriers(look).items()}
        for claim in look.said["image"]:
            found = list(_findings(story, look, claim, carried))
            truth = "labels and states of the same look agree with it"
            for each in found or [_Finding(VerdictKind.MATCH, truth)]:
                yield Verdict(
                    each.kind,
                    "applied",
                    REPORTER,
                    claim.subject,
                    _claimed(story, claim),
                    each.truth,
                    "states, labels and images of the same look",
                    claim.intent,
                    (claim.seq, *each.records),
                )


def _findings(
    story: SystemStory, look: Look, claim: Claim, carried: dict[Label, set[str]]
) -> Iterator[_Finding]:
    labels, applied = labels_of(claim), claim.statement.get("applied")
    if labels is None:
        return
    uuid = word(claim.statement, "uuid")
    if isinstance(applied, bool) and applied != bool(labels):
        yield _Finding(VerdictKind.CONTRADICTION, f"applied is {applied}, and its labels are {told(labels)}")
    if len(set(labels)) < len(labels):
        twice = {label for label in labels if labels.count(label) > 1}
        yield _Finding(VerdictKind.MISREPORT, f"it is applied to a label once: {told(sorted(twice))}")
    for other in _rivals(story, look, claim):
        shared = set(labels) & set(labels_of(other) or ()) - {EVERY}
        if shared:
            truth = f"{told(sorted(shared))} can have one functional image, and has {_name(story, other)} too"
            yield _Finding(VerdictKind.CONTRADICTION, truth, (other.seq,))
    cards = _targets(look, labels, carried)
    states = _cards_with(look, uuid)
    for card in sorted(cards - states.keys()):
        replaced = [
            o for o in _rivals(story, look, claim) if card in _cards_with(look, word(o.statement, "uuid"))
        ]
        if replaced and EVERY in labels:
            truth = f"{_name(story, replaced[0])} took its place on {card}"
            yield _Finding(VerdictKind.MISREPORT, truth, (replaced[0].seq,))
        elif not replaced:
            yield _Finding(
                VerdictKind.CONTRADICTION, f"nothing is said of it on {card}, which it is applied to"
            )
    for card in sorted(states.keys() - cards):
        truth = f"it is {states[card]} on {card}, which it is not applied to"
        yield _Finding(VerdictKind.CONTRADICTION, truth)


def _targets(look: Look, labels: list[Label], carried: dict[Label, set[str]]) -> set[str]:
    """Return the cards that an image with these labels is for: those that the system knows as devices."""
    if EVERY in labels:
        return _shown_cards(look)
    return set().union(*(carried.get(label, set()) for label in labels))


def _shown_cards(look: Look) -> set[str]:
    shown = (
        look.card_at(c.statement.get("hostname"), c.statement.get("address")) for c in look.said["device"]
    )
    return {card for card in shown if card}


def _cards_with(look: Look, uuid: str) -> dict[str, str]:
    """Return the cards that a state of the image is said of, and that state."""
    found = {}
    for claim in look.said["state"]:
        said = claim.statement
        card = look.card_at(said.get("hostname"), said.get("address"))
        if card and said.get("image_uuid") == uuid:
            found[card] = word(said, "status")
    return found


def _rivals(story: SystemStory, look: Look, claim: Claim) -> list[Claim]:
    """Return the other functional images for the same part of the card."""
    own = claim.statement
    if own.get("bitstream_type") != "functional":
        return []
    return [
        other
        for other in look.said["image"]
        if other.statement.get("bitstream_type") == "functional"
        and other.statement.get("uuid") != own.get("uuid")
        and story.is_bmc(word(other.statement, "uuid"), other.statement)
        == story.is_bmc(word(own, "uuid"), own)
    ]


def _name(story: SystemStory, claim: Claim) -> str:
    return story.image_name(word(claim.statement, "uuid"))


def _claimed(story: SystemStory, claim: Claim) -> str:
    labels = labels_of(claim)
    where = "labels not shown" if labels is None else told(labels)
    return f"{_name(story, claim)} is applied: {claim.statement.get('applied')} ({where})"

"""Does what a system controller says of an image's being applied agree with what its subclouds say of it?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from harness.judgement.checkers.standing import by_part, evidence_of
from harness.judgement.checkers.sync_status import OVER
from harness.judgement.cloud_story import CloudCard, CloudLook, CloudStory, last_before
from harness.judgement.grouping import word
from harness.judgement.labels import EVERY, labels_of, told
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim, Subject
from harness.judgement.system_story import shown

REPORTER: Final = "controller-applied"
#: What makes an image applied, or not, on the controller alone: the subclouds follow in the next strategy.
_CHANGES: Final = ("image-apply", "image-remove")


def check_across(cloud: CloudStory) -> Iterator[Verdict]:
    """Yield a verdict on each image that the controller lists for a card of a subcloud, or that the subcloud
    says is applied, in each look; on one that the subcloud has not, once it must have been brought there."""
    changed: dict[str, list[int]] = defaultdict(list)
    for change in cloud.changes(*_CHANGES, unanswered=True):
        changed[word(change.parameters, "target")].append(change.seq)
    # Subcloud -> the last strategy that came to its end there: one may be for other subclouds alone.
    served: dict[str, int] = {}
    for look in cloud.looks:
        rows = {word(claim.statement, "uuid"): claim for claim in look.own.said["image"]}
        steps = {name: word(step.statement, "state") for name, step in look.said("step").items()}
        busy = any(state not in OVER for state in steps.values())
        unfinished = [name for name in look.subclouds if busy or steps.get(name, "complete") != "complete"]
        served |= {name: look.strategy for name, state in steps.items() if state == "complete"}
        for name, own in look.subclouds.items():
            theirs = {word(claim.statement, "uuid"): claim for claim in own.said["image"]}
            for card in look.cards[name]:
                for uuid, row in rows.items():
                    last = last_before(changed[uuid], look.own.seq)
                    if uuid in theirs:
                        pending = busy or look.strategy < last
                        yield from _of(cloud, look, card, row, theirs[uuid], pending=pending)
                    elif "image" in own.asked and name not in unfinished and 0 < last < served.get(name, 0):
                        yield from _missing(cloud, look, card, row)


def _of(
    cloud: CloudStory, look: CloudLook, card: CloudCard, row: Claim, theirs: Claim, *, pending: bool
) -> Iterator[Verdict]:
    there = labels_of(theirs)
    if there is None or labels_of(row) is None:
        return
    here = any(each is row for each in look.listed_for(card))
    said = theirs.statement.get("applied") is True and bool({EVERY, *card.meant}.intersection(there))
    if not here and not said:
        return
    name = cloud.name_of(row)
    more = sorted(set(there) - set(labels_of(row) or ())) if here else []
    kind, why = VerdictKind.MATCH, f"both say that {name} is applied to {card.name}"
    if (here != said or more) and pending:
        kind, why = VerdictKind.MATCH, f"they differ about {name}, and no strategy has come since it changed"
    elif here != said:
        kind, why = VerdictKind.CONTRADICTION, f"they contradict each other about {name}"
    elif more:
        kind, why = VerdictKind.CONTRADICTION, f"the controller does not apply {name} to {told(more)}"
    yield _verdict(cloud, look, card, row, kind, why, _row(card.subcloud, theirs), theirs.seq)


def _missing(cloud: CloudStory, look: CloudLook, card: CloudCard, row: Claim) -> Iterator[Verdict]:
    """A strategy came since an image was applied, and the subcloud has neither it nor one in its place."""
    listed = look.listed_for(card)
    if not any(each is row for each in listed):
        return
    own = look.subclouds[card.subcloud]
    rivals = by_part(cloud, listed).get(cloud.part_of(row), []) if cloud.part_of(row) else []
    theirs = {word(claim.statement, "uuid") for claim in own.said["image"]}
    if theirs.isdisjoint(word(rival.statement, "uuid") for rival in rivals):
        why = f"they contradict each other about {cloud.name_of(row)}"
        missing = f"{card.subcloud} does not list it"
        yield _verdict(cloud, look, card, row, VerdictKind.CONTRADICTION, why, missing, own.seq)


def _verdict(
    cloud: CloudStory,
    look: CloudLook,
    card: CloudCard,
    row: Claim,
    kind: VerdictKind,
    why: str,
    theirs: str,
    record: int,
) -> Verdict:
    listed = by_part(cloud, look.listed_for(card)).get(cloud.part_of(row), [])
    rivals = [other for other in listed if other is not row]
    subject = f"{card.subcloud}/image/{word(row.statement, 'uuid')}"
    rows = (_row(cloud.controller.name, row), theirs)
    return Verdict(
        kind,
        "across",
        REPORTER,
        Subject("record", subject, card.hostname, card.address),
        "; ".join(rows),
        f"{why}; {evidence_of(cloud, look, card, [row, *rivals])}",
        "the images of both in the same look, and the card",
        None,
        (row.seq, record, card.seen.seq),
        rows,
    )


def _row(system: str, row: Claim) -> str:
    """Return a row as the command shows it: what tells the image, and where it is applied."""
    said = row.statement
    labels = labels_of(row)
    shown_labels = "not shown" if labels is None else told(labels)
    return (
        f"{system} lists {word(said, 'uuid')} | {shown(said.get('bitstream_type'))} | "
        f"bitstream_id {shown(said.get('bitstream_id'))} | applied {shown(said.get('applied'))} | "
        f"applied_labels {shown_labels}"
    )

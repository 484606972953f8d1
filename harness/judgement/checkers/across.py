"""Does what a system controller says of an image's being applied agree with what its subclouds say of it?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from harness.judgement.checkers.standing import by_part, evidence_of
from harness.judgement.checkers.sync_status import OVER
from harness.judgement.cloud_story import CloudCard, CloudStory, last_before
from harness.judgement.grouping import word
from harness.judgement.labels import EVERY, labels_of, told
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim, Subject
from harness.judgement.system_story import shown

REPORTER: Final = "controller-applied"
#: What makes an image applied, or not, on the controller alone: the subclouds follow in the next strategy.
_CHANGES: Final = ("image-apply", "image-remove")


def check_across(cloud: CloudStory) -> Iterator[Verdict]:
    """Yield a verdict on each image that a subcloud has, and that the controller lists for a card of it or
    that the subcloud says is applied, in each look."""
    changed: dict[str, list[int]] = defaultdict(list)
    for change in cloud.changes(*_CHANGES):
        changed[str(change.parameters.get("target"))].append(change.seq)
    for look in cloud.looks:
        rows = {word(claim.statement, "uuid"): claim for claim in look.own.said["image"]}
        busy = any(word(c.statement, "state") not in OVER for c in look.own.said["step"])
        for name, own in look.subclouds.items():
            theirs = {word(claim.statement, "uuid"): claim for claim in own.said["image"]}
            for card in look.cards[name]:
                listed = look.listed_for(card)
                for uuid, row in rows.items():
                    if uuid not in theirs:
                        continue
                    pending = busy or look.strategy < last_before(changed[uuid], look.own.seq)
                    yield from _of(cloud, card, row, theirs[uuid], listed, pending=pending)


def _of(
    cloud: CloudStory, card: CloudCard, row: Claim, theirs: Claim, listed: list[Claim], *, pending: bool
) -> Iterator[Verdict]:
    there = labels_of(theirs)
    if there is None or labels_of(row) is None:
        return
    here = any(each is row for each in listed)
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
    rivals = [other for other in by_part(cloud, listed).get(cloud.part_of(row), []) if other is not row]
    subject = f"{card.subcloud}/image/{word(row.statement, 'uuid')}"
    rows = (_row(cloud.controller.name, row), _row(card.subcloud, theirs))
    yield Verdict(
        kind,
        "across",
        REPORTER,
        Subject("record", subject, card.hostname, card.address),
        "; ".join(rows),
        f"{why}; {evidence_of(cloud, card, [row, *rivals])}",
        "the images of both in the same look, and the card",
        None,
        (row.seq, theirs.seq, card.seen.seq),
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

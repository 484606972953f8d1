"""A card came back at another address: whoever keeps the old one is out of date, STALE."""

from __future__ import annotations

from collections.abc import Iterator

from harness.judgement.grouping import Block, field_of, source_of
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.values import Unknown

#: The keeper of the addresses that operations are asked for at.
INVENTORY = "inventory"


def check_addresses(block: Block) -> Iterator[Verdict]:
    """Yield one verdict per move of a card that was seen to answer elsewhere than it was asked."""
    told = {held.claim.subject.name for held in block.state_claims if held.claim.reporter == INVENTORY}
    seen: set[tuple[str, str, str]] = set()
    for operation in block.operations:
        subject = operation.intent.subject
        observation = operation.after_reset
        if observation is None or not subject.address or subject.name in told:
            continue
        answered = field_of(observation, "address")
        move = (subject.name, subject.address, str(answered))
        if isinstance(answered, Unknown) or answered == subject.address or move in seen:
            continue
        seen.add(move)
        identity = field_of(observation, "identity")
        yield Verdict(
            VerdictKind.STALE,
            "address",
            INVENTORY,
            subject,
            f"the card is at {subject.address}",
            f"the card with the identity {identity} answers at {answered} since the reset",
            f"the card's identity, from {source_of(observation, 'identity')}",
            operation.intent.seq,
            (operation.intent.seq, observation.seq),
        )

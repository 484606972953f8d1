"""Did the card come back from a reset, and do the words of the tool that reset it agree with that?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.judgement.grouping import (
    NOT_OBSERVED,
    Block,
    Operation,
    field_of,
    show,
    source_of,
    was_not_made,
    word,
)
from harness.judgement.model import Outcome, OutcomeOf, Verdict, VerdictKind
from harness.judgement.records import Observation, Promise
from harness.judgement.values import ALL_ONES, Unknown, Value


class Return(NamedTuple):
    """Whether a card is there after a reset, and whether it runs another image than before."""

    present: Value[bool]
    changed: Value[bool]
    truth: str
    how_read: str
    records: tuple[int, ...]


def return_of(block: Block, operation: Operation) -> Return:
    """Return the truth about one reset."""
    seen = operation.after_reset or operation.after or block.reset_after(operation)
    present = presence(seen)
    before, running = field_of(operation.before, "bitstream_id"), field_of(seen, "bitstream_id")
    changed: Value[bool]
    if isinstance(before, Unknown) or isinstance(running, Unknown):
        changed = Unknown(f"bitstream_id {before} before, {running} after")
    else:
        changed = bool(before != running)
    if isinstance(present, Unknown):
        truth = f"whether the card is back is {present}"
    elif not present:
        truth = f"the card is gone: {field_of(seen, 'address')}, bitstream_id {running}"
    else:
        old = show("bitstream_id", before)
        truth = f"the card is there and runs {show('bitstream_id', running)}, before it ran {old}"
    records = tuple(o.seq for o in (operation.before, seen) if o is not None)
    return Return(present, changed, truth, f"the card itself, {source_of(seen, 'bitstream_id')}", records)


def presence(observation: Observation | None) -> Value[bool]:
    """Return whether the card answered when it was observed."""
    running, address = field_of(observation, "bitstream_id"), field_of(observation, "address")
    if not isinstance(running, Unknown):
        return True
    if isinstance(address, Unknown):
        return False if address.reason.startswith("no device") else address
    if running == ALL_ONES:
        return False
    return running if address is NOT_OBSERVED else True


def reset_outcome(operation: Operation, back: Return) -> OutcomeOf:
    """Return how the reset turned out against its promise (``returns`` where none is named).

    A card that is there shows only that it came back if it was reset.
    """
    promise, truth = operation.intent.promise or Promise("returns"), back.truth
    good = back.changed if promise.effect == "unchanged" else back.present
    if isinstance(good, Unknown):
        outcome = Outcome.UNKNOWN
    elif promise.effect == "unchanged":
        outcome = Outcome.BREACH if good else Outcome.AS_INTENDED
    elif good and was_not_made(operation, operation.after_reset or operation.after):
        outcome, truth = Outcome.FAILED, f"it was not reset, by the word of its tool: {truth}"
    else:
        outcome = Outcome.AS_INTENDED if good else Outcome.FAILED
    records = (operation.intent.seq, *back.records)
    return OutcomeOf(outcome, operation.intent.seq, operation.intent.subject, truth, records)


def check_reset_claims(operation: Operation, back: Return) -> Iterator[Verdict]:
    """Hold what the resetting tool said to whether the card is there and what it runs."""
    for claim in operation.claims:
        result, error = word(claim.statement, "result"), word(claim.statement, "error")
        done = result == "done"
        words = "the reset is complete" if done else f"the reset {result}: {error or 'no reason given'}"
        code = claim.evidence.exit_code
        yield Verdict(
            _verdict_on(back, done=done),
            "reset",
            claim.reporter,
            claim.subject,
            words if code is None else f"{words} (exit {code})",
            back.truth,
            back.how_read,
            operation.intent.seq,
            (claim.seq, *back.records),
        )


def _verdict_on(back: Return, *, done: bool) -> VerdictKind:
    truth = back.present if done else back.changed
    if isinstance(truth, Unknown):
        # A card that is gone after a failed reset has not been shown to run something new.
        gone = not done and back.present is False
        return VerdictKind.MATCH if gone else VerdictKind.UNVERIFIABLE
    if done:
        return VerdictKind.MATCH if truth else VerdictKind.FALSE_SUCCESS
    return VerdictKind.FALSE_FAILURE if truth else VerdictKind.MATCH

"""An operation was accepted and its reporter never said how it ended: LOST."""

from __future__ import annotations

from collections.abc import Iterator

from harness.judgement.grouping import Block, Operation, word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim, Intent
from harness.judgement.values import Unknown, Value

#: Which tool owes a word about an operation. Operations that no tool reports are not listed.
REPORTER_OF = {"flash": "fpgasupdate", "reset": "rsu"}

#: How the run's own end shows in the completion of an operation: the names of what Ctrl-C raises.
_INTERRUPTS = frozenset({"KeyboardInterrupt", "Exit", "SystemExit"})


def check_silence(
    block: Block, operation: Operation, attempted: Value[bool], truth: str, how_read: str
) -> Iterator[Verdict]:
    """Yield a verdict where the reporter of an operation said nothing about its end.

    An operation that the harness never began, or could not begin because the lab failed, was never
    accepted: the card was not touched, and no fault struck. Where the run itself ended in the middle of
    one, nobody was there to listen.
    """
    intent = operation.intent
    reporter = word(intent.parameters, "reporter") or REPORTER_OF.get(intent.operation, "")
    if not reporter or any(c.reporter == reporter and _tells_the_end(c, intent) for c in operation.claims):
        return
    done = operation.completion
    accepted = bool(operation.faults) or (not isinstance(attempted, Unknown) and attempted)
    if not block.ended and (done is None or done.error.get("kind") in _INTERRUPTS):
        kind, words = VerdictKind.UNVERIFIABLE, "nothing yet (the run ended before the operation did)"
    elif done is not None and done.how == "raised" and not accepted:
        return
    elif not block.ended and not accepted:
        kind, words = VerdictKind.UNVERIFIABLE, "nothing (the lab failed meanwhile)"
    else:
        how = "never returned" if done is None or done.how == "never" else done.how
        kind, words = VerdictKind.LOST, f"nothing (the operation {how}, and no word on its end was seen)"
    yield Verdict(
        kind,
        "silence",
        reporter,
        intent.subject,
        words,
        truth,
        how_read,
        intent.seq,
        (intent.seq, done.seq) if done is not None else (intent.seq,),
    )


def _tells_the_end(claim: Claim, intent: Intent) -> bool:
    """Whether a claim says how an operation ended; a client of a registry that was cut short does not."""
    return intent.subject.kind != "registry-image" or claim.statement.get("result") != "interrupted"

"""Images that were reported good stay good: what a registry loses makes the older report false."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.judgement.checkers.push import findings_of, state_of
from harness.judgement.grouping import Block, ImageEvent, Operation, field_of, source_of, word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim, Fault, Observation
from harness.judgement.values import Unknown

#: Operations that take an image away on purpose.
REMOVALS = frozenset({"remove", "delete"})
#: Faults that damage what a registry stores begin with one of these: they act, not the registry.
_DAMAGES = ("truncate", "flip", "remove", "empty", "zero", "damage")


@dataclass(slots=True)
class _Held:
    """An acknowledged image. ``replacing``: a later push wants its tag; ``damaged_by``: a fault's action."""

    operation: Operation
    claims: list[Claim]
    seen: Observation
    replacing: bool = False
    damaged_by: str = ""


def check_acknowledged(block: Block) -> Iterator[Verdict]:
    """Yield a verdict where an image that was pushed, reported and seen is later not there any more.

    Nobody removed it and nothing else was pushed in its place: the registry lost it, FALSE_SUCCESS. Where
    a fault of ours damaged the store meanwhile the report was true, and is not any more: STALE.
    """
    for events in block.image_events.values():
        yield from _of_one_image(events)


def _of_one_image(events: Sequence[ImageEvent]) -> Iterator[Verdict]:
    held: _Held | None = None
    owners: dict[int, Operation] = {}
    for event in events:
        if isinstance(event, Operation):
            owners[event.intent.seq] = event
            if event.intent.operation in REMOVALS:
                held = None
            elif held is not None and event.intent.operation == "push":
                held.replacing = True
        elif isinstance(event, Fault):
            if held is not None and event.action.startswith(_DAMAGES):
                # What was damaged and brought back is the registry's to keep again.
                held.damaged_by = event.action if event.state == "fired" else ""
        else:
            owner = owners.get(event.intent) if event.intent is not None else None
            if held is not None and owner is not held.operation:
                fate = _fate(held, event)
                if fate == "lost":
                    yield from _lost(held, event)
                held = held if fate == "kept" else None
            if owner is not None and event is owner.after and state_of(event) == "COMPLETE":
                held = _acknowledged(owner, event) or held


def _acknowledged(operation: Operation, seen: Observation) -> _Held | None:
    """Return the image as acknowledged, where somebody reported it as done."""
    if operation.intent.operation != "push":
        return None
    claims = [claim for claim in operation.claims if claim.statement.get("result") == "done"]
    return _Held(operation, claims, seen) if claims else None


def _fate(held: _Held, seen: Observation) -> str:
    """Return what became of an acknowledged image: ``kept``, ``replaced`` or ``lost``."""
    state, digest = state_of(seen), field_of(seen, "digest")
    if isinstance(digest, Unknown):
        return "kept" if state == "UNREADABLE" else "lost"
    if digest != field_of(held.seen, "digest"):
        return "replaced" if held.replacing else "lost"
    # Another image than was wanted there is WRONG for who wanted it, and whole all the same.
    found = seen.values.get("findings")
    states = {word(each, "state") for each in found if isinstance(each, Mapping)} if found else set()
    return "lost" if states & {"CORRUPT", "PARTIAL", "ABSENT"} else "kept"


def _lost(held: _Held, seen: Observation) -> Iterator[Verdict]:
    why = findings_of(seen.values)
    now = f"it is {state_of(seen)} now" + (f" ({why})" if why else "")
    cause = f"since the fault {held.damaged_by}" if held.damaged_by else "although nobody removed it"
    for claim in held.claims:
        yield Verdict(
            VerdictKind.STALE if held.damaged_by else VerdictKind.FALSE_SUCCESS,
            "acknowledged",
            claim.reporter,
            claim.subject,
            f"{claim.subject.name} was pushed, and it was there then",
            f"{now}, {cause}",
            f"{seen.moment or 'later'}, {source_of(seen, 'state')}",
            held.operation.intent.seq,
            (claim.seq, held.seen.seq, seen.seq),
        )

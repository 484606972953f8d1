"""Is a pushed or pulled image truly there, and do the outcome and the client's words agree with that?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.judgement.grouping import NOT_OBSERVED, Operation, field_of, source_of, word
from harness.judgement.model import Outcome, OutcomeOf, Verdict, VerdictKind
from harness.judgement.records import Claim, Observation, Promise
from harness.judgement.values import Unknown, Value

#: States of an image that is known not to be there as it should, worst first; the words of the truth walks.
FALSE_STATES = ("WRONG", "CORRUPT", "PARTIAL", "ABSENT")
#: What stands for several readings: known false before not read, and that before true.
_STATE_RANK = {state: rank for rank, state in enumerate((*FALSE_STATES, "UNREADABLE", "COMPLETE"))}
_WORDS = {
    ("push", "done"): "{image} was pushed",
    ("push", "failed"): "pushing {image} failed",
    ("push", "unknown"): "whether {image} was pushed is not known",
    ("pull", "done"): "{image} was pulled",
    ("pull", "failed"): "pulling {image} failed",
    ("pull", "unknown"): "whether {image} was pulled is not known",
}


class Standing(NamedTuple):
    """What a registry holds of an image after an operation.

    ``there``: it is there as the operation wanted it. ``was_there``: so it was before. ``digest``: of the
    manifest that its reference leads to. ``truth`` and ``how_read``: for people.
    """

    there: Value[bool]
    was_there: Value[bool]
    digest: Value[str]
    truth: str
    how_read: str
    records: tuple[int, ...]


def standing_of(operation: Operation) -> Standing:
    """Return the truth about one push or pull (the rules are in docs/verdicts.md)."""
    read = [seen for seen in (operation.after, operation.after_restart) if seen is not None]
    if not read:
        why = Unknown("the registry was not read after it")
        return Standing(why, why, why, str(why), "nothing", ())
    chosen = min(read, key=lambda seen: _STATE_RANK.get(state_of(seen), _STATE_RANK["UNREADABLE"]))
    before = operation.before
    return Standing(
        _is_there(chosen),
        _is_there(before) if before is not None else NOT_OBSERVED,
        _text(chosen, "digest"),
        _told(operation, chosen, read),
        f"{chosen.moment or 'then'}, {source_of(chosen, 'state')}",
        tuple(seen.seq for seen in (before, *read) if seen is not None),
    )


def state_of(observation: Observation) -> str:
    """Return the state of the image that was observed; UNREADABLE for what is none."""
    state = observation.values.get("state")
    return state if isinstance(state, str) and state in _STATE_RANK else "UNREADABLE"


def findings_of(values: Mapping[str, Any]) -> str:
    """Return what an observation, or one way of it, found wrong, in one line."""
    found = values.get("findings")
    if not isinstance(found, list):
        return ""
    each = (item for item in found if isinstance(item, Mapping))
    return "; ".join(f"{word(item, 'part')} {word(item, 'which')}: {word(item, 'reason')}" for item in each)


def _is_there(observation: Observation) -> Value[bool]:
    state = state_of(observation)
    if state == "UNREADABLE":
        return Unknown(findings_of(observation.values) or "the registry could not be read")
    return state == "COMPLETE"


def _text(observation: Observation, name: str) -> Value[str]:
    value = field_of(observation, name)
    return value if isinstance(value, (str, Unknown)) else Unknown(f"not a {name}: {value!r}")


def _told(operation: Operation, chosen: Observation, read: list[Observation]) -> str:
    state, why = state_of(chosen), findings_of(chosen.values)
    told = f"it is {state}" + (f" ({why})" if why else "")
    if chosen is not read[0] and state_of(read[0]) != state:
        told += f" after a restart of the registry; before that it was {state_of(read[0])}"
    if disagreement := word(chosen.values, "disagreement"):
        told += f"; {disagreement}"
    before = state_of(operation.before) if operation.before is not None else ""
    if before in ("CORRUPT", "PARTIAL"):
        healed = "and the push healed it" if state == "COMPLETE" else "and the push did not heal it"
        told += f"; it was {before} before, {healed}"
    return told


def push_outcome(operation: Operation, standing: Standing) -> OutcomeOf:
    """Return how a push turned out against its promise (``lands`` where none is named)."""
    intent = operation.intent
    promise = intent.promise or Promise("lands")
    reason = standing.truth
    if isinstance(standing.there, Unknown):
        outcome, reason = Outcome.UNKNOWN, f"cannot be told: {standing.there.reason}"
    elif promise.effect == "unchanged" and _was_unread(standing):
        outcome, reason = Outcome.UNKNOWN, f"cannot be told: {_before(standing)}"
    elif promise.effect == "unchanged":
        change = _change(operation)
        outcome = Outcome.BREACH if change else Outcome.AS_INTENDED
        reason = f"the push must change nothing, and {change}" if change else reason
    else:
        outcome = Outcome.AS_INTENDED if standing.there else Outcome.FAILED
    if promise.source and outcome is not Outcome.AS_INTENDED:
        reason += f" [{promise.source}]"
    return OutcomeOf(outcome, intent.seq, intent.subject, reason, (intent.seq, *standing.records))


def _change(operation: Operation) -> str:
    """Return what a push changed that was to change nothing; empty where it kept to that.

    An image that was there already is no change by being there still.
    """
    before, read = operation.before, (operation.after_restart, operation.after)
    after = next((seen for seen in read if seen is not None and state_of(seen) != "UNREADABLE"), None)
    if after is None:
        return ""
    if before is None:
        return "the image is there" if state_of(after) == "COMPLETE" else ""
    was, is_now = state_of(before), state_of(after)
    old, new = _text(before, "digest"), _text(after, "digest")
    moved = not isinstance(old, Unknown) and not isinstance(new, Unknown) and old != new
    if was == is_now and not moved:
        return ""
    return f"what is there is {is_now} ({new}) and was {was} ({old})"


def pull_outcome(operation: Operation, standing: Standing) -> OutcomeOf:
    """Return how a pull turned out: what was to be had was whole, and no client says that it lacks it.

    What arrived is with the client, and only it can tell; what a client has hashed it names by digest.
    """
    intent = operation.intent
    results = {word(claim.statement, "result") for claim in operation.claims}
    if "failed" in results or standing.there is False:
        outcome = Outcome.FAILED
    elif isinstance(standing.there, Unknown) or "done" not in results:
        outcome = Outcome.UNKNOWN
    else:
        outcome = Outcome.AS_INTENDED
    return OutcomeOf(outcome, intent.seq, intent.subject, standing.truth, (intent.seq, *standing.records))


def check_image_claims(operation: Operation, standing: Standing) -> Iterator[Verdict]:
    """Hold what clients and logs said of a push or pull to what the registry holds."""
    act = operation.intent.operation
    for claim in operation.claims:
        result = word(claim.statement, "result")
        if (act, result) not in _WORDS:
            continue  # it did not say how it ended; that is for the checker of silence
        kind = _verdict_on(act, result, word(claim.statement, "digest"), standing)
        truth = standing.truth
        if kind is VerdictKind.MISREPORT:
            truth = f"it is {standing.digest}"
        elif result == "unknown":
            truth += "; it says neither that it is there nor that it is not"
        elif kind is VerdictKind.UNVERIFIABLE and not isinstance(standing.there, Unknown):
            truth += f"; {_before(standing)}, and what this push did cannot be told from that"
        yield Verdict(
            kind,
            act,
            claim.reporter,
            claim.subject,
            _claimed(claim, act, result),
            truth,
            standing.how_read,
            operation.intent.seq,
            (claim.seq, *standing.records),
        )


def _verdict_on(act: str, result: str, digest: str, standing: Standing) -> VerdictKind:
    if isinstance(standing.there, Unknown) or result == "unknown":
        return VerdictKind.UNVERIFIABLE
    if result == "failed":
        # A pull of what is whole may well fail on its way; what was there before says nothing of a push.
        if not standing.there or act == "pull":
            return VerdictKind.MATCH
        unsure = standing.was_there is True or _was_unread(standing)
        return VerdictKind.UNVERIFIABLE if unsure else VerdictKind.FALSE_FAILURE
    if not standing.there:
        return VerdictKind.FALSE_SUCCESS
    wrong = digest and not isinstance(standing.digest, Unknown) and digest != standing.digest
    return VerdictKind.MISREPORT if wrong else VerdictKind.MATCH


def _was_unread(standing: Standing) -> bool:
    """Return whether somebody looked before it, and could not read what was there."""
    return isinstance(standing.was_there, Unknown) and standing.was_there != NOT_OBSERVED


def _before(standing: Standing) -> str:
    """Return in words what was there before, where that hides what a push did."""
    if isinstance(standing.was_there, Unknown):
        return f"what was there before could not be read ({standing.was_there.reason})"
    return "it was so before, too"


def _claimed(claim: Claim, act: str, result: str) -> str:
    statement = claim.statement
    words = _WORDS[act, result].format(image=claim.subject.name)
    details = [word(statement, name) for name in ("digest", "error", "basis") if word(statement, name)]
    code = claim.evidence.exit_code
    details += [f"exit {code}"] if code is not None else []
    return f"{words} ({', '.join(details)})" if details else words

"""Did the image land, was it tried at all, and do the outcome and the tool's words agree with that?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.judgement.grouping import Block, Operation, fact, field_of, number, show, source_of, word
from harness.judgement.model import Outcome, OutcomeOf, Verdict, VerdictKind
from harness.judgement.records import Claim, Observation, Promise
from harness.judgement.values import Unknown, Value

#: Fields that only a root-key or key-cancellation image may change.
_SECURITY_FIELDS = tuple(f"{s}_{what}" for s in ("sr", "bmc", "pr") for what in ("root", "cancelled"))
_VERSION_FIELDS = ("bmc_version", "bmcfw_version")
_STATE_FIELDS = (*_SECURITY_FIELDS, *_VERSION_FIELDS, "bitstream_id")

#: What a tool's result says, for people.
_WORDS = {
    "done": "{image} was flashed",
    "failed": "flashing {image} failed",
    "not-sent": "{image} was not sent to the card",
    "interrupted": "flashing {image} was interrupted",
}


class Landing(NamedTuple):
    """Whether a flashed image took effect, by what the device exposes.

    ``landed``: the new content is there. ``attempted``: the card erased its staging area for it (its
    flash count rose). ``truth`` and ``how_read``: for people; ``records``: what it rests on.
    """

    landed: Value[bool]
    attempted: Value[bool]
    truth: str
    how_read: str
    records: tuple[int, ...]


def landing_of(block: Block, operation: Operation) -> Landing:
    """Return the truth about one flash operation (the rules are in docs/verdicts.md)."""
    before, after = _flash_counts(block, operation)
    attempted = _attempted(operation, before, after)
    count = f"flash count {before} -> {after}"
    effect = word(operation.image, "effect")
    if effect in ("root-key", "key-cancellation"):
        return _security(block, operation, attempted, count, effect)
    if attempted is False:
        return _never_tried(operation)
    if effect == "user-image":
        return _user_image(block, operation, attempted, count)
    if effect == "bmc-image":
        return _bmc_image(block, operation, attempted, count)
    return _any_change(block, operation, attempted, count)


def _flash_counts(block: Block, operation: Operation) -> tuple[Value[int], Value[int]]:
    before, after = field_of(operation.before, "flash_count"), field_of(operation.after, "flash_count")
    if isinstance(after, Unknown):
        after = field_of(block.reset_after(operation), "flash_count")
    return before, after


def _attempted(operation: Operation, before: Value[int], after: Value[int]) -> Value[bool]:
    if isinstance(before, Unknown) or isinstance(after, Unknown):
        return Unknown(f"flash count {before} before, {after} after")
    if after <= before:
        return False
    return Unknown("another update of the card ran at the same time") if operation.overlapped else True


def _never_tried(operation: Operation) -> Landing:
    count = field_of(operation.before, "flash_count")
    return Landing(
        False,
        False,
        f"nothing was written to the card: its flash count stayed {count}",
        f"flash_count before and after, from {source_of(operation.before, 'flash_count')}",
        _seqs(operation.before, operation.after),
    )


def _user_image(block: Block, operation: Operation, attempted: Value[bool], count: str) -> Landing:
    wanted = fact(operation.image, "bitstream_id")
    before = field_of(operation.before, "bitstream_id")
    reset = block.reset_after(operation)
    running = field_of(reset, "bitstream_id")
    landed: Value[bool]
    if reset is None:
        landed = Unknown("the card was not reset, so the image is not active yet")
        truth = f"it is not active yet: no reset followed ({count})"
    elif isinstance(running, Unknown):
        landed = running
        truth = f"what the card runs after the reset is {running}"
    else:
        landed = _runs_it(block, operation, reset, wanted, before, running)
        page = field_of(reset, "boot_page")
        from_factory = " from its factory page" if page == "factory" else ""
        if isinstance(landed, Unknown):
            meaning = str(landed)
        elif landed:
            meaning = "which is the new image"
        elif running == before:
            meaning = "the same as before"
        else:
            meaning = "neither the new image nor the old one"
        truth = (
            f"after the reset the card runs {running:#x}{from_factory}, {meaning} "
            f"({operation.image_name} is {show('bitstream_id', wanted)}; {count})"
        )
    return Landing(
        landed,
        attempted,
        truth,
        _how_read(operation, reset),
        _seqs(operation.before, operation.after, reset),
    )


def _how_read(operation: Operation, reset: Observation | None) -> str:
    if reset is not None:
        return f"bitstream_id after the reset, from {source_of(reset, 'bitstream_id')}"
    if operation.after is not None:
        return f"flash_count, from {source_of(operation.after, 'flash_count')}"
    return "nothing: the card was not read after the operation"


def _runs_it(
    block: Block, operation: Operation, reset: Observation, wanted: Any, before: Any, running: int
) -> Value[bool]:
    if isinstance(before, Unknown):
        return Unknown(f"what the card ran before is {before}") if running == wanted else False
    if isinstance(wanted, Unknown):
        return bool(running != before)
    if running == wanted:
        if before == wanted:
            return Unknown("the card ran the same id before: not told apart")
        if any(_may_have_begun(block, o) for o in block.flashed_besides(operation, reset, wanted)):
            return Unknown("the same id was flashed once more before the reset: not told apart")
        return True
    if block.flashed_between(operation, reset, running):
        return Unknown("another image was flashed over it before the reset")
    return False


def _may_have_begun(block: Block, operation: Operation) -> bool:
    """Whether the card may have taken bytes of a flash."""
    if operation.never_began or any(_gave_up_preparing(claim) for claim in operation.claims):
        return False
    return _attempted(operation, *_flash_counts(block, operation)) is not False


def _bmc_image(block: Block, operation: Operation, attempted: Value[bool], count: str) -> Landing:
    reset = block.reset_after(operation)
    compared = [
        (name, fact(operation.image, name), field_of(operation.before, name), field_of(reset, name))
        for name in _VERSION_FIELDS
    ]
    readable = [
        row for row in compared if not isinstance(row[2], Unknown) and not isinstance(row[3], Unknown)
    ]
    stated = [row for row in readable if not isinstance(row[1], Unknown)]
    landed: Value[bool]
    if reset is None:
        landed = Unknown("the card was not reset, so the image is not active yet")
    elif not readable:
        landed = Unknown(f"the versions after the reset are {compared[0][3]}")
    elif any(wanted != after for _, wanted, _, after in stated):
        landed = False
    elif any(before != after for _, _, before, after in readable):
        landed = True
    else:
        landed = Unknown("the card had the same versions before: not told apart") if stated else False
    shown = ", ".join(f"{name} {before} -> {after}" for name, _, before, after in compared)
    wanted_text = ", ".join(f"{name} {wanted}" for name, wanted, _, _ in compared)
    return Landing(
        landed,
        attempted,
        f"across the reset {shown} ({operation.image_name} has {wanted_text}; {count})",
        f"version registers after the reset, from {source_of(reset, _VERSION_FIELDS[0])}",
        _seqs(operation.before, reset),
    )


def _security(block: Block, operation: Operation, attempted: Value[bool], count: str, effect: str) -> Landing:
    """A root entry hash or a cancellation is readable at once (n3000.md 3.1)."""
    section = (word(operation.image, "section") or "SR").lower()
    name = f"{section}_root" if effect == "root-key" else f"{section}_cancelled"
    before = field_of(operation.before, name)
    observed = operation.after
    after = field_of(observed, name)
    if isinstance(after, Unknown):
        observed = block.reset_after(operation)
        after = field_of(observed, name)
    landed: Value[bool]
    if isinstance(before, Unknown) or isinstance(after, Unknown):
        landed = Unknown(f"{name} is {before} before and {after} after")
    elif effect == "root-key":
        wanted = fact(operation.image, "programs_root")
        landed = wanted if isinstance(wanted, Unknown) else after == wanted and before != wanted
    else:
        cancelled = fact(operation.image, "cancel_id")
        if isinstance(cancelled, Unknown):
            landed = cancelled
        elif cancelled in before:
            # Cancelling once more changes nothing that can be seen; documents let the card accept it.
            landed = cancelled in after and any(c.statement.get("result") == "done" for c in operation.claims)
        else:
            landed = cancelled in after
    return Landing(
        landed,
        attempted,
        f"{name} is {show(name, after)}, before it was {show(name, before)} ({count})",
        f"{name}, from {source_of(observed, name)}",
        _seqs(operation.before, observed),
    )


def _any_change(block: Block, operation: Operation, attempted: Value[bool], count: str) -> Landing:
    """Of bytes that are no known image, any change of the card's state is an effect."""
    reset = block.reset_after(operation)
    last = reset or operation.after
    changed, readable = [], False
    for name in _STATE_FIELDS:
        before, after = field_of(operation.before, name), field_of(last, name)
        if not isinstance(before, Unknown) and not isinstance(after, Unknown):
            readable = True
            if before != after:
                changed.append(f"{name} {show(name, before)} -> {show(name, after)}")
    landed: Value[bool] = bool(changed) if readable else Unknown("the card's state could not be read")
    return Landing(
        landed,
        attempted,
        f"{', '.join(changed) or 'nothing changed' if readable else landed} ({count})",
        f"the card's state before and after, from {source_of(last, 'bitstream_id')}",
        _seqs(operation.before, last),
    )


def flash_outcome(block: Block, operation: Operation, landing: Landing) -> OutcomeOf:
    """Return how the flash turned out against what documents promise (``lands`` where none is named)."""
    promise = operation.intent.promise or Promise("lands")
    collateral = _collateral(operation)
    if collateral:
        outcome, reason = Outcome.BREACH, f"{collateral}, which {operation.image_name} may not change"
    elif promise.effect == "factory":
        outcome, reason = _fallback(block, operation, landing)
    elif isinstance(landing.landed, Unknown):
        outcome, reason = Outcome.UNKNOWN, f"cannot be told: {landing.truth}"
    elif promise.effect == "unchanged":
        outcome, reason = _refusal(operation, landing, promise)
    elif landing.landed:
        outcome, reason = Outcome.AS_INTENDED, landing.truth
    elif (code := operation.auth_code) is not None:
        outcome = Outcome.BREACH
        reason = f"the card refused {operation.image_name} with code {code:#04x}; documents allow it"
    else:
        outcome, reason = Outcome.FAILED, landing.truth
    if promise.source and outcome is not Outcome.AS_INTENDED:
        reason += f" [{promise.source}]"
    records = (operation.intent.seq, *landing.records)
    return OutcomeOf(outcome, operation.intent.seq, operation.intent.subject, reason, records)


def _refusal(operation: Operation, landing: Landing, promise: Promise) -> tuple[Outcome, str]:
    if landing.landed:
        return Outcome.BREACH, f"{operation.image_name} should have changed nothing, but {landing.truth}"
    due = {number(code) for code in promise.codes}
    code = operation.auth_code
    if due and code is not None and code not in due:
        allowed = " or ".join(promise.codes)
        return Outcome.FAILED, f"refused for another reason: code {code:#04x} where {allowed} is due"
    return Outcome.AS_INTENDED, landing.truth


def _fallback(block: Block, operation: Operation, landing: Landing) -> tuple[Outcome, str]:
    reset = block.reset_after(operation)
    page = field_of(reset, "boot_page")
    if isinstance(page, Unknown):
        return Outcome.UNKNOWN, f"cannot be told: boot_page is {page}"
    if page == "factory":
        return Outcome.AS_INTENDED, landing.truth
    if reset is not None and block.flashed_between(operation, reset, field_of(reset, "bitstream_id")):
        return Outcome.UNKNOWN, "cannot be told: another image was flashed over it before the reset"
    return Outcome.FAILED, f"the card should have come up from its factory page, but {landing.truth}"


def _collateral(operation: Operation) -> str:
    """Return which root entry hash or cancellation changed although the image is not for that."""
    before, after = operation.before, operation.after
    if before is None or after is None or operation.overlapped:
        return ""
    old_values, new_values = before.values, after.values
    for name in _SECURITY_FIELDS:
        old, new = old_values.get(name), new_values.get(name)
        if old == new or old is None or new is None or name == _own_field(operation):
            continue
        if not isinstance(old, Unknown) and not isinstance(new, Unknown):
            return f"{name} changed from {show(name, old)} to {show(name, new)}"
    return ""


def _own_field(operation: Operation) -> str | None:
    """Return the root entry hash or cancellation that an image of this kind is meant to change."""
    section = (word(operation.image, "section") or "SR").lower()
    fields = {"root-key": f"{section}_root", "key-cancellation": f"{section}_cancelled"}
    return fields.get(word(operation.image, "effect"))


def check_flash_claims(operation: Operation, landing: Landing) -> Iterator[Verdict]:
    """Hold what the tools said about a flash to whether it landed."""
    for claim in operation.claims:
        kind = _verdict_on(claim, landing)
        yield Verdict(
            kind,
            "flash",
            claim.reporter,
            claim.subject,
            _claimed(claim, operation),
            landing.truth,
            landing.how_read,
            operation.intent.seq,
            (claim.seq, *landing.records),
        )


def _verdict_on(claim: Claim, landing: Landing) -> VerdictKind:
    result = claim.statement.get("result")
    landed, attempted = landing.landed, landing.attempted
    if isinstance(landed, Unknown):
        return VerdictKind.UNVERIFIABLE
    if result == "done":
        return VerdictKind.MATCH if landed else VerdictKind.FALSE_SUCCESS
    if landed:
        return VerdictKind.FALSE_FAILURE
    if result == "not-sent":
        if isinstance(attempted, Unknown):
            return VerdictKind.UNVERIFIABLE
        return VerdictKind.MISREPORT if attempted else VerdictKind.MATCH
    if attempted is True or _gave_up_preparing(claim):
        return VerdictKind.MATCH
    return VerdictKind.UNVERIFIABLE if isinstance(attempted, Unknown) else VerdictKind.NOT_ATTEMPTED


def _gave_up_preparing(claim: Claim) -> bool:
    """Whether the claim itself says that it ended before the card erased anything, as for wear-out."""
    error = word(claim.statement, "error")
    phase = error.split(":", 1)[0] if ":" in error else word(claim.statement, "phase")
    return phase == "preparing"


def _claimed(claim: Claim, operation: Operation) -> str:
    result, error = word(claim.statement, "result"), word(claim.statement, "error")
    words = _WORDS.get(result, "flashing {image}: {result}").format(image=operation.image_name, result=result)
    code = claim.evidence.exit_code
    details = [error] if error else []
    details += [f"exit {code}"] if code is not None else []
    return f"{words} ({', '.join(details)})" if details else words


def _seqs(*observations: Observation | None) -> tuple[int, ...]:
    return tuple(observation.seq for observation in observations if observation is not None)

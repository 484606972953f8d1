"""Did a system do what was asked of it: take, apply and remove images, write them, boot its hosts?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from harness.judgement.checkers.holding import AFTER_RESET, active_holding, holding_of
from harness.judgement.checkers.image_state import written_over
from harness.judgement.checkers.resets import last_seen
from harness.judgement.checkers.standing import status_of
from harness.judgement.checkers.update_steps import out_of_order, retimers_due, rivals_owed, written
from harness.judgement.grouping import Operation, field_of, word
from harness.judgement.model import Outcome, OutcomeOf, worst_outcome
from harness.judgement.system_story import BOOTS, Look, SystemStory, Word
from harness.judgement.values import Unknown

#: What changes something in a system; anything else is only a question.
CHANGES: Final = frozenset(
    {
        "image-upload", "image-apply", "image-remove", "image-delete", "label-assign", "label-remove",
        "device-modify", "host-update", "host-abort", "host-lock", "host-unlock", "host-reboot",
        "strategy-create", "strategy-apply", "strategy-abort", "strategy-delete",
    }
)  # fmt: skip
_OWED: Final = ("pending", "failed")
#: What a refusal is where the scenario says what the system must do with an act (``promise``).
_REFUSED: Final = {"refused": Outcome.AS_INTENDED, "taken": Outcome.BREACH}
_PROMISED: Final = "of it documents promise that"


class _Told(NamedTuple):
    outcome: Outcome
    reason: str
    records: tuple[int, ...] = ()


def act_outcome(story: SystemStory, operation: Operation) -> OutcomeOf:
    """Return how a change of a system turned out (the rules are in docs/verdicts.md)."""
    intent, done = operation.intent, operation.completion
    promise = word(intent.parameters, "promise")
    if done is None or done.how in ("timed-out", "never"):
        told = _Told(Outcome.UNKNOWN, "it did not return")
    elif done.how == "raised" and intent.operation in BOOTS and done.error.get("kind") != "device":
        told = _boot(story, operation)  # a controller that boots itself breaks the link that it was told by
    elif done.how == "raised":
        refused = done.error.get("kind") == "device"
        outcome = _REFUSED.get(promise, Outcome.FAILED) if refused else Outcome.UNKNOWN
        told = _Told(outcome, done.error.get("message", ""))
    elif promise == "refused":
        told = _Told(Outcome.BREACH, "the system took it, and must refuse it")
    elif intent.operation == "host-update":
        told = _update(story, operation)
    elif intent.operation in BOOTS:
        told = _boot(story, operation)
    elif intent.operation == "strategy-apply":
        told = _Told(Outcome.UNKNOWN, "its subclouds were not looked at after it")
    else:
        told = _Told(Outcome.AS_INTENDED, "the system took it")
    seqs = (intent.seq, *((done.seq,) if done is not None else ()), *told.records)
    return OutcomeOf(told.outcome, intent.seq, intent.subject, told.reason, seqs)


def _boot(story: SystemStory, operation: Operation) -> _Told:
    """A host that was unlocked must be in service in the next look."""
    hostname, unlock = operation.intent.parameters.get("target"), operation.intent.operation == "host-unlock"
    look = _after(story, operation.intent.seq)
    hosts = [c for c in look.said["host"] if c.statement.get("hostname") == hostname] if look else []
    if not hosts:
        return _Told(Outcome.UNKNOWN, "the host was not looked for after it")
    said = hosts[0].statement
    words = f"{said.get('administrative')} {said.get('operational')} {said.get('availability')}"
    up = words == "unlocked enabled available" or not unlock
    return _Told(Outcome.AS_INTENDED if up else Outcome.FAILED, f"{hostname} is {words}", (hosts[0].seq,))


def _update(story: SystemStory, operation: Operation) -> _Told:
    """Every image that was owed must have come to its promise, and none may follow a failed root key."""
    seq, hostname = operation.intent.seq, operation.intent.parameters.get("target")
    before = _before(story, seq)
    after = next((look for look in story.whole_looks if look.seq > seq and not written(look, hostname)), None)
    if before is None or after is None:
        return _Told(Outcome.UNKNOWN, "states and cards were not looked at on both sides of it")
    end = next((c.seq for c in story.changes if c.operation == "host-update" and c.seq > seq), None)
    words = story.words()
    owed = {
        (before.card_at(hostname, claim.statement.get("address")), word(claim.statement, "image_uuid"))
        for claim in before.states_of(hostname)
        if claim.statement.get("status") in _OWED
    }
    owed = {(card, image) for card, image in owed if not _is_withdrawn(story, image, seq, after)}
    found = [_image(story, words, key, seq, after, end) for key in sorted(owed)]
    found += _after_failed_root_key(story, owed, before, after)
    found += [
        _Told(Outcome.BREACH, reason, records)
        for reason, records in (
            *out_of_order(story, hostname, seq, end),
            *rivals_owed(story, before, owed),
            *retimers_due(story, hostname, before, after, owed),
        )
    ]
    if not found:
        return _Told(Outcome.AS_INTENDED, "nothing was owed")
    worst = worst_outcome([each.outcome for each in found])
    return next(each for each in found if each.outcome is worst)


def _is_withdrawn(story: SystemStory, image: str, seq: int, after: Look) -> bool:
    """Whether an image was taken back while it was written, or may have been: no answer came."""
    return any(
        seq < change.seq < after.seq
        and change.operation in ("image-remove", "image-delete")
        and change.parameters.get("target") == image
        and change.seq not in story.declined
        for change in story.changes
    )


def _image(
    story: SystemStory,
    words: Mapping[tuple[str, str], list[Word]],
    key: tuple[str, str],
    seq: int,
    after: Look,
    end: int | None,
) -> _Told:
    card, image = key
    name = f"{story.image_name(image)} on {card}"
    last = [each for each in words.get(key, []) if each.claim.seq > seq and (not end or each.claim.seq < end)]
    if not card or not last:
        return _Told(Outcome.UNKNOWN, f"nothing was said of {name} after it")
    until = written_over(story, words, last[-1], seq)
    held = active_holding(story, card, image, seq, after, until)
    promise = word(story.images.get(image, {}), "promise") or "lands"
    if isinstance(held.holds, Unknown):
        return _Told(Outcome.UNKNOWN, f"{name}: {held.truth}", held.records)
    if promise == "unchanged":
        changed = held.holds and not _held_before(story, card, image, seq)
        outcome = Outcome.BREACH if changed else Outcome.AS_INTENDED
    else:
        outcome = Outcome.AS_INTENDED if held.holds else Outcome.FAILED
    return _Told(outcome, f"{name}: {held.truth}; {_PROMISED} it {promise}", held.records)


def _held_before(story: SystemStory, card: str, image: str, seq: int) -> bool:
    """Whether a card already showed the root entry hash or the cancellation of an image when it was asked."""
    facts, seen = story.facts(image), last_seen(story, card, seq)
    if seen is None or word(facts, "effect") in AFTER_RESET:
        return False
    return holding_of(facts, seen).holds is True


def _after_failed_root_key(
    story: SystemStory, owed: set[tuple[str, str]], before: Look, after: Look
) -> Iterator[_Told]:
    """A card whose root key failed must not be given the images of the same update (section 4.7)."""
    for card, image in sorted(owed):
        if word(story.facts(image), "effect") != "root-key" or status_of(after, card, image) != "failed":
            continue
        written = [
            other
            for of_card, other in sorted(owed)
            if of_card == card and other != image and status_of(after, card, other) not in ("pending", "")
        ]
        counts: list[Any] = [field_of(look.cards.get(card), "flash_count") for look in (before, after)]
        if written:
            names = ", ".join(story.image_name(other) for other in written)
            yield _Told(
                Outcome.BREACH,
                f"{names} was begun on {card} (flash count {counts[0]} -> {counts[1]}) after "
                f"{story.image_name(image)} had failed there",
                (before.seq, after.seq),
            )


def _before(story: SystemStory, seq: int) -> Look | None:
    return next((look for look in reversed(story.whole_looks) if look.seq < seq), None)


def _after(story: SystemStory, seq: int) -> Look | None:
    return next((look for look in story.whole_looks if look.seq > seq), None)

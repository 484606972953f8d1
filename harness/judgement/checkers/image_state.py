"""Is what a system says of an image on a card (pending, in-progress, completed, failed) true of the card?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from harness.judgement.checkers.holding import Holding, active_holding, holding_of, looks_at
from harness.judgement.checkers.resets import last_seen, ordered_before
from harness.judgement.grouping import field_of, source_of, word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Subject
from harness.judgement.system_story import SystemStory, Word, moment_of
from harness.judgement.values import Unknown

REPORTER: Final = "sysinv-image-state"
#: Lab seconds after which the word of an agent that is done must have been taken: it is told at once
#: (section 3.2), and a look may fall in between.
REPORT_SECONDS: Final = 60.0
_WRITTEN: Final = ("in-progress", "completed")

Words = Mapping[tuple[str, str], Sequence[Word]]


def check_image_states(story: SystemStory, *, ended: bool) -> Iterator[Verdict]:
    """Yield one verdict on each statement on an image on a card.

    :param ended: whether the scenario came to its end, so that silence means something.
    """
    words = story.words()
    for (card, _), said in words.items():
        for index, each in enumerate(said):
            if card:
                yield _verdict(story, words, said, index, ended=ended)
            else:
                yield _of_no_card(story, each)
    yield from _twice(story)


def _of_no_card(story: SystemStory, each: Word) -> Verdict:
    where = f"{each.claim.statement.get('hostname')} {each.claim.statement.get('address')}"
    truth = f"no card of the inventory was seen at {where}"
    return _told(story, each, VerdictKind.UNVERIFIABLE, Holding(Unknown(truth), truth, "the cards", ()))


def _verdict(story: SystemStory, words: Words, said: Sequence[Word], index: int, *, ended: bool) -> Verdict:
    each = said[index]
    if not each.image:
        why = "a state is one of an image, and this is of none"
        return _told(story, each, VerdictKind.MISREPORT, Holding(Unknown(why), why, "the documents", ()))
    if each.status == "completed":
        return _on_completed(story, words, said, index)
    if each.status == "failed":
        return _on_failed(story, words, said, index)
    if each.status == "in-progress":
        return _on_progress(story, said, index, ended=ended)
    if each.status == "pending":
        return _on_pending(story, said, index)
    why = f"there is no status {each.status!r}"
    return _told(story, each, VerdictKind.MISREPORT, Holding(Unknown(why), why, "the documents", ()))


def _on_completed(story: SystemStory, words: Words, said: Sequence[Word], index: int) -> Verdict:
    each = said[index]
    since = _streak(said, index)
    until = written_over(story, words, each, since)
    found = active_holding(story, each.card, each.image, since, each.look, until)
    if isinstance(found.holds, Unknown):
        if until is not None:
            found = found._replace(truth=f"another image was written over it meanwhile; {found.truth}")
        return _told(story, each, VerdictKind.UNVERIFIABLE, found)
    return _told(story, each, VerdictKind.MATCH if found.holds else VerdictKind.FALSE_SUCCESS, found)


def _on_failed(story: SystemStory, words: Words, said: Sequence[Word], index: int) -> Verdict:
    each = said[index]
    since = _begun(said, index)
    until = written_over(story, words, each, since)
    last_try = max(since, ordered_before(story, each.claim.seq))
    found = active_holding(story, each.card, each.image, last_try, each.look, until)
    tried, count = _tried(story, words, each, since)
    before = last_seen(story, each.card, since)
    held = holding_of(story.facts(each.image), before).holds if before is not None else Unknown("not read")
    found = found._replace(truth=f"{found.truth}; {count}")
    if found.holds is True and held is not True:
        return _told(story, each, VerdictKind.FALSE_FAILURE, found)
    if isinstance(tried, Unknown):
        return _told(story, each, VerdictKind.UNVERIFIABLE, found)
    return _told(story, each, VerdictKind.MATCH if tried else VerdictKind.NOT_ATTEMPTED, found)


def _tried(story: SystemStory, words: Words, each: Word, since: int) -> tuple[bool | Unknown, str]:
    """Return whether the card erased its staging area for an image, and the counts that show it."""
    earlier = last_seen(story, each.card, since)
    before = field_of(earlier, "flash_count")
    seen = looks_at(story, each.card, each.look)
    after = field_of(seen[0] if seen else None, "flash_count")
    count = f"flash count {before} -> {after}"
    if isinstance(before, Unknown) or isinstance(after, Unknown):
        return Unknown(count), count
    others = sum(
        other.status == "completed"
        and (earlier.seq if earlier else since) < _streak(said, number) < (seen[0].seq if seen else since)
        and _streak(said, number) == other.claim.seq
        for (card, image), said in words.items()
        if card == each.card and image != each.image
        for number, other in enumerate(said)
    )
    return after - before > others, count + (f", {others} of it for other images" if others else "")


def _on_progress(story: SystemStory, said: Sequence[Word], index: int, *, ended: bool) -> Verdict:
    each = said[index]
    seen = each.look.cards.get(each.card)
    status = field_of(seen, "update_status")
    begun = next(word.claim for word in said if word.claim.seq == _streak(said, index))
    for_seconds = moment_of(each.claim) - moment_of(begun)
    if isinstance(status, Unknown):
        found = Holding(status, f"whether the card is being written is {status}", "nothing", ())
        return _told(story, each, VerdictKind.UNVERIFIABLE, found)
    truth = f"the card's update interface is {status}, {for_seconds:.0f} s after it was first said"
    found = Holding(status == "idle", truth, source_of(seen, "update_status"), (seen.seq if seen else 0,))
    if status != "idle" or for_seconds <= REPORT_SECONDS:
        return _told(story, each, VerdictKind.MATCH, found)
    last = ended and index == len(said) - 1
    return _told(story, each, VerdictKind.LOST if last else VerdictKind.STALE, found)


def _on_pending(story: SystemStory, said: Sequence[Word], index: int) -> Verdict:
    each = said[index]
    earlier = said[index - 1] if index else None
    if earlier is None or earlier.status != "completed" or _removed(story, earlier, each):
        truth = "nothing was written for it yet, or it is to be written again"
        return _told(story, each, VerdictKind.MATCH, Holding(True, truth, "the system's own order", ()))
    truth = "it was completed before, and nobody took it away"
    return _told(story, each, VerdictKind.MISREPORT, Holding(True, truth, "what it said before", ()))


def _removed(story: SystemStory, earlier: Word, later: Word) -> bool:
    return any(
        earlier.claim.seq < change.seq < later.claim.seq
        and change.operation in ("image-remove", "label-remove", "image-delete")
        for change in story.changes
    )


def _twice(story: SystemStory) -> Iterator[Verdict]:
    """One image that is said twice of one card."""
    for look in story.looks:
        seen: dict[tuple[str, ...], int] = {}
        for claim in look.said["state"]:
            said = claim.statement
            key = tuple(word(said, name) for name in ("hostname", "address", "image_uuid"))
            if key in seen and all(key):
                yield Verdict(
                    VerdictKind.MISREPORT,
                    "image-state",
                    REPORTER,
                    claim.subject,
                    f"{story.image_name(word(said, 'image_uuid'))} is {word(said, 'status')}, once more",
                    "a device has an image once",
                    "the same list",
                    claim.intent,
                    (seen[key], claim.seq),
                )
            seen[key] = claim.seq


def _streak(said: Sequence[Word], index: int) -> int:
    """Return the first record since which the same status was said, in each look since then."""
    while (
        index
        and said[index - 1].status == said[index].status
        and said[index].number - said[index - 1].number <= 1
    ):
        index -= 1
    return said[index].claim.seq


def _begun(said: Sequence[Word], index: int) -> int:
    """Return the record since which what ended so was under way: from the last that was pending."""
    while index and said[index - 1].status in (said[index].status, "in-progress"):
        index -= 1
    return said[index].claim.seq


def written_over(story: SystemStory, words: Words, each: Word, since: int) -> int | None:
    """Return the first record after ``since`` by which another image of the same effect is written there."""
    effect = word(story.facts(each.image), "effect")
    found = [
        other.claim.seq
        for (card, image), said in words.items()
        if card == each.card and image != each.image and word(story.facts(image), "effect") == effect
        for number, other in enumerate(said)
        if other.status in _WRITTEN and _streak(said, number) > since
    ]
    return min(found, default=None)


def _told(story: SystemStory, each: Word, kind: VerdictKind, found: Holding) -> Verdict:
    claim = each.claim
    subject = Subject("record", claim.subject.name, claim.subject.host, claim.subject.address)
    return Verdict(
        kind,
        "image-state",
        REPORTER,
        subject,
        f"{story.image_name(each.image)} is {each.status} on {each.card or 'a device'}",
        found.truth,
        found.how_read,
        claim.intent,
        (claim.seq, *found.records),
    )

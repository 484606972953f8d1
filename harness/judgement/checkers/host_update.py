"""Does what a system says of a host's update and its need to reboot agree with states and cards?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from harness.judgement.checkers.holding import AFTER_RESET, holding_of
from harness.judgement.checkers.resets import is_reset_between, resets_after
from harness.judgement.grouping import word
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim
from harness.judgement.system_story import Look, SystemStory, moment_of, shown
from harness.judgement.values import Unknown

REPORTER: Final = "sysinv-host"
#: Lab seconds from one audit of the conductor to the next (section 4.7).
AUDIT_SECONDS: Final = 300.0
_BUSY: Final = ("in-progress", "in-progress-aborted")
_OWED: Final = ("pending", "failed")


class _Finding(NamedTuple):
    kind: VerdictKind
    claimed: str
    truth: str
    records: tuple[int, ...] = ()


def check_hosts(story: SystemStory) -> Iterator[Verdict]:
    """Yield verdicts on each host in each look."""
    looks = story.whole_looks
    for number, look in enumerate(looks):
        for claim in look.said["host"]:
            earlier = looks[:number]
            found = [_update(look, claim, earlier)]
            if (reboot := _reboot(story, look, claim, earlier)) is not None:
                found.append(reboot)
            for each in found:
                yield Verdict(
                    each.kind,
                    "host-update",
                    REPORTER,
                    claim.subject,
                    each.claimed,
                    each.truth,
                    "the states of its devices in the same look, and its cards",
                    claim.intent,
                    (claim.seq, *each.records),
                )


def _update(look: Look, claim: Claim, earlier: list[Look]) -> _Finding:
    value = claim.statement.get("device_image_update")
    states = look.states_of(claim.statement.get("hostname"))
    statuses = [word(state.statement, "status") for state in states]
    claimed = f"device_image_update of {claim.statement.get('hostname')} is {shown(value)}"
    truth = f"the images of its devices are {', '.join(statuses) or 'none'}"
    records = tuple(state.seq for state in states)
    if isinstance(value, Unknown):
        return _Finding(VerdictKind.UNVERIFIABLE, claimed, truth, records)
    kind = VerdictKind.MATCH
    if value in (None, "", "completed"):
        if "failed" in statuses:
            kind = VerdictKind.FALSE_SUCCESS
        elif "pending" in statuses or "in-progress" in statuses:
            kind = VerdictKind.CONTRADICTION
    elif value in _OWED:
        if not any(status in _OWED for status in statuses):
            kind = VerdictKind.STALE
    elif (
        value in _BUSY
        and "in-progress" not in statuses
        and (since := _busy_since(claim, earlier)) is not None
    ):
        lasts = moment_of(claim) - since
        truth += f", and it is said for {lasts:.0f} s"
        if lasts >= AUDIT_SECONDS:
            silent = not statuses or "pending" in statuses  # the update was taken, and nothing comes of it
            kind = VerdictKind.LOST if silent else VerdictKind.STALE
    return _Finding(kind, claimed, truth, records)


def _busy_since(claim: Claim, earlier: list[Look]) -> float | None:
    """Return since when a host is said to be busy in every look in which nothing is in progress on it."""
    since = None
    hostname = claim.statement.get("hostname")
    for look in reversed(earlier):
        said = _of(look, hostname)
        busy = said is not None and said.statement.get("device_image_update") in _BUSY
        if not busy or any(word(s.statement, "status") == "in-progress" for s in look.states_of(hostname)):
            break
        since = look.moment
    return since


def _of(look: Look, hostname: object) -> Claim | None:
    return next((c for c in look.said["host"] if c.statement.get("hostname") == hostname), None)


def _reboot(story: SystemStory, look: Look, claim: Claim, earlier: list[Look]) -> _Finding | None:
    """Hold ``reboot_needed`` to the cards: what is completed there, and what they run (section 3.4)."""
    needed, hostname = claim.statement.get("reboot_needed"), claim.statement.get("hostname")
    if not isinstance(needed, bool):
        return None
    claimed = f"reboot_needed of {hostname} is {needed}"
    waiting = _inactive(story, look, hostname)
    if not needed:
        if waiting:
            truth = f"{', '.join(waiting)} is completed and runs only after a reset"
            return _Finding(VerdictKind.FALSE_SUCCESS, claimed, truth)
        return _Finding(VerdictKind.MATCH, claimed, "no completed image waits for a reset")
    before = earlier[-1] if earlier else None
    if before is None or waiting:
        return _Finding(VerdictKind.MATCH, claimed, f"{', '.join(waiting) or 'an image'} was completed")
    said = _of(before, hostname)
    booted = [
        card
        for card, seen in look.cards.items()
        if seen.values.get("hostname") == hostname and is_reset_between(before.cards.get(card), seen) is True
    ]
    again = any(change.operation == "host-update" for change in story.changes_between(before, look))
    if booted and not again and said is not None and said.statement.get("reboot_needed") is True:
        return _Finding(VerdictKind.STALE, claimed, f"the host was booted since the last look: {booted[0]}")
    return _Finding(VerdictKind.MATCH, claimed, "an image was completed since the host booted")


def _inactive(story: SystemStory, look: Look, hostname: object) -> list[str]:
    """Return the images that were completed on the host's cards since they were reset, and are not active."""
    found = []
    for state in look.states_of(hostname):
        image = word(state.statement, "image_uuid")
        card = look.card_at(hostname, state.statement.get("address"))
        facts = story.facts(image)
        if state.statement.get("status") != "completed" or not card:
            continue
        if word(facts, "effect") not in AFTER_RESET or holding_of(facts, look.cards[card]).holds is not False:
            continue
        resets = resets_after(story, card, _completed_since(story, card, image))
        if resets.by(look.cards[card]) is False:
            found.append(story.image_name(image))
    return found


def _completed_since(story: SystemStory, card: str, image: str) -> int:
    said = story.words().get((card, image), [])
    return next((each.claim.seq for each in said if each.status == "completed"), 0)

"""Is what `host-device-show` says of a card what the card shows, now or within the bound?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from harness.judgement.checkers.resets import is_reset_between
from harness.judgement.grouping import NOT_OBSERVED, field_of, show, source_of
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Claim, Observation
from harness.judgement.system_story import Look, SystemStory, shown
from harness.judgement.values import NOT_EXPOSED, Unknown

REPORTER: Final = "sysinv-device"
#: Field of the system -> field of the card (section 3.1).
FIELDS: Final = {
    "bitstream_id": "bitstream_id",
    "root_key": "sr_root",
    "revoked_key_ids": "sr_cancelled",
    "boot_page": "boot_page",
    "bmc_build_version": "bmc_version",
    "bmc_fw_version": "bmcfw_version",
    "retimer_a_version": "retimer_a_version",
    "retimer_b_version": "retimer_b_version",
}
#: Fields whose empty text is a legal value: no root key is programmed, no key is revoked.
_MAY_BE_EMPTY: Final = ("root_key", "revoked_key_ids")
#: Lab seconds within which a report of the agent follows its start, or a change: two of its audits and
#: the boot; that it reports a card once in its life (section 3.1) is no bound.
INVENTORY_SECONDS: Final = 180.0


def check_device_fields(story: SystemStory) -> Iterator[Verdict]:
    """Yield one verdict on each field that is not the card's, and one MATCH for all that are, per look."""
    looks = story.whole_looks
    for number, look in enumerate(looks):
        for claim in look.said["device"]:
            card = look.card_at(claim.statement.get("hostname"), claim.statement.get("address"))
            if card:
                yield from _of_card(looks[: number + 1], card, claim)
            elif (gone := _moved(looks[:number], look, claim)) is not None:
                yield gone


def compared(looks: list[Look], card: str, claim: Claim) -> Iterator[tuple[str, VerdictKind, str]]:
    """Yield each field that is claimed of a card, the verdict on it, and what explains that.

    :param looks: all up to the one that the claim is part of.
    """
    for name in FIELDS:
        if name in claim.statement:
            kind, why = _verdict_on(looks, card, name, claim.statement[name])
            if kind is not None:
                yield name, kind, why


def _of_card(looks: list[Look], card: str, claim: Claim) -> Iterator[Verdict]:
    seen = looks[-1].cards[card]
    matching = []
    for name, kind, why in compared(looks, card, claim):
        of_card = FIELDS[name]
        if kind is VerdictKind.MATCH:
            matching.append(name)
        else:
            truth = f"{of_card} of the card is {show(of_card, field_of(seen, of_card))}{why}"
            yield _verdict(kind, claim, f"{name} is {shown(claim.statement[name])}", truth, seen, of_card)
    if matching:
        told = f"{', '.join(matching)} are as it shows them"
        yield _verdict(VerdictKind.MATCH, claim, told, "the card shows the same", seen, "bitstream_id")


def _verdict_on(looks: list[Look], card: str, name: str, claimed: Any) -> tuple[VerdictKind | None, str]:
    """Return the verdict on a field (None: nothing is claimed of it) and what explains it."""
    truth = field_of(looks[-1].cards[card], FIELDS[name])
    empty = claimed is None or (claimed == "" and name not in _MAY_BE_EMPTY)
    if isinstance(claimed, Unknown) or truth in (NOT_EXPOSED, NOT_OBSERVED):
        return None, ""
    if isinstance(truth, Unknown):
        nothing = claimed is None or claimed == ""
        return (VerdictKind.UNKNOWN_AS_VALUE if nothing else VerdictKind.UNVERIFIABLE), ""
    if _same(name, claimed, truth):
        return VerdictKind.MATCH, ""
    if claimed is None:
        due = _lasts(looks, card, lambda seen: True)
        if due >= INVENTORY_SECONDS:
            return VerdictKind.LOST, f", and nobody has reported it for {due:.0f} s"
        return VerdictKind.UNVERIFIABLE, "; the first report of the agent is not due yet"
    if empty:
        return VerdictKind.UNKNOWN_AS_VALUE, ", and an empty text is no value of it"
    was = [look for look in looks[:-1] if card in look.cards]
    if not any(_same(name, claimed, field_of(look.cards[card], FIELDS[name])) for look in was):
        return VerdictKind.MISREPORT, ""
    late = _lasts(
        looks, card, lambda seen: not _same(name, claimed, field_of(seen, FIELDS[name])), boots=True
    )
    if late < INVENTORY_SECONDS:
        return VerdictKind.MATCH, ""
    return (
        VerdictKind.STALE,
        f" for at least {late:.0f} s, more than the {INVENTORY_SECONDS:.0f} s of its bound",
    )


def _lasts(looks: list[Look], card: str, so: Any, *, boots: bool = False) -> float:
    """Return for how many lab seconds a card was seen to be ``so``, back from the last look.

    :param boots: also across a boot of its host; else since the last one at most.
    """
    last = looks[-1]
    since = last.moment
    for look in reversed(looks[:-1]):
        seen = look.cards.get(card)
        if (
            seen is None
            or not so(seen)
            or (not boots and is_reset_between(seen, last.cards[card]) is not False)
        ):
            break
        since = look.moment
    return last.moment - since


def _same(name: str, claimed: Any, truth: Any) -> bool:
    """Whether two values are the same but for their spelling."""
    if isinstance(truth, Unknown) or claimed is None:
        return False
    text = str(claimed).strip().lower()
    if name == "bitstream_id":
        return bool(re.fullmatch("(0x)?[0-9a-f]+", text)) and int(text, 16) == truth
    if name == "revoked_key_ids":
        return _ids(text) == frozenset(truth)
    return text.removeprefix("0x") == str(truth).strip().lower().removeprefix("0x")


def _ids(text: str) -> frozenset[int] | None:
    """Return the ids of a list such as ``0-2,5``; None for what is none. Bounded: a card has 128 of them."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"\s*([0-9]{1,3})(?:-([0-9]{1,3}))?\s*", part)
        if match is None:
            return None
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)


def _moved(earlier: list[Look], look: Look, claim: Claim) -> Verdict | None:
    """Return the verdict on a device that stands where no card is any more; None where none ever was."""
    hostname, address = claim.statement.get("hostname"), claim.statement.get("address")
    for before in reversed(earlier):
        card = before.card_at(hostname, address)
        seen = look.cards.get(card)
        if card and seen is not None:
            truth = (
                f"the card with the identity {field_of(seen, 'identity')} is at {field_of(seen, 'address')}"
            )
            return _verdict(VerdictKind.STALE, claim, f"{card} is at {address}", truth, seen, "identity")
    return None


def _verdict(
    kind: VerdictKind, claim: Claim, claimed: str, truth: str, seen: Observation, name: str
) -> Verdict:
    return Verdict(
        kind,
        "device-fields",
        REPORTER,
        claim.subject,
        claimed,
        truth,
        source_of(seen, name),
        claim.intent,
        (claim.seq, seen.seq),
    )

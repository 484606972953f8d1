"""What a system says of each of its cards, what the card shows, and the verdict: pure, from records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.judgement.checkers.applied import check_applied
from harness.judgement.checkers.device_fields import FIELDS, compared
from harness.judgement.checkers.host_update import check_hosts
from harness.judgement.checkers.image_state import check_image_states
from harness.judgement.checkers.kept_states import check_kept_states
from harness.judgement.checkers.update_alarm import check_update_alarm
from harness.judgement.grouping import field_of, show
from harness.judgement.model import Verdict, VerdictKind
from harness.judgement.records import Record
from harness.judgement.system_story import Look, SystemStory, shown, stories_of


@dataclass(frozen=True, slots=True)
class Row:
    """One statement beside the truth. ``device``: ``host/card``, or the system's name."""

    device: str
    what: str
    said: str
    truth: str
    verdict: VerdictKind


def side_by_side(records: Iterable[Record]) -> list[Row]:
    """Return what the last look at each system shows, card by card; what concerns no card comes last."""
    rows: list[Row] = []
    for story in stories_of(records):
        if story.whole_looks:
            rows += _rows(story, story.whole_looks[-1])
    return rows


def _rows(story: SystemStory, look: Look) -> Iterator[Row]:
    verdicts = [
        *check_image_states(story, ended=False),
        *check_kept_states(story),
        *check_hosts(story),
        *check_applied(story),
        *check_update_alarm(story),
    ]
    last = [verdict for verdict in verdicts if max(verdict.records, default=0) >= look.seq]
    for card in look.cards:
        yield from _fields(story, look, card)
        yield from (_row(card, "image", v) for v in last if _card(look, v) == card)
    yield from (_row(story.name, _WHAT[v.checker], v) for v in last if v.checker in _WHAT)


#: What the verdicts of a checker are about that are not about one card.
_WHAT = {"host-update": "host", "applied": "image", "update-alarm": "alarm"}


def _card(look: Look, verdict: Verdict) -> str:
    subject = verdict.subject
    return look.card_at(subject.host, subject.address) if subject.address else ""


def _row(device: str, what: str, verdict: Verdict) -> Row:
    return Row(device, what, verdict.claimed, verdict.truth, verdict.kind)


def _fields(story: SystemStory, look: Look, card: str) -> Iterator[Row]:
    looks = [each for each in story.whole_looks if each.seq <= look.seq]
    for claim in look.said["device"]:
        if look.card_at(claim.statement.get("hostname"), claim.statement.get("address")) != card:
            continue
        for name, kind, why in compared(looks, card, claim):
            said, of_card = claim.statement[name], FIELDS[name]
            truth = show(of_card, field_of(look.cards[card], of_card))
            yield Row(card, name, show(of_card, said) if said else shown(said), truth + why, kind)

"""What systems say of each card, what the card shows, and the verdict: pure, from records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.judgement.checkers.applied import check_applied
from harness.judgement.checkers.device_fields import FIELDS, compared
from harness.judgement.checkers.host_update import check_hosts
from harness.judgement.checkers.image_state import check_image_states
from harness.judgement.checkers.kept_states import check_kept_states
from harness.judgement.checkers.standing import holding_in, status_of
from harness.judgement.checkers.systems import check_cloud
from harness.judgement.checkers.update_alarm import check_update_alarm
from harness.judgement.cloud_story import CloudCard, CloudLook, CloudStory, clouds_of
from harness.judgement.grouping import field_of, show, word
from harness.judgement.labels import labels_of, told
from harness.judgement.model import Verdict, VerdictKind, worst_verdict
from harness.judgement.records import Claim, Record
from harness.judgement.system_story import Look, SystemStory, shown, stories_of

#: What a row is about that has all of one card, or of a subcloud without any: firmware as everyone has it.
FIRMWARE = "firmware"
#: What the verdicts of a checker are about that are not about one card.
_WHAT = {"host-update": "host", "applied": "image", "update-alarm": "alarm"}
_OF_CLOUD = {
    "sync-status": "sync",
    "across": "image",
    "orchestration": "strategy",
    "sync-alarm": "alarm",
    "vault": "upload",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One statement beside the truth. ``device``: ``host/card``, or the system's name. ``controller``: what
    the system controller above it says; empty where there is none, or where it says nothing of it."""

    device: str
    what: str
    said: str
    truth: str
    verdict: VerdictKind
    controller: str = ""

    @property
    def diverges(self) -> bool:
        """Whether what is said is known not to be so."""
        return self.verdict not in (VerdictKind.MATCH, VerdictKind.UNVERIFIABLE)


def side_by_side(records: Iterable[Record]) -> list[Row]:
    """Return what the last look at each system shows, in linear time.

    Of each card of a cloud comes first a row :data:`FIRMWARE`, whose verdict is the worst of all that
    concern the card; then, card by card, what each system says; what concerns no card comes last.
    """
    stories = stories_of(records)
    clouds = clouds_of(stories)
    rows = [row for cloud in clouds if cloud.looks for row in _of_cloud(cloud)]
    for story in stories:
        if story.whole_looks:
            rows += _rows(story, story.whole_looks[-1])
    worst: dict[str, list[VerdictKind]] = defaultdict(list)
    for row in rows:
        worst[row.device].append(row.verdict)
    overview = [row for cloud in clouds if cloud.looks for row in _overview(cloud, worst)]
    return overview + rows


def _rows(story: SystemStory, look: Look) -> Iterator[Row]:
    verdicts = [
        *check_image_states(story, ended=False),
        *check_kept_states(story),
        *check_hosts(story),
        *check_applied(story),
        *check_update_alarm(story),
    ]
    last = [verdict for verdict in verdicts if _is_of(look, verdict)]
    for card in look.cards:
        yield from _fields(story, look, card)
        yield from (_row(card, "image", v) for v in last if _card(look, v) == card)
    yield from (_row(story.name, _WHAT[v.checker], v) for v in last if v.checker in _WHAT)


def _is_of(look: Look, verdict: Verdict) -> bool:
    """Whether a verdict is on what was said in a look, or was missing in it.

    An image that was said to be written in an earlier one may be judged by what the card shows in this one.
    """
    records = verdict.records[:1] if verdict.checker == "image-state" else verdict.records
    return max(records, default=0) >= look.seq


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


# -- a cloud ----------------------------------------------------------------------------------------------


def _of_cloud(cloud: CloudStory) -> Iterator[Row]:
    """Yield what the controller says of subclouds and cards: a row for each verdict on its last look."""
    look = cloud.looks[-1]
    for verdict in check_cloud(cloud, ended=False):
        if verdict.records and verdict.records[0] >= look.own.seq:
            ours, theirs = verdict.claims or (verdict.claimed, "")
            what = _OF_CLOUD[verdict.checker]
            device = _device(cloud, look, verdict)
            yield Row(device, what, theirs, verdict.truth, verdict.kind, ours)


def _device(cloud: CloudStory, look: CloudLook, verdict: Verdict) -> str:
    """Return what a verdict is about: a card, a subcloud, or the controller."""
    subject = verdict.subject
    system, *about = subject.name.split("/")
    if system in look.subclouds:
        return _card(look.subclouds[system], verdict) or system
    if about[:1] in (["subcloud"], ["step"]):
        return about[-1]
    if about[:1] == ["alarm"]:
        return about[-1].removeprefix("subcloud=").removesuffix(".resource=firmware")
    return cloud.controller.name


def _overview(cloud: CloudStory, worst: Mapping[str, Sequence[VerdictKind]]) -> Iterator[Row]:
    look = cloud.looks[-1]
    for name, claim in look.said("subcloud").items():
        sync = shown(claim.statement.get("firmware_sync_status"))
        for card in look.cards.get(name, ()):
            verdict = worst_verdict([*worst[name], *worst[card.name]])
            listed = look.listed_for(card)
            ours = "; ".join([sync, *(f"{cloud.name_of(row)} applied" for row in listed)])
            theirs = "; ".join(_theirs(cloud, look, card)) or "no image"
            yield Row(card.name, FIRMWARE, theirs, _holds(cloud, look, card), verdict, ours)
        if not look.cards.get(name):
            yield Row(name, FIRMWARE, "not asked", "no card of it was read", VerdictKind.UNVERIFIABLE, sync)


def _theirs(cloud: CloudStory, look: CloudLook, card: CloudCard) -> Iterator[str]:
    own = look.subclouds[card.subcloud]
    for claim in own.said["image"]:
        status = status_of(own, card.name, word(claim.statement, "uuid"))
        labels = labels_of(claim)
        applied = "applied" if claim.statement.get("applied") is True else "not applied"
        where = f" to {told(labels)}" if labels else ""
        yield f"{cloud.name_of(claim)} {applied}{where}" + (f", {status}" if status else "")


def _holds(cloud: CloudStory, look: CloudLook, card: CloudCard) -> str:
    """Return what the card shows that it holds: images by their names, else what it runs."""
    rows: dict[str, Claim] = {}
    for claim in (*look.own.said["image"], *look.subclouds[card.subcloud].said["image"]):
        rows.setdefault(word(claim.statement, "uuid"), claim)
    held = [
        cloud.name_of(row) for uuid, row in rows.items() if holding_in(cloud, look, card, uuid).holds is True
    ]
    runs = f"bitstream_id {show('bitstream_id', field_of(card.seen, 'bitstream_id'))}"
    root = f"root key {show('sr_root', field_of(card.seen, 'sr_root'))}"
    images = ", ".join(held) or ("none of the images" if rows else "")
    return "; ".join(filter(None, (images, runs, root)))

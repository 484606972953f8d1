"""A distributed cloud, look by look: its system controller, its subclouds and their cards, at one moment."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.judgement.grouping import field_of, word
from harness.judgement.labels import EVERY, Label, carriers, given_labels, labels_of
from harness.judgement.records import Claim, Intent, Observation
from harness.judgement.system_story import Look, SystemStory
from harness.judgement.values import Unknown

#: Device id of the cards that images are for (fact sheet of StarlingX, section 1.6).
_UPDATABLE: Final = "0b30"


@dataclass(frozen=True, slots=True, eq=False)
class CloudCard:
    """A card of a subcloud in a look. ``labels``: those that it carries. ``lost``: those that it was given,
    that nobody took off it, and that its system does not know any more."""

    subcloud: str
    name: str
    seen: Observation
    labels: frozenset[Label]
    lost: frozenset[Label]

    @property
    def meant(self) -> frozenset[Label]:
        """The labels by which it is meant to get images."""
        return self.labels | self.lost

    @property
    def hostname(self) -> str:
        """Its host, as its system knows it."""
        return str(self.seen.values.get("hostname", ""))

    @property
    def address(self) -> str:
        """Where it is."""
        address = field_of(self.seen, "address")
        return "" if isinstance(address, Unknown) else str(address)


@dataclass(slots=True, eq=False)
class CloudLook:
    """What the system controller said, and with it what each subcloud said and its cards showed.

    ``strategy``: the record by which the last strategy before it was applied; 0 for none. ``unread``:
    subcloud -> how many of the cards that its system has were not read.
    """

    own: Look
    strategy: int = 0
    subclouds: dict[str, Look] = field(default_factory=dict)
    cards: dict[str, list[CloudCard]] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    _listed: dict[Label, list[Claim]] | None = None

    def join(self, subcloud: str, look: Look, given: Mapping[str, set[Label]]) -> None:
        """Take what a subcloud said and its cards showed. ``given``: the labels that they were given."""
        self.subclouds[subcloud] = look
        self.cards[subcloud] = _cards(subcloud, look, given)
        rows = look.said["device"]  # a list may be followed by each device of it
        devices = {row.subject.name for row in rows if row.statement.get("device_id") == _UPDATABLE}
        self.unread[subcloud] = max(0, len(devices) - len(look.cards))

    def said(self, kind: str) -> dict[str, Claim]:
        """Return the controller's rows of ``subcloud`` or ``step``, by the name of the subcloud."""
        return {claim.subject.name.rpartition("/")[2]: claim for claim in self.own.said[kind]}

    def listed_for(self, card: CloudCard) -> list[Claim]:
        """Return the controller's rows of images that it lists as applied to a label that the card is meant
        to carry, or to every device."""
        found = {
            claim.seq: claim for label in (EVERY, *card.meant) for claim in self._by_label().get(label, ())
        }
        return [found[seq] for seq in sorted(found)]

    def _by_label(self) -> dict[Label, list[Claim]]:
        if self._listed is None:
            self._listed = defaultdict(list)
            for claim in self.own.said["image"]:
                for label in labels_of(claim) or ():
                    self._listed[label].append(claim)
        return self._listed


class CloudStory:
    """The looks at a system controller and its subclouds in one scenario."""

    def __init__(self, controller: SystemStory, subclouds: Mapping[str, SystemStory]) -> None:
        self.controller = controller
        self.subclouds = subclouds
        strategies = [change.seq for change in self.changes("strategy-apply")]
        self.looks = [CloudLook(look, last_before(strategies, look.seq)) for look in controller.whole_looks]
        self._applied: dict[str, list[int]] = defaultdict(list)
        for change in self.changes("image-apply"):
            self._applied[str(change.parameters.get("target"))].append(change.seq)
        for name, story in subclouds.items():
            story.parent = controller
            self._join(name, story)

    def _join(self, name: str, story: SystemStory) -> None:
        """Give each look at the controller the look at a subcloud that is part of it, where that is whole.

        Where none says what it is part of, it is the nearest one to which no other look is nearer.
        """
        given = [labels for _, labels in zip(story.looks, given_labels(story), strict=True)]
        parts = {look.of: number for number, look in enumerate(story.looks) if look.of is not None}
        for cloud, at in self._nearest(story) if not parts else self._said(parts):
            if story.looks[at].whole:
                cloud.join(name, story.looks[at], given[at])

    def _said(self, parts: Mapping[int, int]) -> Iterator[tuple[CloudLook, int]]:
        """Yield each look with the number of the subcloud's that says to be part of it."""
        for cloud in self.looks:
            if cloud.own.seq in parts:
                yield cloud, parts[cloud.own.seq]

    def _nearest(self, story: SystemStory) -> Iterator[tuple[CloudLook, int]]:
        """Yield each look with the number of the subcloud's that is nearest to it and to no other look."""
        at = 0
        for number, cloud in enumerate(self.looks if story.looks else ()):
            while at + 1 < len(story.looks) and not _is_nearer(
                cloud.own, story.looks[at], story.looks[at + 1]
            ):
                at += 1
            others = self.looks[max(0, number - 1) : number + 2]
            if not any(_is_nearer(story.looks[at], other.own, cloud.own) for other in others):
                yield cloud, at

    # -- images ---------------------------------------------------------------------------------------

    def facts(self, image: str) -> Mapping[str, Any]:
        """Return the facts of an image's bytes; empty where nobody here has read them."""
        return self.controller.facts(image)

    def part_of(self, row: Claim) -> Any:
        """Return what tells the images of which a card holds one from others; None where it holds many."""
        if row.statement.get("bitstream_type") != "functional":
            return None
        return ("bmc", self.controller.is_bmc(word(row.statement, "uuid"), row.statement))

    def name_of(self, row: Claim) -> str:
        """Return what people call an image."""
        uuid = word(row.statement, "uuid")
        return word(self.facts(uuid), "name") or word(row.statement, "name") or uuid

    # -- what was asked of it ---------------------------------------------------------------------------

    def applied_before(self, image: str, seq: int) -> int:
        """Return the last record before another by which the controller applied an image; 0 for none."""
        return last_before(self._applied.get(image, []), seq)

    def changes(self, *operations: str, unanswered: bool = False) -> list[Intent]:
        """Return what was asked of the controller of these kinds and done, in order.

        :param unanswered: also that of which no answer came, which may have been done all the same.
        """
        without = self.controller.declined if unanswered else self.controller.not_returned
        return [
            change
            for change in self.controller.changes
            if change.operation in operations and change.seq not in without
        ]


def clouds_of(stories: Iterable[SystemStory]) -> list[CloudStory]:
    """Return the clouds among some systems: each that says something of subclouds, with those it names."""
    by_name = {story.name: story for story in stories}
    found = []
    for story in by_name.values():
        named = {
            claim.subject.name.rpartition("/")[2] for look in story.looks for claim in look.said["subcloud"]
        }
        if named:
            own = {name: by_name[name] for name in sorted(named) if name in by_name}
            found.append(CloudStory(story, own))
    return found


def last_before(seqs: Sequence[int], seq: int) -> int:
    """Return the last of some records before another; 0 for none."""
    number = bisect_left(seqs, seq)
    return seqs[number - 1] if number else 0


def _cards(subcloud: str, look: Look, given: Mapping[str, set[Label]]) -> list[CloudCard]:
    carried: dict[str, set[Label]] = defaultdict(set)
    for label, cards in carriers(look).items():
        for card in cards:
            carried[card].add(label)
    return [
        CloudCard(
            subcloud, name, seen, frozenset(carried[name]), frozenset(given.get(name, set()) - carried[name])
        )
        for name, seen in look.cards.items()
    ]


def _is_nearer(look: Look, one: Look, other: Look) -> bool:
    """Whether ``one`` was nearer to ``look`` than ``other`` was."""
    distances = [(abs(each.moment - look.moment), abs(each.seq - look.seq)) for each in (one, other)]
    return distances[0] < distances[1]

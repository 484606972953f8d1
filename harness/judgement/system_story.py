"""What a control plane said and what its cards showed, look by look, for the checkers of its statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from harness.judgement.grouping import field_of, listed, word
from harness.judgement.records import Claim, Completion, Fault, Intent, Observation, Record, Subject
from harness.judgement.values import Unknown

#: The operation that takes one: everything that a system says, and every card, while nothing is changed.
LOOK = "look"
#: The probe that reads what a host has to do with its cards.
HOST: Final = "host"
#: The probe that gets images from a controller as the agents of its hosts do.
DOWNLOAD: Final = "file-server"
#: Operations that boot a host, and faults that do.
BOOTS: Final = ("host-unlock", "host-reboot")
_POWER: Final = ("reboot", "power-cut")
#: Errors that tell of a change that it was not begun; after any other one it may have been.
_DECLINED: Final = ("device", "refused", "configuration")
#: Operations that bring a system to forget what it had said.
REMOVALS = ("image-remove", "image-delete", "image-apply", "label-remove")


@dataclass(slots=True, eq=False)
class Look:
    """Everything that a system said at one moment of lab time, and what its cards showed then.

    ``said``: kind of record (``image``, ``state``, ``label``, ``device``, ``host``, ``alarm``) -> its claims.
    ``cards``: card's name -> what was read from it; ``hosts``: hostname -> the same. ``asked``: the kinds
    that were asked for. ``refusal``: the system's words, where it refused to say one of them. ``of``: the
    look at its system controller that it is part of, where that is known.
    """

    seq: int
    system: str
    moment: float = 0.0
    whole: bool = False
    asked: tuple[str, ...] = ()
    said: dict[str, list[Claim]] = field(default_factory=lambda: defaultdict(list))
    cards: dict[str, Observation] = field(default_factory=dict)
    hosts: dict[str, Observation] = field(default_factory=dict)
    refusal: str = ""
    of: int | None = None

    def card_at(self, hostname: Any, address: Any) -> str:
        """Return the card that answered at a host's address in this look; empty where none did."""
        for name, seen in self.cards.items():
            if seen.values.get("hostname") == hostname and field_of(seen, "address") == address:
                return name
        return ""

    def states_of(self, hostname: Any) -> list[Claim]:
        """Return what was said of images on the devices of one host."""
        return [claim for claim in self.said["state"] if claim.statement.get("hostname") == hostname]


@dataclass(frozen=True, slots=True)
class Word:
    """One statement on an image on a card. ``look``: the one it belongs to, or the next one after it;
    ``number``: which of all looks that is."""

    claim: Claim
    card: str
    image: str
    status: str
    look: Look
    number: int = 0


class SystemStory:
    """The looks at one system of a scenario, and what was said between them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.looks: list[Look] = []
        self.changes: list[Intent] = []
        #: Image's uuid -> what it is, from its bytes.
        self.images: dict[str, Mapping[str, Any]] = {}
        #: What the controller's file server gave of images.
        self.downloads: list[Observation] = []
        #: What the system answered to each change: the intent -> the record that it spoke of.
        self.answers: dict[int, Claim] = {}
        #: The system controller that brings it images, by strategies of its own.
        self.parent: SystemStory | None = None
        #: Changes that did not return as they should.
        self.not_returned: set[int] = set()
        #: Those of them that were not begun: the system said no, or was not asked.
        self.declined: set[int] = set()
        #: Records by which a host of it was booted, or was to be.
        self.boots: list[int] = []
        #: What was said of images on devices, with the look that it is part of.
        self._words: list[tuple[Claim, Look | None]] = []
        self._open: Look | None = None

    # -- taking records -------------------------------------------------------------------------------

    def take(self, record: Record) -> None:
        """Take the next record of the system."""
        if isinstance(record, Intent):
            if record.operation == LOOK:
                of = record.parameters.get("of")
                self._open = Look(
                    record.seq,
                    self.name,
                    moment_of(record),
                    asked=tuple(listed(record.parameters, "asked")),
                    of=of if isinstance(of, int) else None,
                )
            else:
                self.changes.append(record)
                self.boots += [record.seq] if record.operation in BOOTS else []
        elif isinstance(record, Fault):
            self.boots += [record.seq] if record.action in _POWER and record.state == "fired" else []
        elif isinstance(record, Completion):
            if self._open is not None and record.intent == self._open.seq:
                self._open.whole = record.how == "returned"
                if record.error.get("kind") == "device":
                    self._open.refusal = record.error.get("message", "")
                self.looks.append(self._open)
                self._open = None
            elif record.how != "returned":
                self.not_returned.add(record.intent)
                if record.how == "raised" and record.error.get("kind") in _DECLINED:
                    self.declined.add(record.intent)
        elif isinstance(record, Claim):
            kind = kind_of(record)
            if record.intent is not None:
                self.answers.setdefault(record.intent, record)
            if self._open is not None:
                self._open.said[kind].append(record)
            if kind == "state":
                self._words.append((record, self._open))
        elif isinstance(record, Observation):
            self._take_observation(record)

    def _take_observation(self, record: Observation) -> None:
        image = record.subject.name.rpartition("/")[2]
        if record.probe == DOWNLOAD:
            self.downloads.append(record)
        if isinstance(record.values.get("image"), Mapping):
            if record.probe != DOWNLOAD or image not in self.images:  # what was uploaded is what an image is
                self.images[image] = record.values
        elif self._open is not None and record.probe == HOST:
            self._open.hosts[word(record.values, "hostname")] = record
        elif self._open is not None and record.subject.kind == "card":
            self._open.cards[record.subject.name] = record

    # -- asking ---------------------------------------------------------------------------------------

    @property
    def whole_looks(self) -> list[Look]:
        """The looks in which everything that was asked for was answered."""
        return [look for look in self.looks if look.whole]

    def pairs(self) -> Iterator[tuple[Look, Look]]:
        """Yield each whole look with the next one."""
        yield from pairwise(self.whole_looks)

    def changes_between(self, first: Look, second: Look) -> list[Intent]:
        """Return what was asked of the system between two looks."""
        return [change for change in self.changes if first.seq < change.seq < second.seq]

    def words(self) -> dict[tuple[str, str], list[Word]]:
        """Return all that was said of each image on each card, in order; by the card, not its address."""
        found: dict[tuple[str, str], list[Word]] = defaultdict(list)
        numbers = {look.seq: number for number, look in enumerate(self.looks)}
        for claim, own in self._words:
            look = own if own is not None and own.seq in numbers else self._look_after(claim)
            said = claim.statement
            hostname, address = said.get("hostname"), said.get("address")
            card = look.card_at(hostname, address) or self.before(claim, hostname, address)
            image = word(said, "image_uuid")
            number = numbers.get(look.seq, len(numbers))
            found[card, image].append(Word(claim, card, image, word(said, "status"), look, number))
        return found

    def before(self, claim: Claim, hostname: Any, address: Any) -> str:
        """Return the card that was at an address when it was last looked for before ``claim``."""
        for look in reversed(self.looks):
            if look.seq < claim.seq and (card := look.card_at(hostname, address)):
                return card
        return ""

    def facts(self, image: str) -> Mapping[str, Any]:
        """Return the facts of an image's bytes; empty where nobody here has read them."""
        facts = self.images.get(image, {}).get("image")
        if isinstance(facts, Mapping):
            return facts
        return self.parent.facts(image) if self.parent is not None else {}

    def known_images(self) -> list[str]:
        """Return the images whose bytes were read, here or for the system controller above."""
        above = self.parent.known_images() if self.parent is not None else []
        return list(dict.fromkeys([*self.images, *above]))

    def is_bmc(self, image: str, shown: Mapping[str, Any]) -> Any:
        """Return whether a functional image is for the BMC: by its bytes, else as the system shows it.

        Releases before 2021-11 show no such thing (fact sheet of StarlingX, section 2.7).
        """
        effect, told = word(self.facts(image), "effect"), shown.get("bmc")
        if effect in ("bmc-image", "user-image"):
            return effect == "bmc-image"
        return told if isinstance(told, bool) else None

    def image_name(self, image: str) -> str:
        """Return what people call an image."""
        return word(self.facts(image), "name") or image

    def _look_after(self, claim: Claim) -> Look:
        """Return the first look after a claim; one at nothing where the scenario ended before it."""
        nothing = Look(claim.seq, self.name, moment_of(claim))
        return next((look for look in self.looks if look.seq > claim.seq), nothing)


def stories_of(records: Iterable[Record]) -> list[SystemStory]:
    """Return the story of each system that ``records`` speak of."""
    stories: dict[str, SystemStory] = {}
    own: dict[int, str] = {}
    for record in records:
        name = own.get(record.intent, "") if isinstance(record, Completion) else _system_of(record)
        if isinstance(record, Intent):
            own[record.seq] = name
        if name:
            stories.setdefault(name, SystemStory(name)).take(record)
    return list(stories.values())


def _system_of(record: Record) -> str:
    subject = getattr(record, "subject", None)
    if not isinstance(subject, Subject):
        return ""
    if subject.kind == "record":
        return subject.name.split("/", 1)[0]
    return word(record.values, "system") if isinstance(record, Observation) else ""


def kind_of(claim: Claim) -> str:
    """Return what kind of record a claim is about."""
    parts = claim.subject.name.split("/")
    return parts[1] if len(parts) > 1 else ""


def moment_of(record: Record) -> float:
    """Return when something was so: by the lab's clock where it has one of its own."""
    return record.time if record.source_time is None else record.source_time


def shown(value: Any) -> str:
    """Return a value of a system as people read it."""
    if isinstance(value, Unknown):
        return str(value)
    return "None" if value is None else (str(value) if value != "" else "empty")

"""The interlock of a control plane: permits for changes, judged from the bytes of the images that they move.

What a change may bring to a card is asked of the system; what an image is, is decided from the bytes that the
harness gave to it, or got back from it. One whose bytes it has not read may do anything that cannot be undone
(design rule 7).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from harness.cards.interlock import CardEntry, Irreversible, Standing, check, check_standing, worn_out
from harness.cards.update_count import OwnCount, UpdateCount
from harness.controlplane.changes import Change
from harness.controlplane.cloud_protocol import StrategyChange
from harness.controlplane.covered import IMAGES, UPLOADED, check_covered
from harness.controlplane.protocol import EVERY_DEVICE, DeviceImage, Label, Reading
from harness.errors import HarnessBug, InfrastructureError, RefusedError
from harness.hosts.permits import Authority, Permit
from harness.images import facts as image_facts
from harness.judgement.values import Unknown, Value

_AUTHORITY = Authority("controlplane")
#: Reads a card as it is now; None: nobody here can.
Look = Callable[[CardEntry], Standing | None]
#: Hostname of the system and PCI address in it.
Place = tuple[str, str]
#: Statuses of what the next update of a host writes (section 4.7).
_OWED: Final = ("pending", "failed", "in-progress")
#: What a host shows while the system itself writes to its cards.
_BUSY: Final = ("in-progress", "in-progress-aborted")
#: The one device that an image without labels goes to (section 1.6).
_UPDATABLE: Final = "0b30"


@dataclass(frozen=True, slots=True)
class _Unread:
    """An image whose bytes nobody here has seen."""

    irreversible: frozenset[str] = frozenset(get_args(image_facts.Irreversible))


@dataclass(frozen=True, slots=True)
class Permits:
    """Permits for one change that the interlock has let pass."""

    change: Change | StrategyChange
    reason: str
    fence: Callable[[], None] = lambda: None

    def command(self, host: str, words: Sequence[str]) -> Permit:
        """Return the permit to ask exactly ``words`` of ``host``.

        :raises RefusedError: they do not ask for the change, or for more.
        """
        check_covered(self.change, words)
        return _AUTHORITY.command(self.change.act, host, words, self.reason, self.fence)

    def write(self, host: str, path: str) -> Permit:
        """Return the permit to put the image of the change at ``path`` of ``host``."""
        image = self.change.image if isinstance(self.change, Change) else None
        if image is None:
            raise HarnessBug(f"A {self.change.act} has no image to write.")
        if path != IMAGES and UPLOADED.fullmatch(path) is None:
            raise HarnessBug(f"An image for a system is not put at {path!r}.")
        digest = hashlib.sha256(image.content).hexdigest()
        return _AUTHORITY.write(self.change.act, host, path, digest, self.reason, self.fence)


class Gate:
    """Permits for one system; every check is made anew from what the system shows at that moment.

    Somebody else may change the system between the check and the act. A card that was exchanged or moved is
    told by the harness's own look at it (:meth:`place`).

    :param name: the controller's name. :param cards: where the system has the cards of the inventory.
    :param real: whether they are real hardware. :param allowed: what ``--hil-irreversible`` names.
    :param above: of a subcloud: the gate of its system controller, and what that shows of images.
    :param fence: raises unless its cards may be changed now; asked before each permit.
    :param updates: counts the updates that the run has begun; None: all that this gate permits.
    """

    def __init__(
        self,
        name: str,
        cards: Mapping[Place, CardEntry],
        *,
        real: bool,
        allowed: Collection[str] = frozenset(),
        above: tuple[Gate, Reading] | None = None,
        fence: Callable[[], None] = lambda: None,
        updates: UpdateCount | None = None,
    ) -> None:
        self.name = name
        self._above = above
        self._fence = fence
        self._cards = dict(cards)
        self._real = real
        self._allowed = frozenset(allowed)
        self._known: dict[str, Irreversible] = {}
        self._read: Callable[[str], Value[bytes]] = lambda uuid: Unknown("nobody reads images")
        self._look: Look = lambda card: None
        self._updates = updates or OwnCount()

    def read_with(self, read: Callable[[str], Value[bytes]]) -> None:
        """Judge images that somebody else has uploaded by what ``read`` gives of a uuid, each time anew."""
        self._read = read

    def look_with(self, look: Look) -> None:
        """Let ``look`` read a card before something is written to it: who it is, whether it updates."""
        self._look = look

    def place(self, card: CardEntry, place: Place | None) -> None:
        """Know where a card of the inventory is now, by its identity; None: nobody knows."""
        self._cards = {at: entry for at, entry in self._cards.items() if entry is not card}
        if place is not None:
            self._cards[place] = card

    def knows(self, uuid: str) -> bool:
        """Return whether the harness itself gave the image to the system."""
        return uuid in self._known

    def learn(self, uuid: str, content: bytes, name: str = "") -> image_facts.ImageFacts:
        """Remember what the image ``uuid`` is, whose bytes the harness has just given to the system."""
        facts = image_facts.image_facts(content, name)
        self._known[uuid] = facts
        return facts

    def forget(self, uuid: str) -> None:
        """Forget an image that was deleted: another one may get its uuid."""
        self._known.pop(uuid, None)

    def permits(self, change: Change, system: Reading) -> Permits:
        """Return the permits for ``change``. ``system``: is asked what it would bring to which card.

        :raises RefusedError: it may do to a card what cannot be undone, and that is not permitted there.
        """
        if change.act == "image-upload":
            self._upload(change)
        for facts, uuid, place in self._brought(change, system):
            self._check(facts, uuid, place)
        self._check_cards(change, system)
        return Permits(change, self.name, self._fence)

    # -- the cards as they are ------------------------------------------------------------------------

    def _check_cards(self, change: Change, system: Reading) -> None:
        """Look at the cards that an apply reaches, or that an update writes to.

        The system is asked only where something is wrong, or a card has a budget.

        :raises RefusedError: one is another card, cannot be told, updates, or is worn enough.
        """
        if change.act == "image-apply":
            self._check_each(self._cards, lambda: set(self._targets(change.labels, system)), system)
        elif change.act == "host-update":
            places = [place for place in self._cards if place[0] == change.target]
            self._check_each(places, lambda: set(places), system)
            if any(self._cards[place].wear for place in places):
                self._check_wear(places, Counter(self._owed_to(change.target, system)))

    @staticmethod
    def _owed_to(hostname: str, system: Reading) -> Iterator[Place]:
        for state in system.states():
            if state.status in _OWED and (isinstance(state.hostname, Unknown) or state.hostname == hostname):
                yield hostname, str(state.address)

    def _check_each(
        self, places: Collection[Place], reached: Callable[[], Collection[Place]], system: Reading
    ) -> None:
        """:raises RefusedError: a card that is reached is another one, cannot be told, or updates.

        An update that the system itself carries out is its own to keep others from.
        """
        refusals: dict[Place, RefusedError] = {}
        for place in places:
            try:
                self._check_stands(place, while_updating=False)
            except RefusedError as refusal:
                refusals[place] = refusal
        mine = reached() if refusals else ()
        for place, error in refusals.items():
            if place not in mine:
                continue
            if system.host(place[0]).device_image_update not in _BUSY:
                raise error
            self._check_stands(place, while_updating=True)

    def _check_stands(self, place: Place, *, while_updating: bool) -> None:
        seen = self._look(self._cards[place])
        if seen is not None:
            check_standing(self._cards[place], seen, self._named(place), while_updating=while_updating)

    def _named(self, place: Place) -> str:
        return f"{self._cards[place].name} of {place[0]} in {self.name}"

    def _check_wear(self, places: Collection[Place], owed: Mapping[Place, int]) -> None:
        """:raises RefusedError: the updates that are owed to a card are more than its budget has left."""
        for place in places:
            entry, name, due = self._cards[place], self._named(place), owed.get(place, 0)
            seen = self._look(entry) if entry.wear and due else None
            count = seen.flash_count if seen is not None else Unknown("nobody here can read it")
            begun = self._updates.begun(entry) if due else 0
            for further in range(due if entry.wear else 0):
                later = count if isinstance(count, Unknown) else count + further
                if reason := worn_out(entry, later, begun + further):
                    raise RefusedError(
                        f"{name} is owed {due} updates, and {reason}; nothing was changed.",
                        hint="`wear` of the card in the inventory says how many updates it may have.",
                    )
        for place in places:
            if due := owed.get(place, 0):
                self._updates.begin(self._cards[place], due)

    # -- what a change brings -------------------------------------------------------------------------

    def _upload(self, change: Change) -> None:
        """An image that no card of the system may get is not given to it at all."""
        if change.image is None:
            raise HarnessBug("An upload without an image was to be permitted.")
        facts = image_facts.image_facts(change.image.content, change.image.filename)
        self._somewhere(facts, change.image.filename)

    def _brought(self, change: Change, system: Reading) -> Iterator[tuple[Irreversible, str, Place]]:
        """Yield each image that ``change`` may bring to a card, and the place of that card."""
        if change.act == "image-apply":
            facts = self._facts(change.target)
            if not facts.irreversible:
                return
            self._somewhere(facts, change.target)
            for place in self._targets(change.labels, system):
                yield facts, change.target, place
        elif change.act == "label-assign":
            address = system.device(change.target, change.device).address
            above = self._above[1].images() if self._above else []
            for image in [*system.images(), *above]:
                if _may_be_owed(image, change.labels):
                    yield self._facts(image.uuid), image.uuid, (change.target, address)
        elif change.act == "host-update":
            for state in system.states():
                if state.status in _OWED and (
                    isinstance(state.hostname, Unknown) or state.hostname == change.target
                ):
                    uuid, address = str(state.image_uuid), str(state.address)
                    yield self._facts(uuid), uuid, (change.target, address)

    def check_orchestrated(self, images: Sequence[DeviceImage], system: Reading) -> None:
        """Check what an orchestration may bring to the cards of this subcloud.

        It applies what the system controller has applied, and has everything written that is owed then; also
        what was before. A subcloud that does not answer may get all of it, everywhere.

        :param images: of the system controller. :param system: is asked what it would bring to which card.
        :raises RefusedError: it may do to a card what cannot be undone, and that is not permitted there.
        """
        applied = [image for image in images if image.applied is not False or image.applied_labels]
        try:
            brought = [
                (self._facts(image.uuid), image.uuid, place)
                for image in applied
                for place in self._targets(_labels_of(image), system)
            ]
            for host in system.hosts():
                brought += self._brought(Change("host-update", host.hostname), system)
            answers = True
        except InfrastructureError:
            brought = [
                (self._facts(image.uuid), image.uuid, place) for image in applied for place in self._cards
            ]
            answers = False
        for facts, uuid, place in brought:
            self._check(facts, uuid, place)
        if answers:  # else nobody carries out what is asked of it
            owed = Counter(place for _, place in {(uuid, place) for _, uuid, place in brought})
            places = [place for place in self._cards if owed[place]]
            self._check_each(places, lambda: places, system)
            self._check_wear(places, owed)

    def _targets(self, labels: Sequence[Label], system: Reading) -> Iterator[Place]:
        """Yield the devices that an image reaches now; what gets a label later is checked then."""
        wanted = set(labels)
        carriers = {
            (label.hostname, label.device)
            for label in system.labels()
            if (label.label_key, label.label_value) in wanted and label.device is not None
        }
        for host in system.hosts():
            for device in system.devices(host.hostname):
                if labels and not any(_is(carrier, host.hostname, device.name) for carrier in carriers):
                    continue
                if labels or isinstance(device.device_id, Unknown) or device.device_id == _UPDATABLE:
                    yield host.hostname, device.address

    # -- judging --------------------------------------------------------------------------------------

    def _facts(self, uuid: str) -> Irreversible:
        """Return what an image is; a subcloud may have it from its system controller."""
        known = self._known.get(uuid)
        if known is not None:
            return known
        content = self._read(uuid)
        if not isinstance(content, Unknown):
            return image_facts.image_facts(content, uuid)
        return self._above[0]._facts(uuid) if self._above else _Unread()

    def _somewhere(self, facts: Irreversible, name: str) -> None:
        """:raises RefusedError: no card of the system may get the image."""
        if not facts.irreversible:
            return
        refusals = []
        for place in self._cards:
            try:
                self._check(facts, name, place)
            except RefusedError as refusal:
                refusals.append(refusal)
            else:
                return
        if refusals:
            raise refusals[0]
        raise RefusedError(
            f"The image {name} does what cannot be undone, or it cannot be told, and no card of {self.name} "
            "is in the inventory; nothing was changed."
        )

    def _check(self, facts: Irreversible, name: str, place: Place) -> None:
        if not facts.irreversible:
            return
        entry = self._cards.get(place)
        if entry is None:
            raise RefusedError(
                f"The image {name} does what cannot be undone, or it cannot be told, and the device "
                f"{place[1]} of {place[0]} that it would go to is no card of the inventory; nothing was "
                "changed.",
                hint="Is the address in the inventory the one that the system shows?",
            )
        try:
            check(entry, facts, self._allowed, self._real)
        except RefusedError as refusal:
            unread = " (whose bytes the harness has not read)" if isinstance(facts, _Unread) else ""
            message = f"{self.name}, image {name}{unread}: {refusal.message}"
            raise RefusedError(message, hint=refusal.hint) from None


def _is(carrier: tuple[object, object], hostname: str, device: str) -> bool:
    """Whether a label's carrier may be this device; what is not known may be any."""
    return all(
        isinstance(said, Unknown) or said == known
        for said, known in zip(carrier, (hostname, device), strict=True)
    )


def _labels_of(image: DeviceImage) -> Sequence[Label]:
    """Return the labels that an image is applied to; none where it is, or may be, applied to every device."""
    applied = image.applied_labels
    return () if not applied or isinstance(applied, Unknown) or EVERY_DEVICE in applied else applied


def _may_be_owed(image: DeviceImage, labels: Sequence[Label]) -> bool:
    """Whether a device that gets ``labels`` is owed ``image`` by that."""
    applied = image.applied_labels
    if isinstance(applied, Unknown):
        return True
    return bool(set(applied or ()) & {*labels, EVERY_DEVICE})

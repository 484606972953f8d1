"""What documents say becomes of a card, told by recipes ("signed by root A with CSK 1"), never by bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from harness.images.recipes import Recipe

#: The images that a card may be given: every kind that documents promise something of.
IMAGES: Final = (
    "A/csk0",
    "A/csk1",
    "B/csk0",
    "unsigned",
    "csk-foreign",
    "tampered-payload",
    "tampered-signature",
    "bmc-unsigned",
    "root-key-A",
    "root-key-B",
    "cancel-A-csk0",
    "cancel-A-csk1",
    "cancel-B-csk0",
)
#: Damage -> the authentication code with which a keyed card refuses it.
_REFUSED: Final = {"csk-foreign": 0x12, "tampered-signature": 0x13, "tampered-payload": 0x16}
_BEGUN: Final = ("preparing", "transferring", "authenticating")
#: Phases in which an update ends with the host: the card has not got all of it.
EARLY: Final = ("preparing", "transferring")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done. ``name``: flash, second, cut, cancel, reboot, reset, power-cycle or move.

    ``image``, ``phase``: of an update; ``code``: what the model says that the card answers; ``word``: the
    kind of a reset, the image of a second updater, or the address that a card moves to.
    """

    name: str
    image: str = ""
    phase: str = ""
    code: int = 0
    word: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.image, self.phase, self.word)))

    @property
    def wear(self) -> int:
        """The updates that it costs: every one with an image is one."""
        return 1 if self.image else 0

    @property
    def images(self) -> frozenset[str]:
        """The images that it needs."""
        return frozenset(filter(None, (self.image, self.word if self.name == "second" else "")))

    def answered(self, code: int) -> Step:
        """Return the step with what the card answers."""
        return self if code == self.code else Step(self.name, self.image, self.phase, code, self.word)


@dataclass(frozen=True, slots=True)
class CardModel:
    """A card by the documents' rules: Intel UG 683519; fact sheet of the N3000, sections 3 and 4.

    ``root``, ``cancelled``: what is programmed; ``..._in_force``: what counts until the next reset.
    ``page``: the recipe in the user page; ``running``: the one that the FPGA runs. None: of the factory.
    ``count``: updates that began; ``address``: where the card is; ``moves_to``: where a reset moves it.
    """

    recipes: Mapping[str, Recipe]
    address: str
    root: str | None = None
    root_in_force: str | None = None
    cancelled: frozenset[int] = frozenset()
    cancelled_in_force: frozenset[int] = frozenset()
    page: str | None = None
    running: str | None = None
    count: int = 0
    moves_to: str | None = None

    def code(self, name: str) -> int:
        """Return the authentication code with which the card answers an image; 0: it is accepted."""
        recipe = self.recipes[name]
        if recipe.kind == "root-key":
            return 0x1A if self.root else 0x00
        if recipe.content_type == "BMC":
            return 0x11  # the factory's root; no recipe has its key
        if recipe.kind == "cancellation":
            if self.root_in_force is None:
                return 0x10
            return 0x00 if root_of(recipe) == self.root_in_force else 0x11
        if self.root_in_force is None:
            return 0x16 if name == "tampered-payload" else 0x00
        if root_of(recipe) != self.root_in_force:
            return 0x11
        if recipe.csk in self.cancelled_in_force:
            return 0x15
        return _REFUSED.get(name, 0x00)

    def phases(self, name: str) -> tuple[str, ...]:
        """Return the phases that an update with an image goes through."""
        if self.code(name):
            return _BEGUN
        return (*_BEGUN, "copying" if self.recipes[name].kind == "update" else "keys")

    def after(self, step: Step) -> CardModel | None:
        """Return the card after a step of an exploration; None where it makes no sense to this card."""
        if step.name in ("reset", "power-cycle"):
            return self.reset()
        if step.name == "move":
            return self.moving(step.word)
        if step.phase and step.phase not in self.phases(step.image):
            return None
        if step.name == "cut":
            return self.begun().cut(step.phase)
        stops = step.name == "cancel" or (step.name == "reboot" and step.phase in EARLY)
        return self.begun() if stops or self.code(step.image) else self.begun().landed(step.image)

    def begun(self) -> CardModel:
        """An update began: the staging area was erased."""
        return replace(self, count=self.count + 1)

    def landed(self, name: str) -> CardModel:
        """An image that the card accepted took its place."""
        recipe = self.recipes[name]
        if recipe.kind == "root-key":
            return replace(self, root=root_of(recipe))
        if recipe.kind == "cancellation" and recipe.cancel is not None:
            return replace(self, cancelled=self.cancelled | {recipe.cancel})
        return replace(self, page=name)

    def cut(self, phase: str) -> CardModel:
        """The power went in a phase: a page in copying is lost."""
        lost = replace(self, page=None) if phase == "copying" else self
        return lost.reset()

    def reset(self) -> CardModel:
        """A reset, or a power cycle: what is programmed counts, what is in the page runs."""
        return replace(
            self,
            root_in_force=self.root,
            cancelled_in_force=self.cancelled,
            running=self.page,
            address=self.moves_to or self.address,
            moves_to=None,
        )

    def moving(self, address: str) -> CardModel:
        """The next reset brings it to another address."""
        return replace(self, moves_to=address)

    def bitstream_id(self, factory: int) -> int:
        """Return what the card shows of the image that it runs."""
        wanted = self.recipes[self.running].bitstream_id if self.running else None
        return factory if wanted is None else wanted


def root_of(recipe: Recipe) -> str | None:
    """Return the name of the root that signed an image, or that a root-key image programs."""
    return recipe.root.name if recipe.root else None

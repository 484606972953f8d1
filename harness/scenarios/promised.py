"""What documents promise of an image on a card that was read: the model over recipes, for any state of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.cards.values import boot_page
from harness.errors import ConfigurationError
from harness.judgement.values import Unknown, Value
from harness.scenarios.card_model import IMAGES, CardModel, root_of
from harness.scenarios.given import NOT_PROGRAMMED, Given
from harness.scenarios.promises import lands, unchanged

if TYPE_CHECKING:
    from harness.cards.truth import CardTruth
    from harness.images.recipes import Recipe
    from harness.judgement.records import Promise

_SOURCE: Final = (
    "Intel FPGA PAC N3000 Security User Guide (683519): policy; codes: authentication result register, as in "
    "DPDK drivers/raw/ifpga"
)
_P256: Final = "P-256"


@dataclass(frozen=True, slots=True)
class FlashedState:
    """What updates change of a card, as a probe reads it: what it runs, and what is programmed."""

    running: Value[int]
    root: Value[str]
    cancelled: Value[frozenset[int]]

    def left_of(self, before: FlashedState, after: FlashedState) -> str:
        """Return what is left of a card that was as ``before``, and whole as ``after``.

        That is ``old`` or ``new``, ``factory``: all that it held, but it runs its factory page, ``mixed``:
        none of these; ``unknown`` where it cannot be read what it runs.
        """
        if isinstance(self.running, Unknown):
            return "unknown"
        if self == before:
            return "old"
        if self == after:
            return "new"
        from_factory = boot_page(self.running) == "factory" and self == replace(before, running=self.running)
        return "factory" if from_factory else "mixed"


class Promised:
    """The promises of a set of recipes.

    :param roots: name of a root key -> its root entry hash.
    """

    def __init__(self, recipes: Mapping[str, Recipe], roots: Mapping[str, str]) -> None:
        self._recipes = recipes
        self._roots = roots
        self._names: dict[str, str] = {}

    def check(self, names: tuple[str, ...], root: str | None = None) -> None:
        """Return if documents say what becomes of each, on a card with that root key.

        :raises ConfigurationError: of one they do not, or there is no such root key.
        """
        for name in names:
            self.given(name, root)
            if not self._is_told(name):
                raise ConfigurationError(
                    f"What becomes of the image {name} is not known from documents, so that no trial of it "
                    "could be judged.",
                    hint=f"Take one of {', '.join(n for n in self._recipes if self._is_told(n))}.",
                )

    def _is_told(self, name: str) -> bool:
        recipe = self._recipes[name]
        if name in IMAGES:
            return recipe.content_type == "SR"
        plain = recipe.damage is None and recipe.csk_signer is None and recipe.swapped_from is None
        whole = recipe.kind != "update" or recipe.unsigned or None not in (recipe.root, recipe.csk)
        curves = recipe.root is None or recipe.root.curve.name == _P256
        return plain and whole and curves and recipe.kind != "raw" and recipe.content_type == "SR"

    def given(self, name: str, root: str | None) -> Given:
        """Return the state of a card before an update with an image; empty: before something else.

        :param root: the name of its root key; None: such that the image is taken.
        :raises ConfigurationError: there is no such root key.
        """
        recipe = self._recipes[name] if name else None
        signed = recipe is not None and recipe.kind != "root-key"
        taken = (root_of(recipe) if recipe is not None and signed else None) or NOT_PROGRAMMED
        return Given.parse({"root": taken if root is None else root}, self._roots)

    def state(self, truth: CardTruth) -> FlashedState:
        """Return what a card holds, from what was read."""
        return FlashedState(truth.bitstream_id, truth.sr_root, truth.sr_cancelled)

    def of(self, name: str, state: FlashedState) -> Promise:
        """Return what documents promise of an update of a card in ``state`` with an image."""
        code = self._model(state).code(name)
        return unchanged(f"0x{code:02X}", source=_SOURCE) if code else lands(_SOURCE)

    def after(self, name: str, state: FlashedState) -> FlashedState:
        """Return what a card in ``state`` holds after an undisturbed update with an image, and a reset."""
        recipe = self._recipes[name]
        if self._model(state).code(name):
            return state
        if recipe.kind == "root-key":
            return replace(state, root=recipe.root_entry_hash() or "")
        if recipe.kind == "cancellation" and recipe.cancel is not None:
            known = frozenset[int]() if isinstance(state.cancelled, Unknown) else state.cancelled
            return replace(state, cancelled=known | {recipe.cancel})
        return replace(state, running=recipe.bitstream_id or 0)

    def before(self, name: str, state: FlashedState) -> str:
        """Return an image that a card in ``state`` takes, and that shows that the one named did not land.

        :raises ConfigurationError: no recipe is one.
        """
        own = self._recipes[name].bitstream_id if name else None
        model = self._model(state)
        for other, recipe in self._recipes.items():
            fits = recipe.kind == "update" and self._is_told(other) and recipe.bitstream_id is not None
            if fits and recipe.bitstream_id != own and not model.code(other):
                return other
        raise ConfigurationError(
            f"A card whose root entry hash is {state.root or 'not programmed'} takes no image but {name}.",
            hint="Add the recipe of one to fixtures/images.yaml.",
        )

    def _model(self, state: FlashedState) -> CardModel:
        root = self._name_of(state.root)
        cancelled = frozenset[int]() if isinstance(state.cancelled, Unknown) else state.cancelled
        return CardModel(
            self._recipes,
            "",
            root=root,
            root_in_force=root,
            cancelled=cancelled,
            cancelled_in_force=cancelled,
        )

    def _name_of(self, root: Value[str]) -> str | None:
        """Return whose root entry hash is programmed: None: nobody's; one that no recipe has by itself."""
        if root == "":
            return None
        if not self._names:
            names = {root_of(recipe) for recipe in self._recipes.values()} - {None}
            self._names = {self._roots[name]: name for name in names if name and name in self._roots}
        return self._names.get(str(root), str(root))

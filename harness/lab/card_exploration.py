"""Explores cards in memory: what can be done to one, its model of the documents' rules, its known defects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from harness.emulator.card import CardProfile
from harness.lab.defective import OF_EQUIPMENT
from harness.lab.explored_card import AWAY, ExploredCard
from harness.scenarios.card_model import EARLY, IMAGES, Step
from harness.scenarios.exploration import Disagreement, Explorable

if TYPE_CHECKING:
    from harness.images.recipes import Recipe

_PHASES: Final = ("preparing", "transferring", "authenticating", "copying", "keys")
#: Everything that can be done to a card, kind by kind.
RULES: Final[tuple[tuple[Step, ...], ...]] = (
    tuple(Step("flash", image) for image in IMAGES),
    tuple(Step("second", image, word=other) for image in IMAGES for other in IMAGES),
    tuple(Step("cut", image, phase) for image in IMAGES for phase in _PHASES),
    tuple(Step("cancel", image, phase) for image in IMAGES for phase in EARLY),
    tuple(Step("reboot", image, phase) for image in IMAGES for phase in _PHASES),
    tuple(Step("reset", word=word) for word in ("bmc_user", "bmc_factory")),
    (Step("power-cycle"),),
    tuple(Step("move", word=address) for address in AWAY),
)


@contextmanager
def opened(recipes: Mapping[str, Recipe], defects: Sequence[str] = ()) -> Iterator[Explorable[Step]]:
    """Give cards in memory with these known defects. :raises ConfigurationError: there is no such defect."""
    fresh = cards(recipes, defects)
    yield Explorable(fresh, None, RULES, length=100, burst=10, all_kinds=False, simpler=plainer)


def cards(recipes: Mapping[str, Recipe], defects: Sequence[str] = ()) -> Callable[[], ExploredCard]:
    """Return what makes new cards with these known defects. :raises ConfigurationError: there is no such."""
    from harness.images.recipes import build

    images = {name: build(recipes[name]) for name in IMAGES}
    hashes = {name: recipes[f"{name}/csk0"].root_entry_hash() for name in ("A", "B")}
    roots = {name: value for name, value in hashes.items() if value is not None}
    profile = profile_with(defects)
    return lambda: ExploredCard(recipes, images, roots, profile)


def profile_with(defects: Sequence[str]) -> CardProfile:
    """Return the profile of a card that has known defects.

    :raises ConfigurationError: there is no such defect, or it is not one of a card.
    """
    from harness.inventory.entries import unknown_name

    known = {name: each.switch for name, each in OF_EQUIPMENT.items() if each.kind == "card"}
    profile: dict[str, list[str]] = {}
    for name in defects:
        if name not in known:
            raise unknown_name("known defect", name, list(known), "cards (`hil defects list --kind card`)")
        for key, value in known[name].items():
            profile.setdefault(key, []).append(value)
    return CardProfile.from_mapping(profile)


def plainer(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Yield ``steps`` with one of them replaced by a plain one."""
    for at, step in enumerate(steps):
        if step.image and step.name != "flash":
            yield (*steps[:at], Step("flash", step.image), *steps[at + 1 :])
        if step.name in ("cut", "power-cycle"):
            yield (*steps[:at], Step("reset", word="bmc_user"), *steps[at + 1 :])


def probes_after(steps: Sequence[Step], fresh: Callable[[], ExploredCard]) -> tuple[Step, ...]:
    """Return updates that show, after ``steps``, which keys hold; none where the model has no root key."""
    card = fresh()
    try:
        with suppress(Disagreement):
            for step in steps:
                card.do(step)
        model = card.model
        names = ("unsigned", f"{model.root}/csk0") if model.root_in_force else ()
        return tuple(Step("flash", name, code=model.code(name)) for name in names)
    finally:
        card.close()

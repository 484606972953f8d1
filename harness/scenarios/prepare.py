"""Brings a card into the state that a scenario wants, or says why the scenario does not apply to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.judgement.values import Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.cards.driver import CardDriver
    from harness.cards.truth import CardTruth
    from harness.images.facts import ImageFacts
    from harness.lab.bench import Bench
    from harness.scenarios.given import Given


class NotApplicable(Exception):
    """The device's state or permits exclude the scenario; it is listed, not skipped."""


class OtherState(NotApplicable):
    """The card is in another state than the scenario starts from; ``seen`` is what was read of it."""

    def __init__(self, card: str, unmet: Sequence[str], seen: CardTruth) -> None:
        super().__init__(f"{card}: {'; '.join(unmet)}")
        self.seen = seen


def require_permits(card: CardDriver, images: Sequence[ImageFacts]) -> None:
    """:raises NotApplicable: the inventory does not permit what flashing ``images`` may do to the card.

    An image that cannot be parsed counts as irreversible in every way (design rule 7).
    """
    for image in images:
        missing = image.irreversible - card.permitted
        if missing:
            raise NotApplicable(f"{card.name} is not permitted {' and '.join(sorted(missing))}")


def require_budget(card: CardDriver) -> None:
    """:raises NotApplicable: as many updates are behind the card as the inventory allows it."""
    if reason := card.used_up():
        raise NotApplicable(f"{card.name}: {reason}")


def prepare(card: CardDriver, given: Given, bench: Bench | None) -> None:
    """Bring ``card`` into the state ``given``.

    A lab with a ``bench`` fits a fresh card in that state, so that no scenario depends on another.
    Elsewhere nothing can be undone: the card is in the state already, or the scenario does not apply.

    :raises OtherState: the card is in another state and the lab cannot fit one that is.
    """
    if bench is None:
        require_state(card.name, card.truth(), given)
        return
    state: dict[str, object] = {}
    if given.sr_root is not None:
        state["sr_root"] = given.sr_root or None
    if given.sr_cancelled is not None:
        state["sr_cancelled"] = sorted(given.sr_cancelled)
    if given.flash_count is not None:
        state["flash_count"] = given.flash_count
    if given.bmc_root is not None:
        state["bmc_root"] = given.bmc_root or None
    bench.fit(card.name, state)
    card.locate()


def require_state(card: str, seen: CardTruth, given: Given) -> None:
    """:raises OtherState: ``card`` was ``seen`` in another state than ``given``."""
    if unmet := given.unmet_by(seen.sr_root, seen.sr_cancelled, seen.flash_count, seen.bmc_root):
        raise OtherState(card, unmet, seen)


def require_another_image(card: CardDriver, image: ImageFacts) -> None:
    """:raises NotApplicable: the card runs this image already, so that its activation could not be seen."""
    if isinstance(image.bitstream_id, Unknown):
        return
    if card.truth({"bitstream_id"}).bitstream_id == image.bitstream_id:
        raise NotApplicable(f"{card.name} already runs {image.name}; flash another image to it first")

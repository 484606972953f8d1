"""Brings a card into the state that a scenario wants, or says why the scenario does not apply to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.judgement.values import Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.cards.driver import CardDriver
    from harness.images.facts import ImageFacts
    from harness.lab.bench import Bench
    from harness.scenarios.given import Given


class NotApplicable(Exception):
    """The device's state or permits exclude the scenario; it is listed, not skipped."""


def require_permits(card: CardDriver, images: Sequence[ImageFacts]) -> None:
    """:raises NotApplicable: the inventory does not permit what flashing ``images`` does to the card."""
    for image in images:
        missing = image.irreversible - card.permitted
        if missing:
            raise NotApplicable(
                f"{card.name} is not permitted {' and '.join(sorted(missing))}, "
                f"and {image.name} is one or cannot be told from one"
            )


def prepare(
    card: CardDriver, given: Given, bench: Bench | None, *, about_to_flash: ImageFacts | None = None
) -> None:
    """Bring ``card`` into the state ``given``.

    A card that is in it already is left alone. A lab with a ``bench`` fits another card; elsewhere
    nothing can be undone, so the scenario does not apply.

    :param about_to_flash: the card must not run this image yet, or its activation could not be seen.
    :raises NotApplicable: the card is in another state and the lab cannot fit one that is.
    """
    truth = card.truth()
    unmet = given.unmet_by(truth.sr_root, truth.sr_cancelled, truth.flash_count)
    if about_to_flash and _runs(truth.bitstream_id, about_to_flash):
        unmet.append(f"it already runs {about_to_flash.name}")
    if not unmet:
        return
    if bench is None:
        raise NotApplicable(f"{card.name}: {'; '.join(unmet)}")
    state: dict[str, object] = {}
    if given.sr_root is not None:
        state["sr_root"] = given.sr_root or None
    if given.sr_cancelled is not None:
        state["sr_cancelled"] = sorted(given.sr_cancelled)
    if given.flash_count is not None:
        state["flash_count"] = given.flash_count
    bench.fit(card.name, state)
    card.locate()


def _runs(running: object, image: ImageFacts) -> bool:
    return not isinstance(image.bitstream_id, Unknown) and image.bitstream_id == running

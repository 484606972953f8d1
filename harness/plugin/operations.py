"""The operations that scenarios call: flash and reset, with activation, steps and faults around them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.errors import LinkLostError
from harness.judgement.records import Intent, Promise
from harness.plugin.scenario import step
from harness.scenarios.prepare import require_another_image, require_permits

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.cards.results import FlashResult
    from harness.faults.injector import Injector
    from harness.plugin.images import Image, ImageShelf
    from harness.plugin.session import HilSession

#: Effects that show only after the card was reset.
_ACTIVATED_BY_RESET = frozenset({"user-image", "bmc-image", "root-key", "key-cancellation"})


@dataclass
class Flash:
    """The ``flash`` fixture: flashes an image and activates it by a reset."""

    session: HilSession
    card: CardDriver
    shelf: ImageShelf
    injector: Injector

    def __call__(
        self,
        image: Image | str,
        promise: Promise,
        *,
        activate: bool = True,
        by: Literal["fpgasupdate", "firmware-upload"] = "fpgasupdate",
    ) -> FlashResult | None:
        """Flash ``image`` and record everything that is needed to judge it.

        :param image: a recipe's name, or an image.
        :param promise: what documents promise for this image on this card.
        :param by: the vendor's tool, or the kernel's own interface (the tool refuses some files before
            the card sees them).
        :param activate: reset the card afterwards, so that what it runs can be seen.
        :returns: what came of it; None where a fault of the scenario broke the link meanwhile.
        :raises NotApplicable: the card's permits or state exclude it.
        :raises RefusedError: the interlock said no.
        """
        image = self.shelf[image] if isinstance(image, str) else image
        require_permits(self.card, [image.facts])
        if self.session.lab.bench is None:
            require_another_image(self.card, image.facts)
        with step(self.session, f"flash {image.name} on {self.card.name}"):
            result = self._flash(image, promise, by)
        if activate and image.facts.effect in _ACTIVATED_BY_RESET:
            self.reset()
        return result

    def _flash(self, image: Image, promise: Promise, by: str) -> FlashResult | None:
        """Flash; where a fault of this scenario broke the link, bring the host back and look again."""
        try:
            if by == "firmware-upload":
                return self.card.upload(image.data, image.name, promise, facts=image.facts)
            return self.card.flash(
                image.data, image.name, promise, at_phase=self.injector.reached, facts=image.facts
            )
        except LinkLostError:
            if not self.injector.cut_the_link:
                raise
            self.injector.undo()
            self.card.observe("after", self._last_flash())
            return None

    def _last_flash(self) -> int:
        records = self.session.history.records
        return next(r.seq for r in reversed(records) if isinstance(r, Intent) and r.operation == "flash")

    def reset(self) -> None:
        """Reset the card with `rsu bmcimg`, which activates what was flashed."""
        with step(self.session, f"reset {self.card.name}"):
            self.card.reset()


@contextmanager
def restored_after_failure(session: HilSession, card: CardDriver, failed: FailureProbe) -> Iterator[None]:
    """After a scenario that failed, fit a fresh card where the lab can; else quarantine a busy card."""
    yield
    if not failed.failed:
        return
    from harness.errors import HarnessError

    try:
        if session.lab.bench is not None:
            session.lab.bench.fit(card.name, {})
            card.locate()
        elif card.truth().update_status != "idle":
            session.quarantined[card.name] = "an update was still running when its scenario ended"
    except HarnessError as error:
        session.quarantined[card.name] = f"it could not be restored: {error.message}"


@dataclass
class FailureProbe:
    """Whether the scenario of an item failed; set when its call phase is reported."""

    failed: bool = False

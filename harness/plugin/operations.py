"""The operations that scenarios call: flash and reset, with activation, steps and faults around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import ConfigurationError, HarnessError, UnreachableError
from harness.faults.second_updater import NAME as SECOND_UPDATER
from harness.faults.second_updater import SecondUpdater
from harness.interruption import uninterrupted
from harness.judgement.records import Intent, Promise
from harness.judgement.values import NOT_EXPOSED, Unknown
from harness.plugin.judging import Failure
from harness.plugin.scenario import step
from harness.scenarios.prepare import require_another_image, require_budget, require_permits
from harness.scenarios.promises import ACTIVATED_BY_RESET
from harness.scenarios.steps import is_step

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.cards.results import FlashResult
    from harness.cards.tool_output import Progress
    from harness.faults.injector import Injector
    from harness.plugin.acting import Acting
    from harness.plugin.images import Image, ImageShelf
    from harness.plugin.session import HilSession


@dataclass
class Flash:
    """The ``flash`` fixture: flashes an image and activates it by a reset."""

    session: Acting
    card: CardDriver
    shelf: ImageShelf
    injector: Injector
    _others: list[SecondUpdater] = field(default_factory=list, init=False)

    @is_step("flash", of="flash", image="image", promise="promise", activate="flag", by="tool")
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
        :raises ConfigurationError: a fault waits for a phase that ``firmware-upload`` does not announce.
        """
        if by == "firmware-upload" and (point := self.injector.waits_for):
            raise ConfigurationError(
                f"A fault waits for the phase {point!r}, which only the tool announces: "
                "flashing by firmware-upload would never come to it.",
                hint="Flash by fpgasupdate, or arm the fault at 'start'.",
            )
        image = self.shelf[image] if isinstance(image, str) else image
        require_permits(self.card, [image.facts])
        require_budget(self.card)
        if self.session.bench_of(self.card.host.name) is None:
            require_another_image(self.card, image.facts)
        with step(self.session, self.card.name, f"flash {image.name}"):
            result = self._flash(image, promise, by)
        self._held_off()
        if activate and image.facts.effect in ACTIVATED_BY_RESET:
            self.reset()
        return result

    def _flash(self, image: Image, promise: Promise, by: str) -> FlashResult | None:
        """Flash; where a fault of this scenario took the host away, bring it back and look again."""

        def tell(progress: Progress) -> None:
            percent = "" if progress.percent is None else f" {progress.percent:g} %"
            self.session.progress(self.card.name, f"flash {image.name}: {progress.phase}{percent}")

        try:
            if by == "firmware-upload":
                return self.card.upload(image.data, image.name, promise, facts=image.facts)
            return self.card.flash(
                image.data,
                image.name,
                promise,
                at_phase=self.injector.reached,
                on_progress=tell,
                facts=image.facts,
            )
        except UnreachableError:
            if not self.injector.cut_the_link:
                raise
            self.injector.undo()
            self.card.observe("after", self._last_flash())
            return None

    def _last_flash(self) -> int:
        records = self.session.history.records
        return next(r.seq for r in reversed(records) if isinstance(r, Intent) and r.operation == "flash")

    @is_step("second-updater", of="flash", image="image", at="flash-point")
    def second_updater(self, image: Image | str, at: str) -> None:
        """Have another updater want to begin with an image at a point of the next flash: it must be refused.

        :raises NotApplicable: the card's permits exclude the image.
        :raises BlockedError: the card is on no bench, where alone there is such an updater.
        """
        image = self.shelf[image] if isinstance(image, str) else image
        require_permits(self.card, [image.facts])
        other = SecondUpdater(image.name, image.data)
        self.injector.arm(at, SECOND_UPDATER, other)
        self._others.append(other)

    def _held_off(self) -> None:
        """:raises AssertionError: a second updater was let in meanwhile."""
        others, self._others = self._others, []
        let_in = [other.let_in for other in others if other.let_in]
        assert not let_in, "; ".join(let_in)

    @is_step("reset", of="flash", kind="reset-kind", page="bmc-page")
    def reset(self, kind: Literal["bmcimg", "retimer"] = "bmcimg", *, page: str | None = None) -> None:
        """Reset the card with `rsu`: `bmcimg`, which activates what was flashed, or `retimer`.

        :param page: of the BMC, to come up from: ``user`` or ``factory``.
        """
        with step(self.session, self.card.name, "reset"):
            self.card.reset(kind, page=page)

    @is_step("fit", of="flash", root="root", cancelled="csk-ids", flash_count="count", bmc_root="root")
    def fit(
        self,
        root: str | None = None,
        *,
        cancelled: Sequence[int] | None = None,
        flash_count: int | None = None,
        bmc_root: str | None = None,
    ) -> None:
        """Have the card in a state, as `given` says it: another card where the lab can fit one.

        :raises NotApplicable: it is in another state, and the lab cannot change that.
        """
        said = {"root": root, "cancelled": cancelled, "flash_count": flash_count, "bmc_root": bmc_root}
        have(self.session, self.card, {name: value for name, value in said.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Wait:
    """The ``wait`` fixture: lets time pass."""

    passes: Callable[[float], None]

    @is_step("wait", of="wait", seconds="seconds")
    def __call__(self, seconds: float) -> None:
        """Let time pass: lab time where the lab is emulated; a StarlingX system is looked at afterwards."""
        self.passes(seconds)


def have(session: Acting, card: CardDriver, state: Mapping[str, Any]) -> None:
    """Have ``card`` in a state, as the marker ``hil_given`` says it; raises as :meth:`Flash.fit`."""
    from harness.plugin.images import RootHashes
    from harness.scenarios.given import Given
    from harness.scenarios.prepare import prepare

    words = ", ".join(f"{name} {value}" for name, value in state.items()) or "as the lab has it"
    with step(session, card.name, f"prepare: {words}"):
        prepare(card, Given.parse(state, RootHashes(session.images)), session.bench_of(card.host.name))


@contextmanager
def restored_after_failure(session: HilSession, card: CardDriver, scenario: Failure) -> Iterator[None]:
    """After a scenario that failed, fit a fresh card where the lab can; else quarantine a busy card."""
    yield
    if not scenario.failed:
        return
    try:
        with uninterrupted(f"restore {card.name}"):
            _restore(session, card)
    except HarnessError as error:
        session.quarantine(card.name, f"it could not be restored: {error.message}")


def _restore(session: HilSession, card: CardDriver) -> None:
    bench = session.bench_of(card.host.name)
    if bench is not None:
        bench.fit(card.name, {})
        card.locate()
        return
    status = card.truth().update_status
    if isinstance(status, Unknown):
        if status != NOT_EXPOSED:
            session.quarantine(card.name, f"whether an update still runs on it after a failure is {status}")
    elif status != "idle":
        session.quarantine(card.name, f"an update ({status}) was still running when its scenario ended")

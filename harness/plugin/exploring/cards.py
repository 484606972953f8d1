"""Explores a card through its drivers, over SSH or as a real one is reached, beside the documents' model."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from harness.faults.injector import Injector
from harness.judgement.model import Verdict
from harness.judgement.records import Observation
from harness.judgement.values import Unknown
from harness.plugin.exploring.played import Played, Recorded, Run
from harness.plugin.operations import Flash, Wait
from harness.scenarios.card_model import EARLY, IMAGES, CardModel, Step
from harness.scenarios.counterexample import SILENCING, SOURCE, steps_of
from harness.scenarios.exploration import Disagreement
from harness.scenarios.prepare import NotApplicable

if TYPE_CHECKING:
    from harness.images.recipes import Recipe
    from harness.lab.card_bench import CardBench
    from harness.plugin.images import ImageShelf
    from harness.record.history import History

_PHASES: Final = ("preparing", "transferring", "authenticating", "copying", "keys")
_RESETS: Final = (Step("reset", word="bmc_user"),)
#: Everything that can be done to an emulated card over SSH, kind by kind.
RULES: Final[tuple[tuple[Step, ...], ...]] = (
    tuple(Step("flash", image) for image in IMAGES),
    tuple(Step("second", image, word=other) for image in IMAGES for other in IMAGES),
    tuple(Step("cut", image, phase) for image in IMAGES for phase in _PHASES),
    tuple(Step("cancel", image, phase) for image in IMAGES for phase in EARLY),
    # Later on the card goes on alone, and is read before it is done.
    tuple(Step("reboot", image, phase) for image in IMAGES for phase in EARLY),
    _RESETS,
    _RESETS,
    (Step("move", word="away"),),
)


def rules_on_real(images: Collection[str], wear: int) -> tuple[tuple[Step, ...], ...]:
    """Return what may be done to a real card: resets; and updates, where wear is allowed, with ``images``.

    :param images: those that the card's entry and the command line permit.
    """
    updates = (tuple(Step("flash", image) for image in images),) if wear and images else ()
    return (*updates, _RESETS)


class ExploredHostCard(Played):
    """A card behind its driver: a new one where the lab has a bench; else as it is, after a reset.

    :param kept: where the history of a real card is kept.
    """

    def __init__(
        self,
        bench: CardBench,
        shelf: ImageShelf,
        recipes: dict[str, Recipe],
        kept: History | None = None,
    ) -> None:
        self.steps: list[Step] = []
        self._open = ExitStack()
        recorded = Recorded("explore a card", kept)
        card, run = bench.driver(recorded), Run(bench.lab, recorded, shelf)
        self._faults = Injector(card, bench.lab, recorded)
        self._open.callback(self._faults.undo_all)
        flash = Flash(run, card, shelf, self._faults)
        fits = bench.bench
        wait = Wait(time.sleep if fits is None else fits.pass_time)
        fixtures = {"flash": flash, "faults": self._faults, "card": card, "wait": wait}
        super().__init__(recorded, fixtures, SOURCE)
        if fits is not None:
            fits.fit(card.name, {})
        card.locate()
        truth = card.truth() if fits is not None else card.reset().after
        hashes = {n: shelf[f"root-key-{n}"].facts.programs_root for n in ("A", "B")}
        self._roots = {str(value): name for name, value in hashes.items()}
        self._factory = truth.bitstream_id
        root = self._root(truth.sr_root)
        cancelled = frozenset(() if isinstance(truth.sr_cancelled, Unknown) else truth.sr_cancelled)
        self.model = CardModel(recipes, card.address, root, root, cancelled, cancelled)

    def _root(self, found: Any) -> str | None:
        """Return the name of a root entry hash; one of somebody else is called by itself."""
        return self._roots.get(str(found), str(found)) if found else None

    @property
    def updates(self) -> int:
        """Updates so far."""
        return self.model.count

    def do(self, step: Step) -> None:
        """Take a step; what makes no sense to this card is passed over."""
        after = self.model.after(step)
        if after is None:
            return
        step = step.answered(self.model.code(step.image) if step.image else 0)
        self.steps.append(step)
        try:
            self.take([*steps_of(step)], silent=step.name in SILENCING)
        except NotApplicable:
            self.steps.pop()
            return
        self.model = after
        self._compare()

    def _compare(self) -> None:
        """Hold what the card showed last to the model."""
        records, model = reversed(self.recorded.records), self.model
        seen = next((record for record in records if isinstance(record, Observation)), None)
        if seen is None:
            return
        running = model.recipes[model.running].bitstream_id if model.running else None
        due: dict[str, Any] = {
            "sr_root": model.root,
            "sr_cancelled": sorted(model.cancelled),
            "bitstream_id": self._factory if running is None else running,
        }
        for name, value in due.items():
            found = seen.values.get(name)
            found = self._root(found) if name == "sr_root" else found
            if found != value and not isinstance(found, Unknown):
                raise Disagreement(f"{name} is {found!r}, and by the documents {value!r}")

    def tolerates(self, verdict: Verdict) -> bool:
        """Whether it is so by what was done: a card that is made to move is elsewhere."""
        return verdict.reporter == "inventory" and any(step.name == "move" for step in self.steps)

    def close(self) -> None:
        """Take back what was disturbed."""
        self._open.close()

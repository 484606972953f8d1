"""Explores a StarlingX system: its device images, labels, updates and boots, beside a model over recipes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from harness.judgement.records import Observation
from harness.plugin.exploring.played import Played, Recorded, Run
from harness.plugin.operations import Wait
from harness.plugin.systems import System
from harness.scenarios.card_model import CardModel
from harness.scenarios.exploration import Disagreement
from harness.scenarios.system_model import EVERYWHERE, IMAGES, LABELS, Act, SystemModel

if TYPE_CHECKING:
    from harness.inventory.model import Inventory
    from harness.lab.system_bench import Way
    from harness.plugin.images import ImageShelf

SOURCE: Final = "sysinv's API and device images of StarlingX, as in its sources; Intel UG 683519 of the card"
_AT: Final = (EVERYWHERE, *LABELS)
#: Everything that can be done to a system, kind by kind; what is done more often stands there more often.
_ONCE: Final[tuple[tuple[Act, ...], ...]] = (
    tuple(Act("apply", image, label) for image in IMAGES for label in _AT),
    tuple(Act("remove", which=str(number)) for number in range(4)),
    tuple(Act("label", label=label) for label in LABELS),
    (Act("update"),),
)
RULES: Final[tuple[tuple[Act, ...], ...]] = (
    *_ONCE,
    *_ONCE,
    tuple(Act("upload", image) for image in IMAGES),
    tuple(Act("delete", which=str(number)) for number in range(4)),
    tuple(Act("unlabel", which=str(number)) for number in range(2)),
    (Act("update-remove"), Act("update-unheard")),
    (Act("key"),),
    (Act("boot"), Act("move"), Act("boot-elsewhere")),
    (Act("wait"), Act("audit"), Act("abort"), Act("restart-services"), Act("restart-agents")),
    (Act("look"), Act("other-device"), Act("no-uuid"), Act("expire-tokens"), Act("restart-conductor")),
    tuple(Act("relabel", label=label) for label in LABELS),
)


class ExploredSystem(Played):
    """One emulated system with one card, started anew, beside its model.

    :param inventory: with the defects that the system has. :raises HarnessError: it does not start.
    """

    def __init__(
        self, inventory: Inventory, lab: str, system: str, shelf: ImageShelf, recipes: Any, way: Way
    ) -> None:
        from harness.lab.running import start_lab
        from harness.lab.system_bench import SystemBench, narrowed

        self.steps: list[Act] = []
        self._open = ExitStack()
        try:
            running = self._open.enter_context(start_lab(narrowed(inventory, lab, system), lab))
            recorded = Recorded(f"explore {system}")
            bench = self._open.enter_context(SystemBench(running, system, recorded, way=way))
            self._system = System(Run(running, recorded, shelf), bench, shelf)
            fixtures = {"system": self._system, "wait": Wait(self._system.pass_time)}
            super().__init__(recorded, fixtures, SOURCE)
            self._roots = {n: shelf[f"root-key-{n}"].facts.programs_root or "" for n in ("A", "B")}
            self._factory = 0
            self._system.look()
            card = next(iter(bench.cards.values())).driver
            self.model = SystemModel(CardModel(recipes, card.address))
            self._factory = self._shown("bitstream_id")
        except BaseException:
            self.close()
            raise

    @property
    def updates(self) -> int:
        """Updates of the card so far."""
        return self.model.card.count

    def do(self, step: Act) -> None:
        """Take a step; what documents say nothing of is passed over."""
        chosen = self.model.chosen(step)
        plan = self.model.plan(chosen) if chosen is not None else None
        if chosen is None or plan is None:
            return
        self.steps.append(chosen)
        self.model = plan.after
        self.take(plan.steps)
        self._compare()

    def _compare(self) -> None:
        """Hold what the card shows to the model."""
        card = self.model.card
        due = {
            "bitstream_id": card.bitstream_id(self._factory),
            "sr_root": self._roots[card.root] if card.root else "",
            "sr_cancelled": sorted(card.cancelled),
        }
        for name, value in due.items():
            found = self._shown(name)
            if found != value:
                raise Disagreement(f"{name} of the card is {found!r}, and by the documents {value!r}")

    def _shown(self, name: str) -> Any:
        """Return what the card showed in the last look."""
        seen = (
            r for r in reversed(self.recorded.records) if isinstance(r, Observation) and r.probe == "card"
        )
        return next(seen).values.get(name)

    def close(self) -> None:
        """End the system."""
        self._open.close()

"""Sweeps updates and resets of cards: every point that they pass, every action, each card by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from harness.errors import ConfigurationError
from harness.faults.actions import action
from harness.faults.points import check_point
from harness.judgement.model import VerdictKind
from harness.scenarios.flash_trials import CardLane, FlashPlan, Operation, Shelf
from harness.scenarios.image_sweep import ImageSweep
from harness.scenarios.sweep_results import Kind

if TYPE_CHECKING:
    from harness.inventory.model import Inventory
    from harness.lab.card_bench import CardBench
    from harness.record.history import History
    from harness.scenarios.promised import Promised
    from harness.scenarios.sweep import Ledger

_DONE: Final = {
    "flash": "reported done {n} while the image had not landed",
    "reset": "reported done {n} while the card was not back",
}
_WAITS: Final = (
    "what the cards do comes to its end first, and what disturbs them is undone; a real card takes up to "
    "40 minutes"
)


def kind_of(operation: Operation) -> Kind:
    """Return the words for a sweep of updates, or of resets."""
    return Kind(
        name=operation,
        lane="device",
        of="image" if operation == "flash" else "",
        # Its 0 does not prove that the card is back (fact sheet of the N3000, section 5.2).
        weak=frozenset({"rsu"}) if operation == "reset" else frozenset(),
        lies={
            VerdictKind.FALSE_SUCCESS: _DONE[operation],
            VerdictKind.FALSE_FAILURE: "reported failed {n} while it had done what was meant",
            VerdictKind.LOST: "said nothing {n} of what became of it",
            VerdictKind.NOT_ATTEMPTED: "reported failed {n} what it had not tried",
            VerdictKind.MISREPORT: "said {n} what is not so",
            VerdictKind.CONTRADICTION: "contradicted another reporter {n}",
            VerdictKind.UNKNOWN_AS_VALUE: "showed {n} as a value what could not be read",
            VerdictKind.UNVERIFIABLE: "could not be held to the truth {n}",
        },
        good=frozenset({"old", "new", "factory"}),
        landed="{n} ended as documents say of an undisturbed one",
        waits=_WAITS,
    )


@dataclass
class FlashSweep(ImageSweep):
    """What a sweep of updates or resets is; see :class:`harness.scenarios.sweep.Swept`.

    ``devices``: cards as ``host/card``. ``generations``: of the driver of emulated hosts, each one a lane;
    empty: as the inventory has it. ``allowed``: what may be done to real cards that cannot be undone.
    ``reports``: where runs are kept, for the leases.
    """

    inventory: Inventory
    lab_name: str | None
    devices: Sequence[str]
    plan: FlashPlan
    shelf: Shelf
    promised: Promised
    generations: Sequence[str] = ()
    allowed: frozenset[str] = frozenset()
    reports: Path = Path("reports")
    _cards: dict[str, tuple[str, str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for device in self.devices:
            for generation in self.generations or ("",):
                name = f"{device} {generation}" if generation else device
                self._cards[name] = (device, generation)

    @property
    def kind(self) -> Kind:
        """What it is, in words."""
        return kind_of(self.plan.operation)

    @property
    def lanes(self) -> Sequence[str]:
        """The cards, each with a generation where one is named."""
        return list(self._cards)

    @property
    def groups(self) -> Sequence[Sequence[str]]:
        """The cards of a real host one after the other: its power is cut for all. Others each by itself."""
        lab = self.inventory.lab(self.lab_name)
        found: dict[str, list[str]] = defaultdict(list)
        for name, (device, _) in self._cards.items():
            host, _ = lab.card(device)
            found[host.name if host.real else name].append(name)
        return list(found.values())

    @property
    def options(self) -> Mapping[str, Any]:
        """All that decides which trials there are; what the budget is does not."""
        plan = self.plan
        return {
            "inventory": str(self.inventory.path),
            "lab": self.inventory.lab(self.lab_name).name,
            "devices": list(self._cards),
            "images": list(plan.images),
            "actions": list(plan.actions),
            "points": list(plan.points),
            "repeat": plan.repeat,
            "root": plan.root,
        }

    def check(self) -> None:
        """Return if it can be done. :raises ConfigurationError: an option is wrong, or the wear not said."""
        for name in self.plan.actions:
            action(name)
        for point in self.plan.points:
            check_point(point)
        if self.plan.operation == "flash":
            self.promised.check(self.plan.images, self.plan.root)
        lab = self.inventory.lab(self.lab_name)
        real = [device for device in self.devices if lab.card(device)[0].real]
        if real and self.plan.wear is None and self.plan.operation == "flash":
            raise ConfigurationError(
                f"Each trial updates its card, which wears it, and {real[0]} is real.",
                hint="Say how many updates of each real card there may be: --wear 20.",
            )

    @contextmanager
    def bench(self, lane: str) -> Iterator[CardBench]:
        """Start the card's host, or lease the real card."""
        from harness.lab.card_bench import open_card

        device, generation = self._cards[lane]
        with open_card(
            self.inventory,
            self.lab_name,
            device,
            generation=generation,
            allowed=self.allowed,
            reports=self.reports,
            reason=f"hil sweep {self.plan.operation}",
        ) as bench:
            yield bench

    def lane(self, name: str, bench: CardBench, history: History, ledger: Ledger, stop: Event) -> CardLane:
        """Return the trials of one card."""
        return CardLane(
            bench, history, self.plan, self.shelf, self.promised, name=name, ledger=ledger, stop=stop
        )

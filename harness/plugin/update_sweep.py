"""Sweeps a control plane's update of a card: every point of it, every action, each system by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from harness.errors import ConfigurationError
from harness.judgement.checkers.image_state import REPORTER
from harness.judgement.model import VerdictKind
from harness.lab.releases import CORRECTED, Release, released
from harness.lab.system_bench import narrowed, systems_of
from harness.plugin.update_trials import SystemLane, UpdatePlan
from harness.scenarios.image_sweep import ImageSweep
from harness.scenarios.sweep_results import Kind
from harness.scenarios.update_actions import ACTIONS, check_point

if TYPE_CHECKING:
    from harness.inventory.model import Inventory
    from harness.plugin.images import ImageShelf
    from harness.record.history import History
    from harness.scenarios.promised import Promised
    from harness.scenarios.sweep import Ledger

_LIES: Final = {
    VerdictKind.FALSE_SUCCESS: "said completed {n} of an image that its card does not hold",
    VerdictKind.FALSE_FAILURE: "said failed {n} of an image that its card holds",
    VerdictKind.LOST: "said in-progress {n} for ever",
    VerdictKind.NOT_ATTEMPTED: "said failed {n} of an image that no card has seen",
    VerdictKind.MISREPORT: "said {n} what is not so",
    VerdictKind.CONTRADICTION: "contradicted itself {n}",
    VerdictKind.STALE: "said in-progress {n} of what was over long ago",
    VerdictKind.UNVERIFIABLE: "could not be held to the truth {n}",
}


def kind_of(release: Release) -> Kind:
    """Return the words for a sweep of systems of a release."""
    sound = release == CORRECTED
    return Kind(
        name="update",
        lane="system",
        of="image",
        weak=frozenset() if sound else frozenset({REPORTER}),
        lies=_LIES,
        good=frozenset({"old", "new", "factory"}),
        landed="{n} ended as documents say of an undisturbed one",
        waits="the updates under way come to their end first",
        whole=True,
        stated={name: action.stated for name, action in ACTIONS.items()} if sound else None,
    )


@dataclass(frozen=True, slots=True)
class UpdateSweep(ImageSweep):
    """What a sweep of updates by control planes is; see :class:`harness.scenarios.sweep.Swept`.

    ``systems``: emulated ones of the lab, by name. ``release``: what they are, with their known defects.
    """

    inventory: Inventory
    lab_name: str | None
    systems: Sequence[str]
    plan: UpdatePlan
    shelf: ImageShelf
    promised: Promised
    release: Release = CORRECTED

    @property
    def kind(self) -> Kind:
        """What it is, in words."""
        return kind_of(self.release)

    @property
    def lanes(self) -> Sequence[str]:
        """The systems."""
        return self.systems

    @property
    def groups(self) -> Sequence[Sequence[str]]:
        """Each system by itself: they share nothing."""
        return [[name] for name in self.systems]

    @property
    def options(self) -> Mapping[str, Any]:
        """All that decides which trials there are."""
        plan = self.plan
        return {
            "inventory": str(self.inventory.path),
            "lab": self.inventory.lab(self.lab_name).name,
            "systems": list(self.systems),
            "images": list(plan.images),
            "actions": list(plan.actions),
            "points": list(plan.points),
            "repeat": plan.repeat,
            "way": plan.way,
            "release": self.release.to_json(),
        }

    def check(self) -> None:
        """Return if it can be done. :raises ConfigurationError: an option is wrong."""
        self.release.check()
        for point in self.plan.points:
            check_point(point)
        self.promised.check(self.plan.images)
        lab = self.inventory.lab(self.lab_name)
        for name in self.systems:
            if lab.controllers[name].emulated is None:
                raise ConfigurationError(
                    f"{name} is real, and what disturbs an update can be brought about in an emulated system "
                    "alone.",
                    hint=f"Name an emulated one by --system: {', '.join(emulated_in(lab)) or 'none'}.",
                )

    @contextmanager
    def bench(self, lane: str) -> Iterator[Inventory]:
        """Give the inventory with one system alone, as the release has it; each trial starts it anew."""
        own = narrowed(self.inventory, self.lab_name, lane)
        yield released(own, own.default_lab, self.release)

    def lane(self, name: str, bench: Inventory, history: History, ledger: Ledger, stop: Event) -> SystemLane:
        """Return the trials of one system."""
        return SystemLane(
            bench, name, history, self.plan, self.shelf, self.promised, ledger=ledger, stop=stop
        )


def emulated_in(lab: Any) -> list[str]:
    """Return the emulated systems of a lab that have a card."""
    return [name for name in systems_of(lab) if lab.controllers[name].emulated is not None]

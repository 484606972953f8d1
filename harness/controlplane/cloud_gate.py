"""The interlock of a distributed cloud: what an orchestration may bring to the cards of its subclouds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from harness.cards.interlock import CardEntry
from harness.cards.update_count import UpdateCount
from harness.controlplane.changes import Change
from harness.controlplane.cloud_protocol import ENDED, CloudReading, StrategyChange
from harness.controlplane.gate import Gate, Permits, Place
from harness.controlplane.protocol import DeviceImage, Reading
from harness.errors import RefusedError

#: Of a strategy that does nothing yet, or nothing more.
_IDLE: Final = ("initial", *ENDED)


class CloudGate(Gate):
    """Permits for a system controller: for its images, and for the strategy that brings them to subclouds.

    :param cards: of all subclouds, wherever they are. :param cloud: is asked which subclouds have a step.
    The rest as for :class:`harness.controlplane.gate.Gate`.
    """

    def __init__(
        self,
        name: str,
        cards: Mapping[Place, CardEntry],
        cloud: CloudReading,
        *,
        real: bool,
        allowed: Collection[str] = frozenset(),
        fence: Callable[[], None] = lambda: None,
        updates: UpdateCount | None = None,
    ) -> None:
        super().__init__(name, cards, real=real, allowed=allowed, fence=fence, updates=updates)
        self._cloud = cloud
        self._subclouds: dict[str, tuple[Gate, Reading]] = {}

    def add(self, subcloud: str, gate: Gate, system: Reading) -> None:
        """Know a subcloud: its gate, and what it shows."""
        self._subclouds[subcloud] = gate, system

    def permits(self, change: Change, system: Reading) -> Permits:
        """Return the permits for ``change``; an image that is applied while a strategy runs may go with it.

        :raises RefusedError: it may do to a card what cannot be undone, and that is not permitted there.
        """
        given = super().permits(change, system)
        if change.act == "image-apply":
            strategy = self._cloud.strategy()
            if strategy is not None and strategy.state not in _IDLE:
                self._check_steps([DeviceImage(change.target, applied=True, applied_labels=change.labels)])
        return given

    def strategy_permits(self, change: StrategyChange, system: Reading) -> Permits:
        """Return the permits for a change of the strategy. ``system``: where the images are.

        :raises RefusedError: applying it may do to a card what cannot be undone, and that is not permitted.
        """
        if change.act == "strategy-apply":
            self._check_steps(system.images())
        return Permits(change, self.name, self._fence)

    def _check_steps(self, images: Collection[DeviceImage]) -> None:
        for name in self._reached():
            if name not in self._subclouds:
                if any(self._facts(image.uuid).irreversible for image in images):
                    raise RefusedError(
                        f"An image of {self.name} does what cannot be undone, or it cannot be told, and the "
                        f"subcloud {name}, which would get it, is not in the inventory; nothing was changed."
                    )
                continue
            gate, system = self._subclouds[name]
            gate.check_orchestrated(list(images), system)

    def _reached(self) -> Iterator[str]:
        """Yield the subclouds that the strategy reaches: all of them where it does not say."""
        steps = self._cloud.steps()
        yield from (step.cloud for step in steps) if steps else self._subclouds

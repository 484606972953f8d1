"""One card by itself: its host alone in an emulated lab of its own, or the real host; and its driver."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from harness.cards.driver import SETTLE, CardDriver
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.hosts.protocol import Host as Reached
    from harness.inventory.model import Card, Host, Inventory
    from harness.lab.bench import Bench
    from harness.lab.running import RunningLab
    from harness.record.operations import Recording

#: Seconds that an emulated card may take to answer after a reset: lab time jumps, so it is there at once.
_EMULATED_SETTLE = 0.2


@dataclass(frozen=True, slots=True)
class CardBench:
    """A card that can be reached. ``bench``: fits, holds and disturbs it; None where it is real."""

    name: str
    lab: RunningLab
    host: Host
    entry: Card
    reached: Reached
    allowed: Collection[str] = frozenset()

    @property
    def bench(self) -> Bench | None:
        """What fits and holds the card; None where it is real."""
        return self.lab.bench if self.lab.offers(self.host.name, "bench") else None

    def driver(self, history: Recording) -> CardDriver:
        """Return the card's driver, which records to ``history``."""
        return CardDriver(
            self.reached,
            self.entry,
            history,
            real=self.host.real,
            allowed=self.allowed,
            sysfs=self.host.sysfs,
            tools=self.host.tools.model_dump(),
            upload_dir=self.host.upload_dir,
            settle=SETTLE if self.host.real else _EMULATED_SETTLE,
            fence=partial(self.lab.leases.check, self.name),
            updates=self.lab.leases.updates,
        )


@contextmanager
def open_card(
    inventory: Inventory,
    lab_name: str | None,
    card: str,
    *,
    generation: str = "",
    allowed: Collection[str] = frozenset(),
    reports: Path,
    reason: str,
) -> Iterator[CardBench]:
    """Have the card ``host/card`` to ourselves: an emulated host is started alone, a real one is leased.

    :param generation: of the driver that an emulated host has; empty: that of the inventory.
    :param reports: where runs are kept, for the leases. :param reason: what the lease is taken for.
    :raises ConfigurationError: there is no such card, or its host is not of a generation that can be chosen.
    :raises LeasedError: somebody else has the card. :raises InfrastructureError: the lab does not start.
    """
    from harness.hosts.connect import connect
    from harness.lab.leasing import leases_of
    from harness.lab.running import start_lab

    alone = host_alone(inventory, lab_name, card, generation)
    host, entry = alone.lab(None).card(card)
    with (
        closing(leases_of(reason, reports)) as leases,
        start_lab(alone, leases=leases) as lab,
        closing(connect(host, lab.access(host.name))) as reached,
    ):
        lab.leases.reason = reason
        with lab.leases.leased(card):
            yield CardBench(card, lab, host, entry, reached, allowed)


def host_alone(inventory: Inventory, lab_name: str | None, card: str, generation: str = "") -> Inventory:
    """Return the inventory with nothing in the lab but the host of a card.

    :raises ConfigurationError: there is no such card, or its host is not of a generation that can be chosen.
    """
    lab = inventory.lab(lab_name)
    host, _ = lab.card(card)
    if generation:
        if host.emulated is None or host.emulated.recording is not None:
            raise ConfigurationError(
                f"The driver of {host.name} is what it is; only that of an emulated host can be chosen.",
                hint="Leave --generation out, or choose other cards by --device.",
            )
        emulated = host.emulated.model_copy(update={"generation": generation})
        host = host.model_copy(update={"emulated": emulated})
    own = host.model_copy(update={"system": None})
    only = lab.model_copy(update={"hosts": {host.name: own}, "controllers": {}, "registries": {}})
    return inventory.model_copy(update={"labs": {lab.name: only}, "default_lab": lab.name})

"""How many updates of a card a run has begun: one count for all processes of the run, beside the leases."""

from __future__ import annotations

from sqlalchemy import ColumnElement, select, update

from harness.errors import InfrastructureError
from harness.leases.owner import RunKey
from harness.store.kept import KeptStore
from harness.store.tables import UPDATES


class UpdateStore(KeptStore):
    """The updates that runs have begun; a run and a card of which nothing was counted have none."""

    def begun(self, run: RunKey, card: str) -> int:
        """Return how many updates of a card ``run`` has begun. :param card: what tells it from all others."""
        asked = select(UPDATES.c.begun).where(*_of(run, card))
        with self._changing() as connection:
            return int(connection.execute(asked).scalar() or 0)

    def begin(self, run: RunKey, card: str, updates: int = 1) -> None:
        """Count ``updates`` more of a card. Nothing is lost where several processes do it at once."""
        with self._changing() as connection:
            row = {"run": run.name, "machine": run.machine, "card": card, "begun": 0, "at": self._now}
            self._enter(connection, UPDATES, row)
            more = {"begun": UPDATES.c.begun + updates, "at": self._now}
            connection.execute(update(UPDATES).where(*_of(run, card)).values(more))

    def _unusable(self, why: str) -> InfrastructureError:
        return InfrastructureError(
            f"The updates that this run has begun cannot be counted, so that none is begun: {why}",
            hint="They are where the leases are: --hil-leases or HIL_LEASES; the index's database otherwise.",
        )


def _of(run: RunKey, card: str) -> tuple[ColumnElement[bool], ...]:
    return (UPDATES.c.run == run.name, UPDATES.c.machine == run.machine, UPDATES.c.card == card)

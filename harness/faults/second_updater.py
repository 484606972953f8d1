"""A second updater that wants to begin while a card updates: it knows no lease, and a bench alone has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.faults.actions import Momentary, bench_of

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.lab.running import RunningLab

NAME: Final = "second-updater"


class SecondUpdater(Momentary):
    """Hands an image to the card's driver as another process does that knows nothing of our lease.

    The driver must tell it to be busy (Linux, drivers/base/firmware_loader/sysfs_upload.c:
    ``fw_upload_start``). ``let_in``: it did not; empty while that is not known, or it did.

    :param name: of the image, for people.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self._name = name
        self._data = data
        self.let_in = ""

    def check(self, point: str, card: CardDriver, lab: RunningLab) -> None:
        """Hold it to a card on a bench, at a point where an update runs."""
        super().check(point, card, lab)
        bench_of(card, lab, f"have a second updater of {card.name}")

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Let it want to begin; return what it was told."""
        bench = bench_of(card, lab, f"have a second updater of {card.name}")
        answer = bench.second_update(card.name, self._data)
        wanted = f"a second updater wanted to write {self._name}"
        if not answer:
            self.let_in = f"{wanted} to {card.name} while an update ran, and was let in"
        return f"{wanted}: {answer or 'it was let in'}"

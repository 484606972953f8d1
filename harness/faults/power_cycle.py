"""A power cycle of a card's host as an operation of its own, which is judged as a reset is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.cards.recording import Recorder
from harness.interruption import uninterrupted
from harness.judgement.records import Promise

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.lab.running import RunningLab
    from harness.record.operations import Recording

#: Image load after power-up: the user image, or the factory's where that does not configure.
_RETURNS = Promise("returns", source="Intel FPGA PAC N3000 Security User Guide (683519)")


def cycle_power(card: CardDriver, lab: RunningLab, history: Recording) -> None:
    """Switch the host of ``card`` off and on, find the card again, and read it.

    :raises BlockedError: the host's power cannot be switched.
    :raises InfrastructureError: the host, or the card, does not come back.
    """
    record = Recorder(history)
    with record.operation("power-cycle", card.subject, {}, _RETURNS) as intent:
        card.observe("before", intent)
        with uninterrupted(f"cycle the power of {card.host.name}"):
            lab.power(card.host.name, "cycle")
            card.host.close()
            card.host.wait_until_reachable(deadline=300.0)
    card.locate()
    card.observe("after-reset", intent)

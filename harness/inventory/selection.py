"""Which devices of a lab an option names."""

from __future__ import annotations

from collections.abc import Iterable

from harness.inventory.entries import unknown_name
from harness.inventory.model import Lab


def check_devices(lab: Lab, wanted: Iterable[str]) -> None:
    """:raises ConfigurationError: ``wanted`` has what is neither a host nor a card of ``lab``."""
    cards = [f"{host.name}/{card.name}" for host, card in lab.cards()]
    for name in wanted:
        if name not in cards and name not in lab.hosts:
            raise unknown_name("card or host", name, [*cards, *lab.hosts], f"lab {lab.name}")

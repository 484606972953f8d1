"""Holds the profiles of an inventory's emulated cards to what the emulator knows, before a lab starts."""

from __future__ import annotations

from harness.inventory.load import check_profiles
from harness.inventory.model import Inventory


def check_emulated(inventory: Inventory) -> None:
    """Check every ``profile`` of ``inventory``.

    :raises ConfigurationError: a name or value that the emulated card has not; with file, line and key.
    """
    from harness.emulator.card.profile import CardProfile

    check_profiles(inventory, CardProfile.from_mapping)

"""Ask the emulated card alone what it makes of a file, in a state that is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.emulator.card.authentication import SectionTrust, Trust, authenticate
from harness.emulator.card.flash import INTEL_BMC_ROOT, SECTIONS, CardState, Section
from harness.emulator.card.profile import CardProfile
from harness.errors import ConfigurationError
from harness.images.layout import MAX_CSK_ID, MINIMUM_SIZE, STAGING_SIZE


@dataclass(frozen=True, slots=True)
class Simulated:
    """The card's answer to one file. ``code``: as ``0x11``; None where the card never sees the file."""

    file: str
    accepted: bool
    code: str | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        return {"file": self.file, "accepted": self.accepted, "code": self.code, "reason": self.reason}


def card_state(section: Section, root: str | None, cancelled: frozenset[int], bmc_root: str) -> CardState:
    """Return the state that the options of ``hil emulator simulate`` describe.

    ``root``: root entry hash of ``section``; None is a blank card, on which no section has one. Else the
    BMC section has the hash that cards are shipped with, unless ``bmc_root`` (``none``, ``factory`` or a
    hash; empty for this rule) says otherwise.

    :raises ConfigurationError: values that no card can have.
    """
    if cancelled and root is None:
        raise ConfigurationError(
            "A card without a root entry hash has no cancelled CSKs.", hint="Give --root as well."
        )
    if section == "BMC" and root and bmc_root:
        raise ConfigurationError("With --section BMC, --root already is the BMC section's.")
    default = INTEL_BMC_ROOT if root is not None else None
    choices = {"": default, "none": None, "factory": INTEL_BMC_ROOT}
    state = CardState(bmc_root=choices[bmc_root] if bmc_root in choices else parse_hash(bmc_root))
    if root is not None:
        state = state.with_root(section, parse_hash(root))
    for csk_id in cancelled:
        state = state.with_cancelled(section, csk_id)
    return state


def simulate(file: str, data: bytes, state: CardState, profile: CardProfile) -> Simulated:
    """Return what a card in ``state``, with all of it in force, makes of ``data``.

    The tool does not send a file shorter than 1152 bytes, and the driver none that staging cannot hold.
    """
    if len(data) < MINIMUM_SIZE:
        return Simulated(file, False, None, f"the tool refuses: shorter than {MINIMUM_SIZE} bytes")
    if len(data) > STAGING_SIZE:
        return Simulated(file, False, None, f"the driver refuses: longer than {STAGING_SIZE} bytes")
    decision = authenticate(data, _in_force(state), profile)
    return Simulated(file, decision.accepted, f"0x{decision.code:02X}", decision.reason)


def _in_force(state: CardState) -> Trust:
    return {
        section: SectionTrust(root := state.root(section), root is not None, state.cancelled(section))
        for section in SECTIONS
    }


def parse_hash(text: str) -> str:
    """Return a root entry hash as a card's state has it. :raises ConfigurationError: it is none."""
    value = text.strip().lower().removeprefix("0x")
    if len(value) != 64 or value.strip("0123456789abcdef"):
        raise ConfigurationError(
            f"{text!r} is no root entry hash.",
            hint="Give 64 hexadecimal digits; `hil image root-hash FILE` prints them.",
        )
    return value


def parse_ids(text: str) -> frozenset[int]:
    """Return the CSK ids of a list such as ``0,5`` or ``0-2,5``. :raises ConfigurationError: it is none."""
    ids: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigurationError(f"{part!r} is no CSK id.", hint="Give a list such as 0,5 or 0-2,5.")
        numbers = range(int(first), int(last or first) + 1)
        if not numbers or numbers[-1] > MAX_CSK_ID:
            raise ConfigurationError(f"{part!r}: CSK ids are 0 to {MAX_CSK_ID}, the lower one first.")
        ids.update(numbers)
    return frozenset(ids)

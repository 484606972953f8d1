"""The emulated N3000 card: it decides from bytes, in lab time, and keeps its flash through a crash."""

from harness.emulator.card.block_update import BlockUpdate
from harness.emulator.card.card import CONDITIONS, IMAGE_LOAD_WORDS, Card, CardSpec, PciFunction
from harness.emulator.card.dialects import Generation
from harness.emulator.card.flash import CardState, Section
from harness.emulator.card.profile import CHECK_CODES, CardProfile, profile_docs, profile_names
from harness.emulator.card.store import CardStore
from harness.emulator.card.upload import SecureUpdate

__all__ = [
    "CHECK_CODES",
    "CONDITIONS",
    "IMAGE_LOAD_WORDS",
    "BlockUpdate",
    "Card",
    "CardProfile",
    "CardSpec",
    "CardState",
    "CardStore",
    "Generation",
    "PciFunction",
    "Section",
    "SecureUpdate",
    "profile_docs",
    "profile_names",
]

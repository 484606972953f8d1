"""What came of an operation on a card, before it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.cards.tool_output import Statement
from harness.cards.truth import CardTruth

if TYPE_CHECKING:
    from harness.images.facts import ImageFacts


@dataclass(frozen=True, slots=True)
class FlashResult:
    """What came of a flash, before it is judged.

    ``intent``: sequence number of its intent. ``statement``: what the tool said. ``auth_code``: what
    the kernel logged, such as ``0x11``; empty for nothing. ``seconds``: how long the tool ran.
    """

    intent: int
    facts: ImageFacts
    statement: Statement
    exit_code: int
    auth_code: str
    before: CardTruth
    after: CardTruth
    seconds: float


@dataclass(frozen=True, slots=True)
class ResetResult:
    """What came of a reset. ``address``: where the card is now; None where it did not come back."""

    intent: int
    statement: Statement
    exit_code: int
    address: str | None
    after: CardTruth

"""What a scenario needs of the driver of a card, and does not apply without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import NotOfferedError
from harness.scenarios.prepare import NotApplicable

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver


def require_update_attributes(card: CardDriver) -> None:
    """Return if the driver of ``card`` takes an update, shows and cancels it, by attributes.

    Driver generations A and C have an ioctl for that. There an update ends with the tool that drives it, or
    goes on where nobody sees it, and only the tool can start or cancel one.

    :raises NotApplicable: its driver is of such a generation.
    """
    try:
        card.require_update_attributes()
    except NotOfferedError as error:
        raise NotApplicable(error.message) from None

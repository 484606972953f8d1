"""May a host lose its power now? Not while an update of a card of it runs, and not another card's host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from harness.errors import InfrastructureError, RefusedError
from harness.judgement.values import Unknown
from harness.leases.hold import LOCK_FOLDER, held_by

if TYPE_CHECKING:
    from harness.hosts.protocol import Host as Reached
    from harness.inventory.model import Host

_FIELDS = frozenset({"identity", "update_status"})


def check_at_rest(
    host: Host, reach: Callable[[Host], AbstractContextManager[Reached]], *, locks: str = LOCK_FOLDER
) -> None:
    """Return if no update runs on the cards of ``host``, and they are those of the inventory.

    :param locks: folder of the locks on the host.
    A host that does not answer, and a card that cannot be read, are let pass: power is what brings them back.

    :raises RefusedError: an update runs, as the card shows it or its hold does; or another card stands there.
    """
    from harness.cards.discovery import find_card
    from harness.cards.interlock import check_standing
    from harness.cards.truth import read_truth

    if not host.cards:
        return
    try:
        with reach(host) as reached:
            for card in host.cards.values():
                name = f"{host.name}/{card.name}"
                found = find_card(reached, card.identity, sysfs=host.sysfs) if card.identity else None
                seen = read_truth(reached, found or card.address, sysfs=host.sysfs, fields=_FIELDS)
                if not isinstance(seen.identity, Unknown):
                    check_standing(card, seen, name)
                    if (pid := held_by(reached, seen.identity, locks)) is not None:
                        raise RefusedError(
                            f"{name} is in use: process {pid} holds it on {host.name}; the power of that "
                            "was not switched.",
                            hint="Wait for it to end: an update without power can leave half an image.",
                        )
    except InfrastructureError:
        return

"""The health of a lab's cards: kept for those that others can reach too, asked before one is written to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from harness.errors import BlockedError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from harness.health.checks import Check
    from harness.health.looking import HostLook
    from harness.health.states import Event
    from harness.health.store import Health, HealthStore, Place
    from harness.hosts.protocol import Host as Reached
    from harness.inventory.model import Host, Lab
    from harness.leases.holder import LeaseHolder

#: How a state is told of a card; the others are told by their own word.
_TOLD: Final = {"maintenance": "in maintenance"}


class LabHealth:
    """The health of one lab's cards.

    :param key: returns what tells a card (``host/card``) from all others; None where nobody else can reach
        it, so that its health ends with the run. :param holder: whose database has it, and who speaks.
    """

    def __init__(self, entry: Lab, key: Callable[[str], str | None], holder: LeaseHolder) -> None:
        self._entry = entry
        self._key = key
        self._holder = holder
        #: Cards that this process has checked, and found nothing that keeps it from them.
        self._checked: set[str] = set()
        #: The same of their hosts, which are asked once.
        self._hosts: dict[str, HostLook] = {}

    def of(self, name: str) -> Health | None:
        """Return the health of the card ``host/card``; None where none is kept.

        :raises InfrastructureError: the database does not answer.
        """
        place = self._place(name)
        return None if place is None else self._store().of(place)

    def require(self, name: str) -> None:
        """Return if runs may use the card. :raises BlockedError: it is kept from them; says who, when, why.

        :raises InfrastructureError: the database does not answer.
        """
        found = self.of(name)
        if found is not None and not found.state.usable:
            raise kept_away(found)

    def note(self, name: str, event: Event, reason: str, evidence: str = "") -> None:
        """Let ``event`` happen to the card's health, where that is kept.

        :raises InfrastructureError: the database does not answer.
        """
        place = self._place(name)
        if place is not None:
            from harness.health.store import Cause

            owner = self._holder.owner
            self._store().note(place, event, Cause(str(owner), reason, owner.name, evidence))

    def check(self, name: str, reach: Callable[[Host], AbstractContextManager[Reached]]) -> None:
        """Look at the card and its host before it is used, once; what is found goes into its health.

        :raises BlockedError: something keeps it from being used; the card was not touched.
        :raises InfrastructureError: its host, or the database, does not answer.
        """
        host, card = self._entry.card(name)
        if name in self._checked or self._place(name) is None:
            return
        if host.emulated is not None and host.emulated.recording is not None:
            return  # it answers what was asked when it was recorded, and nothing else
        from harness.health.checks import Grade, worst
        from harness.health.looking import look_at_card

        with reach(host) as reached:
            looked = look_at_card(host, card, reached, of_host=self._hosts.get(host.name))
        if worst(looked.host.checks) is not Grade.BAD:
            self._hosts[host.name] = looked.host
        self.found(name, looked.checks)
        bad = [check for check in looked.checks if check.grade is Grade.BAD]
        if bad:
            raise BlockedError(
                f"{name} is not used: {'; '.join(told(check) for check in bad)}.",
                hint=" ".join(dict.fromkeys(check.hint for check in bad)),
            )
        self._checked.add(name)

    def found(self, name: str, checks: tuple[Check, ...]) -> None:
        """Take what checks of the card found into its health: a doubt, or none.

        :raises InfrastructureError: the database does not answer.
        """
        from harness.health.checks import Grade
        from harness.health.states import Event

        doubts = [check for check in checks if check.grade is not Grade.OK]
        event = Event.DOUBT if doubts else Event.CLEAN
        self.note(name, event, "; ".join(told(check) for check in doubts) or "its checks found nothing")

    def _place(self, name: str) -> Place | None:
        key = self._key(name)
        if key is None:
            return None
        from harness.health.store import Place

        return Place(key, name, self._entry.name)

    def _store(self) -> HealthStore:
        from harness.health.store import HealthStore

        return HealthStore(self._holder.database)


def told(check: Check) -> str:
    """Return a check as a part of a sentence."""
    return f"{check.name}: {check.finding}"


def kept_away(health: Health) -> BlockedError:
    """Return the error for a run that wants a card which is kept from runs."""
    name = health.place.name
    return BlockedError(
        f"{name} is {in_words(health)}",
        hint=f"Once it is put right: hil card clear {name} --reason '...'",
    )


def in_words(health: Health) -> str:
    """Return a card's health in words: the state, since when, by whom and why."""
    state = _TOLD.get(health.state.value, health.state.value)
    if not health.since:
        return state
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(health.since))
    return f"{state} since {when}, by {health.cause.who}: {health.cause.reason}"

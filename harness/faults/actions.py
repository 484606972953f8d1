"""What a fault does when its point is reached, and how it is undone."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from harness.errors import BlockedError, ConfigurationError

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.lab.running import RunningLab


class Action(Protocol):
    """One disturbance of one card."""

    #: Whether the action strikes before the operation starts and lasts until it is undone.
    lasting: bool
    #: Whether the host is gone for a while when it strikes.
    cuts_the_link: bool

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Disturb; return what was done, for the history."""
        ...

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """Take the disturbance back; may be called when it never fired."""
        ...


class Momentary:
    """Base of actions that are over when they have struck: there is nothing to undo."""

    lasting = False
    cuts_the_link = False

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """Nothing lasts, so nothing is undone."""


class Signal(Momentary):
    """Sends a signal to the flashing tool, as an impatient operator or a stopping service does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Send the signal to the tool that is flashing the card."""
        card.signal(self._name)
        return f"sent SIG{self._name} to the flashing tool"


class Cancel(Momentary):
    """Asks the driver to cancel the update, through its ``cancel`` attribute."""

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Write to the cancel attribute."""
        card.cancel_update()
        return "wrote 1 to the update's cancel attribute"


class Power:
    """Cuts the host's power (``off``) or reboots it; undone when it is back and answers."""

    lasting = False
    cuts_the_link = True

    def __init__(self, how: Literal["off", "reboot"]) -> None:
        self._how = how
        self._fired = False

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Switch the host."""
        self._fired = True
        lab.power(card.host.name, self._how)
        return "cut the host's power" if self._how == "off" else "rebooted the host"

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """Bring the host back and find the card again."""
        if self._fired:
            self._fired = False
            if self._how == "off":
                lab.power(card.host.name, "on")
            card.host.close()
            card.locate()


class Circumstance:
    """Puts the card or its driver into a circumstance that only a bench can make."""

    lasting = True
    cuts_the_link = False

    def __init__(self, name: str) -> None:
        self._name = name

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Let the bench do it. :raises BlockedError: the lab has no bench."""
        if lab.bench is None:
            raise BlockedError(
                f"The lab {lab.name!r} cannot put a card into the circumstance {self._name!r}.",
                hint="Run this scenario on an emulated lab.",
            )
        lab.bench.condition(card.name, self._name, True)
        return f"put the card into the circumstance {self._name!r}"

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """End the circumstance."""
        if lab.bench is not None:
            lab.bench.condition(card.name, self._name, False)


class Moves:
    """Lets the card come back at another PCI address after its next reset, as rsu's rescan can do."""

    lasting = True
    cuts_the_link = False

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Let the bench do it. :raises BlockedError: the lab has no bench."""
        if lab.bench is None:
            raise BlockedError(
                f"The lab {lab.name!r} cannot choose the address at which a card comes back.",
                hint="Run this scenario on an emulated lab.",
            )
        address = moved_address(card.address)
        lab.bench.moves_to(card.name, address)
        return f"the card will come back at {address}"

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """End the circumstance."""
        if lab.bench is not None:
            lab.bench.moves_to(card.name, None)


def moved_address(address: str) -> str:
    """Return ``address`` one bus further down, as in b3 -> b2 (starlingx/config 275cc2314)."""
    domain, bus, rest = address.split(":")
    return f"{domain}:{int(bus, 16) - 1:02x}:{rest}"


_MAKERS: dict[str, Callable[[], Action]] = {
    "sigterm": partial(Signal, "TERM"),
    "sigint": partial(Signal, "INT"),
    "cancel": Cancel,
    "power-cut": lambda: Power("off"),
    "reboot": lambda: Power("reboot"),
    "move": Moves,
    "ignore-upload": partial(Circumstance, "ignore-upload"),
    "busy": partial(Circumstance, "busy"),
    "all-ones": partial(Circumstance, "all-ones"),
    "no-security-group": partial(Circumstance, "no-security-group"),
    "stays-away": partial(Circumstance, "stays-away"),
}


def action(name: str) -> Action:
    """Return a fresh action by its name. :raises ConfigurationError: there is none of that name."""
    if name not in _MAKERS:
        near = difflib.get_close_matches(name, _MAKERS, 1)
        raise ConfigurationError(
            f"There is no fault action {name!r}.",
            hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(sorted(_MAKERS))}.",
        )
    return _MAKERS[name]()

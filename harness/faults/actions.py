"""What a fault does when its point is reached, and how it is undone."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from harness.errors import ConfigurationError, NotOfferedError
from harness.faults.watchdog import Watchdog

if TYPE_CHECKING:
    from harness.cards.driver import CardDriver
    from harness.lab.bench import Bench
    from harness.lab.running import RunningLab


class Action(Protocol):
    """One disturbance of one card."""

    #: Whether the host is gone for a while when it strikes.
    cuts_the_link: bool

    def check(self, point: str, card: CardDriver, lab: RunningLab) -> None:
        """Return if the action can strike at ``point``; asked before anything begins.

        :raises BlockedError: the lab lacks what it takes. :raises NotOfferedError: it can never have that.
        :raises ConfigurationError: it makes no sense there.
        """
        ...

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Disturb; return what was done, for the history."""
        ...

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """Take the disturbance back. May be called again after it failed, and where ``fire`` failed."""
        ...


class Momentary:
    """Base of actions that are over when they have struck: there is nothing to undo."""

    cuts_the_link = False

    def check(self, point: str, card: CardDriver, lab: RunningLab) -> None:
        """Hold it to striking while the tool runs."""
        if point == "start":
            raise ConfigurationError(
                "Nothing runs at the point 'start' that could be interrupted.",
                hint="Arm it at a phase of the update, such as 'transferring'.",
            )

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """Nothing lasts, so nothing is undone."""


class Note(Momentary):
    """Disturbs nothing: that the operation came to the point is in the history, no more."""

    def check(self, point: str, card: CardDriver, lab: RunningLab) -> None:
        """Return: it makes sense everywhere."""

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Say so."""
        return "came to this point"


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

    def check(self, point: str, card: CardDriver, lab: RunningLab) -> None:
        """Hold it to a driver that has the attribute: half an update is too late to find out."""
        super().check(point, card, lab)
        card.require_update_attributes()

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Write to the cancel attribute."""
        card.cancel_update()
        return "wrote 1 to the update's cancel attribute"


class Power:
    """Cuts the host's power (``off``) or reboots it; undone when it is back and answers."""

    cuts_the_link = True

    def __init__(self, how: Literal["off", "reboot"]) -> None:
        self._how = how
        self._watchdog: Watchdog | None = None

    def check(self, point: str, card: CardDriver, lab: RunningLab) -> None:
        """Hold it to a host that can be switched so: half an update is too late to find out."""
        host = card.host.name
        if self._how == "reboot":
            bench_of(card, lab, f"reboot {host}; it only switches its power")
        lab.require(host, "power")

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Switch the host; a real one is switched on again even if the harness dies meanwhile."""
        if self._how == "off" and (undo := lab.power_on_command(card.host.name)):
            self._watchdog = Watchdog(*undo)
        lab.power(card.host.name, self._how, while_updating=True)
        return "cut the host's power" if self._how == "off" else "rebooted the host"

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """Bring the host back and find the card again."""
        if self._how == "off":
            lab.power(card.host.name, "on")
            if self._watchdog is not None:
                self._watchdog.stand_down()
                self._watchdog = None
        card.host.close()
        card.locate()


class Circumstance:
    """Puts the card or its driver into a circumstance that only a bench can make."""

    cuts_the_link = False

    def __init__(self, name: str) -> None:
        self._name = name

    def check(self, point: str, card: CardDriver, lab: RunningLab) -> None:
        """Hold it to a card on a bench."""
        bench_of(card, lab, f"put {card.name} into the circumstance {self._name!r}")

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Let the bench do it."""
        self._switch(card, lab, True)
        return f"put the card into the circumstance {self._name!r}"

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """End the circumstance."""
        self._switch(card, lab, False)

    def _switch(self, card: CardDriver, lab: RunningLab, on: bool) -> None:
        bench_of(card, lab, f"put {card.name} into a circumstance").condition(card.name, self._name, on)


class Moves:
    """Lets the card come back at another PCI address after its next reset, as rsu's rescan can do."""

    cuts_the_link = False

    def check(self, point: str, card: CardDriver, lab: RunningLab) -> None:
        """Hold it to a card on a bench, at an address that has one below it."""
        bench_of(card, lab, f"choose the address at which {card.name} comes back")
        moved_address(card.address)

    def fire(self, card: CardDriver, lab: RunningLab) -> str:
        """Let the bench do it."""
        address = moved_address(card.address)
        self._move(card, lab, address)
        return f"the card will come back at {address}"

    def undo(self, card: CardDriver, lab: RunningLab) -> None:
        """End the circumstance."""
        self._move(card, lab, None)

    def _move(self, card: CardDriver, lab: RunningLab, address: str | None) -> None:
        bench_of(card, lab, "choose the address of a card").moves_to(card.name, address)


def bench_of(card: CardDriver, lab: RunningLab, wish: str) -> Bench:
    """Return the bench that ``card`` is on.

    :raises NotOfferedError: it is on none, so that the lab cannot ``wish``.
    """
    if lab.bench is None or not lab.offers(card.host.name, "bench"):
        raise NotOfferedError(f"The lab {lab.name!r} cannot {wish}: that takes an emulated host.")
    return lab.bench


def moved_address(address: str) -> str:
    """Return ``address`` one bus further down, as in b3 -> b2 (starlingx/config 275cc2314).

    :raises ConfigurationError: there is no bus below.
    """
    domain, bus, rest = address.split(":")
    if int(bus, 16) == 0:
        raise ConfigurationError(f"There is no bus below that of {address} to which a card could move.")
    return f"{domain}:{int(bus, 16) - 1:02x}:{rest}"


_MAKERS: dict[str, Callable[[], Action]] = {
    "note": Note,
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

#: What a fault of an update or reset can be.
ACTION_NAMES = tuple(_MAKERS)


def action(name: str) -> Action:
    """Return a fresh action by its name. :raises ConfigurationError: there is none of that name."""
    if name not in _MAKERS:
        near = difflib.get_close_matches(name, _MAKERS, 1)
        raise ConfigurationError(
            f"There is no fault action {name!r}.",
            hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(sorted(_MAKERS))}.",
        )
    return _MAKERS[name]()

"""What switches the power of one host, and how long it takes until it is seen to be switched."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, Protocol

from harness.errors import DeadlineError, UnreachableError

Power = Literal["on", "off"]

#: Seconds between two looks: at first, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
#: Seconds that a look may take, also the last one.
_LOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What a controller says of a host's power: ``state`` (None: neither on nor off), in its own words."""

    state: Power | None
    said: str


class Switch(Protocol):
    """Switches one host. Every call takes at most ``seconds``.

    It raises :class:`harness.errors.UnreachableError` for what may be over in a moment, so that it is asked
    again, and other errors of :mod:`harness.errors` for what will not.
    """

    @property
    def where(self) -> str:
        """Who is asked, for messages."""
        ...

    @property
    def sees(self) -> bool:
        """Whether it can say what the power is; else what was asked for is all that is known."""
        ...

    def state(self, seconds: float) -> Reading:
        """Return what the power is now."""
        ...

    def ask(self, to: Power, seconds: float) -> None:
        """Ask for it to be switched; returns when that was accepted, which says nothing of the power."""
        ...

    def close(self) -> None:
        """Let go of what is open; may be called twice."""
        ...


def switched(name: str, switch: Switch, to: Power, deadline: float) -> None:
    """Switch the host ``name``, and return when its power is seen to be so; at once where it is already.

    :raises DeadlineError: it is not, in time; the message has what was seen last.
    """
    if not switch.sees:
        switch.ask(to, deadline)
        return
    end = time.monotonic() + deadline
    accepted, last, pause = False, "nothing", _FIRST_PAUSE
    while True:
        left = max(_LOOK_SECONDS, end - time.monotonic())
        try:
            seen = switch.state(left)
            last = repr(seen.said)
            if seen.state == to:
                return
            if not accepted:
                switch.ask(to, left)
                accepted = True
                continue  # whatever the time is, it is looked at once more
        except UnreachableError as error:
            last = error.message
        if time.monotonic() + pause > end:
            raise _not_in_time(name, switch, to, deadline, accepted, last)
        # Nothing tells when a host has lost its power; asking is the only condition there is.
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _not_in_time(
    name: str, switch: Switch, to: Power, deadline: float, accepted: bool, last: str
) -> DeadlineError:
    took = (
        "took the request, and what it said last is" if accepted else "took no request; the last that came is"
    )
    return DeadlineError(
        f"Waited {deadline:g} s for the power of {name} to be {to}: {switch.where} {took} {last}.",
        hint=f"Look at it:  hil host power {name} status. `power: {{deadline: ...}}` gives it more time.",
    )

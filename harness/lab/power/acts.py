"""What is done to a host's power: off, on, both; what brings it back where the harness dies in between."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Final

from harness.errors import BlockedError, NotOfferedError
from harness.faults.watchdog import Watchdog
from harness.lab.bench import PowerAct
from harness.lab.power.access import PowerAccess
from harness.lab.power.switch import switched

#: Seconds for one look.
_LOOK_SECONDS: Final = 30.0


def carry_out(access: PowerAccess, how: PowerAct) -> None:
    """Switch a host ``off`` or ``on``, or ``cycle`` it, and see it switched.

    :raises NotOfferedError: the harness does not switch it so.
    :raises DeadlineError: it is not seen to be so in time.
    """
    if how == "reboot":
        raise NotOfferedError(
            f"The harness switches the power of {access.name} off and on; it does not {how} it."
        )
    with closing(access.opened()) as switch:
        if how != "cycle":
            switched(access.name, switch, how, access.deadline)
            return
        watchdog = Watchdog(*on_command(access))
        try:
            switched(access.name, switch, "off", access.deadline)
            switched(access.name, switch, "on", access.deadline)
        except BaseException:
            watchdog.take_back()  # it may go off yet, and is not to stay so
            raise
        watchdog.stand_down()


def state_of(access: PowerAccess) -> str:
    """Return ``on`` or ``off``, else what the controller says of the power in its own words.

    :raises BlockedError: it cannot be seen.
    """
    with closing(access.opened()) as switch:
        if not switch.sees:
            raise BlockedError(
                f"Nobody can see the power of {access.name}: its commands only switch it.",
                hint="Give it `power: {command: {status: ...}}`, a line that ends with on or off.",
            )
        seen = switch.state(_LOOK_SECONDS)
        return seen.state or seen.said


def on_command(access: PowerAccess) -> tuple[tuple[str, ...], str]:
    """Return the command that switches a host on and sees it on, and what goes to its standard input."""
    return (sys.executable, "-m", "harness.lab.power.turn_on"), access.to_text()

"""What on a host takes back a change of ours where nobody says in time that it was taken back."""

from __future__ import annotations

import time

from harness.errors import InfrastructureError
from harness.registry.managers import Hands

#: `setsid` makes the group that is ended as a whole where the undo is not needed any more; it says
#: itself who it is, for then there is such a group.
_ARM = """setsid sh -c 'echo $$; exec >/dev/null; sleep "$0"; eval "$1"' "$1" "$2" </dev/null 2>/dev/null &"""


class HostUndo:
    """Undos that wait on the host itself: they need neither the harness nor the network.

    :param hands: act on the host, with the rights that the undo needs.
    """

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        #: What waits: the process group on the host, and until when it does.
        self._waiting: dict[str, tuple[int, float]] = {}

    def arm(self, what: str, script: str, seconds: int) -> None:
        """Have the host run ``script`` in so many seconds; an earlier one for ``what`` is given up.

        :raises InfrastructureError: it cannot be armed; then the change must not be made.
        """
        self.disarm(what)
        argv = ["sh", "-c", _ARM, "sh", str(seconds), script]
        said = self._hands.do(argv, f"undo on time, should we be gone: {what}").stdout.strip()
        if not said.isdigit():
            raise InfrastructureError(
                f"The undo of {what!r} was not armed on {self._hands.host.name}: {said or 'it said nothing'}."
            )
        self._waiting[what] = (int(said), time.monotonic() + seconds)

    def disarm(self, what: str) -> None:
        """Give up the undo of ``what``, which was taken back; nothing where none waits."""
        group, until = self._waiting.pop(what, (0, 0.0))
        # Later its number may be somebody else's.
        # With -TERM in place of -s TERM, dash takes -- for a number.
        if time.monotonic() < until:
            self._hands.run(["kill", "-s", "TERM", "--", f"-{group}"], f"give up an undo: {what}")

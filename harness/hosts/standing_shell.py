"""A shell that stays on a host: lines go to it one after the other, instead of over a channel each.

A channel costs more than most of what is asked over it; where the login shell is slow to start, a hundred
times as much.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from contextlib import suppress
from typing import Final

import paramiko

from harness.errors import DeadlineError, LinkLostError
from harness.hosts.protocol import last_seen
from harness.hosts.ran import Ran, Streams, shown

#: What ends the answer to a line, on both streams: a word that nothing a host shows has by itself.
_MARK: Final = f"hil-{secrets.token_hex(12)}"
#: Each line is run in an environment of its own, and reads nothing of what follows it.
LOOP: Final = (
    f'while IFS= read -r line; do (eval "$line") </dev/null; echo {_MARK}:$?; echo {_MARK} >&2; done'
)
_ENDED: Final = re.compile(rb"%s:([0-9]+)\n\Z" % _MARK.encode())
_COMPLAINED: Final = f"{_MARK}\n".encode()
#: Shells that rest on one connection at most; an SSH server allows ten channels at once (MaxSessions).
_MOST: Final = 2


class StandingShell:
    """One shell on ``channel``, on which :data:`LOOP` was begun; of one caller at a time."""

    def __init__(self, host: str, channel: paramiko.Channel) -> None:
        self._host = host
        self.channel = channel

    @property
    def usable(self) -> bool:
        """Whether it can be given a line."""
        return not (self.channel.closed or self.channel.eof_received)

    def ask(self, line: str, deadline: float) -> Ran:
        """Run ``line``, which is one line, and return what came of it.

        :raises DeadlineError: it did not end in time. :raises LinkLostError: it was not known to begin.
        """
        streams = Streams(self.channel, None)
        try:
            self.channel.settimeout(deadline)
            self.channel.sendall(f"{line}\n".encode())
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise LinkLostError(
                f"The link to {self._host} broke before {shown(line)} was known to run: "
                f"{error or type(error).__name__}."
            ) from None

        def answered() -> bool:
            return streams.err.endswith(_COMPLAINED) and bool(_ENDED.search(streams.out[-64:]))

        if not streams.drain_until(time.monotonic() + deadline, answered):
            raise DeadlineError(
                f"Waited {round(deadline, 1):g} s for {shown(line)} on {self._host} to end; "
                f"the last that was seen of it: {last_seen(streams.out, streams.err)}.",
                hint="It may still be running on the host.",
            )
        ended = _ENDED.search(streams.out)
        if ended is None or not answered():
            return Ran(-1, bytes(streams.out), bytes(streams.err), lost=True)
        out, err = streams.out[: ended.start()], streams.err[: -len(_COMPLAINED)]
        return Ran(int(ended[1]), bytes(out), bytes(err), lost=False)

    def end(self, seconds: float) -> None:
        """Let it read the end of its input, wait so long for it to be gone, and close its channel."""
        with suppress(paramiko.SSHException, EOFError, OSError):
            self.channel.shutdown_write()
            if seconds:
                self.channel.status_event.wait(seconds)
        self.close()

    def close(self) -> None:
        """Close its channel; a line that runs goes on."""
        with suppress(paramiko.SSHException, EOFError, OSError):
            self.channel.close()


class StandingShells:
    """The shells that stand on one host, for whichever thread has a line."""

    def __init__(self) -> None:
        self._resting: list[StandingShell] = []
        self._lock = threading.Lock()

    def taken(self, transport: paramiko.Transport) -> StandingShell | None:
        """Return one that rests on ``transport``, for the caller alone; None where none does."""
        with self._lock:
            while self._resting:
                shell = self._resting.pop()
                if shell.usable and shell.channel.get_transport() is transport:
                    return shell
                shell.close()
        return None

    def rest(self, shell: StandingShell) -> None:
        """Let a shell rest that has answered."""
        with self._lock:
            if len(self._resting) < _MOST:
                self._resting.append(shell)
                return
        shell.close()

    def end(self, seconds: float = 0.0) -> bool:
        """End all that rest; return whether one did. :param seconds: wait so long for each to be gone."""
        with self._lock:
            resting, self._resting = self._resting, []
        for shell in resting:
            shell.end(seconds)
        return bool(resting)

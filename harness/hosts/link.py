"""The link to a host over SSH: one connection, opened when it is first needed; shell lines run over it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO, Final

import paramiko

from harness.errors import DeadlineError, HarnessError, LinkLostError
from harness.hosts import sudo
from harness.hosts.access import Access
from harness.hosts.connection import Connection, open_connection
from harness.hosts.liveness import QUESTION, why_lost
from harness.hosts.protocol import last_seen
from harness.hosts.ran import Ran, Streams, shown
from harness.hosts.standing_shell import LOOP, StandingShell, StandingShells

CONNECT_DEADLINE = 15.0
_CHUNK = 1 << 16
#: Above it a shell's ``$?`` may be that of a signal; only the end of a channel tells whether it is.
_BY_SIGNAL: Final = 128


class Link:
    """The connection to the host ``name``; safe to use from several threads."""

    def __init__(self, name: str, access: Access) -> None:
        self.name = name
        self.access = access
        self._connection: Connection | None = None
        #: Why sudo does not let us; a wrong password is not tried again, which could lock the account.
        self._not_root: HarnessError | None = None
        self._shells = StandingShells()
        #: End what rests on a channel, given the seconds that may take; each returns whether there was one.
        self._rests: list[Callable[[float], bool]] = [self._shells.end]
        #: Whether a shell of this host stays for several lines; None as long as that is not known.
        self._stays: bool | None = None
        #: The connection over which a line was run already.
        self._used: paramiko.Transport | None = None
        self._lock = threading.Lock()

    def transport(self, deadline: float, *, waiting: bool = False) -> paramiko.Transport:
        """Return the connection, opened anew where there is none. Errors as of :func:`open_connection`."""
        with self._lock:
            found = self._connection.get_transport() if self._connection else None
            if found is not None and found.is_active():
                return found
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            seconds = min(deadline, CONNECT_DEADLINE)
            self._connection = open_connection(self.name, self.access, seconds, waiting=waiting)
            found = self._connection.get_transport()
        if found is None:
            raise LinkLostError(f"The link to {self.name} broke as soon as it was open.")
        return found

    def alive(self) -> bool:
        """Return whether there is a connection."""
        with self._lock:
            found = self._connection.get_transport() if self._connection else None
        return found is not None and found.is_active()

    def close(self) -> None:
        """Release the connection; may be called twice."""
        with self._lock:
            connection, self._connection = self._connection, None
            self._not_root = self._used = None
        self._shells.end()
        if connection is not None:
            connection.close()

    def ask(self, line: str, deadline: float, *, root: bool = False, repeatable: bool = True) -> Ran:
        """Run a line that reads no standard input; from the second one on they share a channel.

        :param repeatable: it only reads, so that it may be run twice. Otherwise as :meth:`execute`.
        """
        plain = line.isascii() and line.isprintable() and not (root and self.access.needs_sudo)
        if not plain or self._stays is False or (self._stays is None and not repeatable):
            return self.execute(line, deadline, root=root)
        end = time.monotonic() + deadline
        transport = self.transport(deadline)
        shell = self._shells.taken(transport)
        if shell is None and self._used is not transport:
            self._used = transport
            return self.execute(line, _left(end))
        shell = shell or StandingShell(self.name, self.session(LOOP, _left(end)))
        answered = False
        try:
            ran = shell.ask(line, _left(end))
            answered = not ran.lost
        finally:
            if answered:
                self._shells.rest(shell)
            else:
                shell.close()
        if ran.lost and self._stays is None and transport.is_active():
            self._stays = False  # its login shell is none that knows such a loop
            return self.execute(line, _left(end))
        self._stays = self._stays or answered or None
        if repeatable and ran.exit_code > _BY_SIGNAL:
            return self.execute(line, _left(end))
        return ran

    def execute(
        self,
        line: str,
        deadline: float,
        on_output: Callable[[str], None] | None = None,
        *,
        root: bool = False,
        feed: BinaryIO | None = None,
    ) -> Ran:
        """Run the shell line ``line``.

        :param root: it needs root: it goes through sudo where the login is not root's. :param feed: what it
            reads from standard input.
        :raises DeadlineError: it did not end in time. :raises LinkLostError: it was not known to begin.
        :raises InfrastructureError: sudo did not run it.
        """
        if not (root and self.access.needs_sudo):
            return self._execute(line, line, deadline, on_output, feed=feed)
        if self._not_root is not None:
            raise self._not_root
        fed = feed is not None
        ran = self._execute(
            sudo.root_line(line, self.access, fed=fed),
            line,
            deadline,
            on_output,
            first=sudo.first_words(self.access, fed=fed),
            feed=feed,
        )
        begun, said = sudo.without_mark(ran.err)
        if not begun and not ran.lost:
            self._not_root = sudo.refusal(self.name, self.access.user, ran.err, ran.exit_code)
            raise self._not_root
        return Ran(ran.exit_code, ran.out, said, ran.lost)

    def broken(self, line: str, ran: Ran) -> LinkLostError:
        """Return the error for a link that broke while ``line`` ran."""
        with self._lock:
            ended = self._connection.get_transport() if self._connection else None
        return LinkLostError(
            f"The link to {self.name} broke while {shown(line)} ran{why_lost(ended)}; "
            f"the last that was seen of it: {last_seen(ran.out, ran.err)}."
        )

    def session(self, line: str, deadline: float) -> paramiko.Channel:
        """Return a channel on which ``line`` was begun. :raises LinkLostError: that is not known."""
        try:
            channel = self.channel(deadline)
            channel.settimeout(deadline)
            channel.exec_command(line)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise LinkLostError(
                f"The link to {self.name} broke before {shown(line)} was known to run: "
                f"{error or type(error).__name__}."
            ) from None
        return channel

    def gives_way(self, end: Callable[[float], bool]) -> None:
        """Have ``end`` end a channel that rests, where the host allows no more and another is needed.

        It waits so many seconds for it to be gone, and returns whether there was one.
        """
        self._rests.append(end)

    def channel(self, deadline: float) -> paramiko.Channel:
        """Return a new channel; where the host allows no more of them, in place of what rests.

        :raises paramiko.SSHException: there is none.
        """
        transport = self.transport(deadline)
        try:
            return transport.open_session(timeout=deadline)
        except paramiko.ChannelException:
            if not any(end(deadline) for end in self._rests):
                raise
            # A server lets go of a channel when it has answered all that came with its end.
            transport.global_request(QUESTION, wait=True)
        return transport.open_session(timeout=deadline)

    def _execute(
        self,
        line: str,
        told: str,
        deadline: float,
        on_output: Callable[[str], None] | None,
        *,
        first: bytes = b"",
        feed: BinaryIO | None = None,
    ) -> Ran:
        """Run ``line``, which messages call ``told``; ``first`` and ``feed`` go to its standard input."""
        end = time.monotonic() + deadline
        channel = self.session(line, deadline)
        try:
            streams = Streams(channel, on_output)
            in_time = (not first and feed is None) or _feed(channel, first, feed, end)
            if not (
                in_time
                and streams.drain_until(end)
                and channel.status_event.wait(max(0.0, end - time.monotonic()))
            ):
                _, complained = sudo.without_mark(bytes(streams.err))
                raise DeadlineError(
                    f"Waited {round(deadline, 1):g} s for {shown(told)} on {self.name} to end; "
                    f"the last that was seen of it: {last_seen(streams.out, complained)}.",
                    hint="It may still be running on the host.",
                )
            code = channel.recv_exit_status() if channel.exit_status_ready() else -1
            # A host that goes down says no EOF; its transport counts as active for a moment longer.
            orderly = channel.eof_received and channel.get_transport().is_active()
            return Ran(code, bytes(streams.out), bytes(streams.err), code == -1 and not orderly)
        finally:
            with suppress(paramiko.SSHException, EOFError, OSError):
                channel.close()


def _left(end: float) -> float:
    """Return the seconds until ``end`` (monotonic); a moment where it is over."""
    return max(0.001, end - time.monotonic())


def _feed(channel: paramiko.Channel, first: bytes, feed: BinaryIO | None, end: float) -> bool:
    """Send ``first`` and all of ``feed``; a line that ends before it has read them is no error here.

    Return False when ``end`` (monotonic) comes first.
    """

    def pieces() -> Iterator[bytes]:
        if first:
            yield first
        while feed is not None and (piece := feed.read(_CHUNK)):
            yield piece

    try:
        for piece in pieces():
            channel.settimeout(_left(end))
            channel.sendall(piece)
        channel.shutdown_write()
    except TimeoutError:
        return False
    except (paramiko.SSHException, EOFError, OSError):
        pass
    return True

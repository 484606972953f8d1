"""Connections to jump hosts: one for each, shared by all that go through it, closed after the last."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import paramiko

from harness.errors import HarnessError, UnreachableError
from harness.hosts.access import Access, Jump


class Opened(Protocol):
    """A connection to a jump host."""

    def get_transport(self) -> paramiko.Transport | None:
        """Return what streams run over; None where it is gone."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


Open = Callable[[str, Access, float], Opened]

#: OPEN_ADMINISTRATIVELY_PROHIBITED (RFC 4254, 5.1).
_PROHIBITED: Final = 1


@dataclass(eq=False)
class _Shared:
    """The connection to one jump host, and how many use it."""

    users: int = 0
    client: Opened | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def transport(self) -> paramiko.Transport | None:
        """Return the connection while it lives."""
        found = self.client.get_transport() if self.client is not None else None
        return found if found is not None and found.is_active() else None


class Jumps:
    """The jump hosts of this process.

    :param open_connection: opens a connection to a host of that name, by its access, within seconds.
    """

    def __init__(self, open_connection: Open) -> None:
        self._open = open_connection
        self._known: dict[Jump, _Shared] = {}
        self._lock = threading.Lock()

    def channel(self, name: str, access: Access, jump: Jump, deadline: float) -> paramiko.Channel:
        """Return a stream through ``jump`` to the host ``name`` at ``access``; :meth:`release` it later.

        :raises UnreachableError: the jump host does not answer, does not forward, or does not get there.
        :raises HarnessError: it is not let talk to, as of any host; the message says that it is on the way.
        """
        with self._lock:
            shared = self._known.setdefault(jump, _Shared())
            shared.users += 1
        try:
            return _forwarded(name, access, jump, self._transport(shared, name, jump, deadline), deadline)
        except BaseException:
            self.release(jump)
            raise

    def release(self, jump: Jump) -> None:
        """One user less; the last one closes the connection."""
        with self._lock:
            shared = self._known[jump]
            shared.users -= 1
            if shared.users == 0:
                del self._known[jump]
        if shared.users == 0 and shared.client is not None:
            shared.client.close()

    def abandon(self, channel: Any, jump: Jump) -> None:
        """Close a stream that nobody needs any more, and let its ``jump`` go."""
        with suppress(paramiko.SSHException, EOFError, OSError):
            channel.close()
        self.release(jump)

    def _transport(self, shared: _Shared, name: str, jump: Jump, deadline: float) -> paramiko.Transport:
        with shared.lock:  # one connects, the others wait for it
            found = shared.transport()
            if found is None:
                if shared.client is not None:
                    shared.client.close()
                try:
                    shared.client = self._open(jump.name, jump.access, deadline)
                except HarnessError as error:
                    error.message = f"{name} is reached through {jump.name}. {error.message}"
                    raise
                found = shared.transport()
        if found is None:
            raise UnreachableError(f"The link to {jump.name}, on the way to {name}, broke at once.")
        return found


def _forwarded(
    name: str, access: Access, jump: Jump, transport: paramiko.Transport, deadline: float
) -> paramiko.Channel:
    try:
        return transport.open_channel(
            "direct-tcpip", (access.address, access.port), ("127.0.0.1", 0), timeout=deadline
        )
    except paramiko.ChannelException as error:
        if error.code == _PROHIBITED:
            reason = f"{jump.name} does not forward connections ({error.text})"
            hint = f"Let it: `AllowTcpForwarding yes` (and `PermitOpen`) in sshd_config on {jump.name}."
        else:
            reason = f"{jump.name} does not get there ({error.text})"
            hint = f"Is {name} up, and are its address and port right as seen from {jump.name}?"
    except (paramiko.SSHException, EOFError, OSError) as error:
        reason = f"no answer within {deadline:g} s" if "imeout" in str(error) else str(error) or "it closed"
        hint = f"Is {name} up, and does {jump.name} reach it?"
    raise UnreachableError(
        f"{name} cannot be reached at {access.where} through {jump.name}: {reason}.", hint=hint
    )

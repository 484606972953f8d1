"""Notices a peer that has vanished without a word, whatever deadline the command on it has."""

from __future__ import annotations

import errno
import os
import socket
import time
from contextlib import suppress
from typing import Any

import paramiko
from paramiko.common import cMSG_GLOBAL_REQUEST

#: Seconds between questions, and how many of them may stay without an answer: what vanishes is noticed within
#: (UNANSWERED + 1) * KEEPALIVE seconds, as with OpenSSH's ServerAliveInterval and ServerAliveCountMax.
KEEPALIVE = 15.0
UNANSWERED = 2
#: Seconds that data may stay unacknowledged before the link counts as lost.
UNACKNOWLEDGED = 30
#: Every server must answer a request that it does not know (RFC 4254, 4); OpenSSH's clients ask by this name.
QUESTION = "keepalive@openssh.com"
#: The fastest cipher that both paramiko and OpenSSH have (110 instead of 80 MB/s).
_FAST_CIPHER = "aes128-gcm@openssh.com"


class Heard:
    """The stream below a connection: a socket, or a channel through a jump host. Notes that something came.

    A channel knows no bound for what it cannot send; here it has the one that the kernel keeps for a socket.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._stuck_since: float | None = None
        self.anything = True

    def recv(self, size: int) -> bytes:
        """Return what comes, as the stream does."""
        data: bytes = self._stream.recv(size)
        self.anything = True
        return data

    def send(self, data: bytes) -> int:
        """Send some of ``data``. :raises OSError: as the stream, or it takes nothing for UNACKNOWLEDGED s."""
        try:
            sent: int = self._stream.send(data)
        except TimeoutError:
            now = time.monotonic()
            self._stuck_since = self._stuck_since or now
            if now - self._stuck_since > UNACKNOWLEDGED:
                raise BrokenPipeError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
            raise
        self._stuck_since = None
        return sent

    def close(self) -> None:
        """Close the stream; a channel whose own connection is gone is closed already."""
        with suppress(paramiko.SSHException, EOFError, OSError):
            self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class LiveTransport(paramiko.Transport):
    """A connection that asks a quiet peer whether it is there, and ends when it does not answer."""

    #: What the connection ended of; empty while it lives, or where it ended of something else.
    silent = ""

    def __init__(self, stream: Any, **options: Any) -> None:
        self._heard = Heard(stream)
        self._unanswered = 0
        super().__init__(self._heard, **options)  # type: ignore[arg-type] # all that it uses is there
        security = self.get_security_options()
        if _FAST_CIPHER in security.ciphers:
            security.ciphers = (_FAST_CIPHER, *(c for c in security.ciphers if c != _FAST_CIPHER))

    def watch(self) -> None:
        """Begin to ask; once the login succeeded."""
        self.packetizer.set_keepalive(KEEPALIVE, self._ask)

    def _ask(self) -> None:
        """Called by the connection's own thread when nothing went out for KEEPALIVE seconds or comes in.

        :raises paramiko.SSHException: too many questions stayed without an answer; this ends the connection.
        """
        self._unanswered = 0 if self._heard.anything else self._unanswered + 1
        self._heard.anything = False
        if self._unanswered >= UNANSWERED:
            self.silent = f"nothing was heard of it for {(UNANSWERED + 1) * KEEPALIVE:g} s"
            raise paramiko.SSHException(self.silent)
        question = paramiko.Message()
        question.add_byte(cMSG_GLOBAL_REQUEST)
        question.add_string(QUESTION)
        question.add_boolean(True)
        self._send_message(question)  # type: ignore[attr-defined] # not in its stubs


def tuned(link: socket.socket) -> socket.socket:
    """Return ``link`` with what makes commands quick, and a lost link be noticed."""
    # paramiko leaves Nagle's algorithm on: 44 to 88 ms for every command.
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED * 1000)
    return link


def why_lost(transport: paramiko.Transport | None) -> str:
    """Return why a connection ended, where that is known, for the middle of a message; else nothing."""
    silent = getattr(transport, "silent", "")
    return f" ({silent})" if silent else ""

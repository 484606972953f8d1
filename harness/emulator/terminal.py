"""A channel as a command's streams, and the line discipline of a terminal in front of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import paramiko

from harness.emulator.process import Out, Pipe

_BUFFER = 32768  # one SSH packet
_INTERRUPT, _END, _ERASE = 0x03, 0x04, (0x08, 0x7F)


class ChannelOut:
    """Standard output or error over a channel, in few packets; a terminal wants carriage returns."""

    #: What a command has printed waits for what the next one prints: see :meth:`Shell.run_program`.
    collects = True

    def __init__(self, channel: paramiko.Channel, *, error: bool = False, tty: bool = False) -> None:
        self._channel = channel
        self._send = channel.sendall_stderr if error and not tty else channel.sendall
        self._tty = tty
        self._held = bytearray()
        self._lock = threading.RLock()  # background jobs and the stages of a pipeline print at once

    def write(self, data: bytes) -> None:
        """Take ``data``; it is sent when a packet is full or at :meth:`flush`."""
        with self._lock:
            self._held += data.replace(b"\n", b"\r\n") if self._tty else data
            if len(self._held) >= _BUFFER:
                self.flush()

    def flush(self) -> None:
        """Send what is held. :raises BrokenPipeError: the client is gone."""
        with self._lock:
            if not self._held:
                return
            data, self._held = bytes(self._held), bytearray()
            try:
                self._send(data)
            except OSError as error:
                raise BrokenPipeError from error

    def isatty(self) -> bool:
        """Return whether the client asked for a terminal."""
        return self._tty


class ChannelIn:
    """Standard input from a channel. ``outputs``: what is handed on before the client is waited for."""

    def __init__(self, channel: paramiko.Channel, outputs: tuple[Out, ...] = ()) -> None:
        self._channel = channel
        self._outputs = outputs
        self._ahead = bytearray()

    def read(self, length: int = -1) -> bytes:
        """Return up to ``length`` bytes, all up to the client's end where negative."""
        if length >= 0:
            return self._taken(length) if self._ahead else self._received(length)
        while piece := self._received():
            self._ahead += piece
        return self._taken(len(self._ahead))

    def readline(self) -> bytes:
        """Return the next line with its newline; without one, what is left; what follows it stays."""
        at = self._ahead.find(b"\n")
        while at < 0 and (piece := self._received()):
            at = piece.find(b"\n")
            at = len(self._ahead) + at if at >= 0 else at
            self._ahead += piece
        return self._taken(at + 1 if at >= 0 else len(self._ahead))

    def _taken(self, length: int) -> bytes:
        taken = bytes(self._ahead[:length])
        del self._ahead[:length]
        return taken

    def _received(self, length: int = _BUFFER) -> bytes:
        for out in self._outputs:
            out.flush()
        return self._channel.recv(length)


class LineDiscipline:
    """Turns what is typed into lines: echo, erase, Ctrl-C to ``interrupt``, Ctrl-D as the end.

    ``input`` is what the programs read.
    """

    def __init__(self, channel: paramiko.Channel, interrupt: Callable[[int], None]) -> None:
        self.input = Pipe()
        self._channel = channel
        self._interrupt = interrupt
        self._line = bytearray()
        threading.Thread(target=self._run, name="tty", daemon=True).start()

    def _run(self) -> None:
        try:
            while typed := self._channel.recv(1024):
                for byte in typed:
                    self._take(byte)
        except OSError:
            pass  # the client is gone
        self.input.close_write()

    def _take(self, byte: int) -> None:
        if byte == _INTERRUPT:
            self._line.clear()
            self._echo(b"^C\r\n")
            self._interrupt(signal.SIGINT)
        elif byte == _END:
            if not self._line:
                self.input.close_write()
        elif byte in _ERASE:
            if self._line:
                self._line.pop()
                self._echo(b"\b \b")
        elif byte in b"\r\n":
            self._echo(b"\r\n")
            self.input.write(bytes(self._line) + b"\n")
            self._line.clear()
        else:
            self._line.append(byte)
            self._echo(bytes([byte]))

    def _echo(self, data: bytes) -> None:
        self._channel.sendall(data)

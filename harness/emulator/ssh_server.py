"""The SSH face of emulated hosts: real SSH servers on loopback ports, one thread to accept for all.

A command runs in a thread of its own that starts once the client has been told that it may run: started
any sooner, its output and end can overtake that reply; run on the transport's own thread, it could never
send more than one window.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    MSG_CHANNEL_REQUEST,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_SUCCEEDED,
)

from harness.emulator.host import EmulatedHost
from harness.emulator.programs.base import Streams
from harness.emulator.sftp import HostSftp, SftpServer
from harness.emulator.shell import Shell
from harness.emulator.shell_builtins import ShellExit
from harness.emulator.terminal import ChannelIn, ChannelOut, LineDiscipline

USER = "root"
LOOPBACK = "127.0.0.1"
_BACKLOG = 64

# A client that goes away, or scans the port, is no news; paramiko would print tracebacks for it.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


@dataclass
class _Session:
    """One channel: what it asked for before its command began."""

    tty: bool = False
    env: dict[str, str] = field(default_factory=dict)
    start: Callable[[], None] | None = None


def _request(channel: paramiko.Channel, message: Any) -> None:
    """Handle a channel request, reply included, and only then start what it asked for."""
    channel._handle_request(message)  # type: ignore[attr-defined] # not in its stubs
    server = channel.get_transport().server_object
    if isinstance(server, _Login):
        session = server.sessions.get(channel.get_id())
        if session is not None and session.start is not None:
            start, session.start = session.start, None
            threading.Thread(target=start, name="ssh-command", daemon=True).start()


class _Transport(paramiko.Transport):
    """A transport that starts commands after its reply, the one thing paramiko has no hook for."""

    _channel_handler_table = {
        **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined] # not in its stubs
        MSG_CHANNEL_REQUEST: _request,
    }


class _Login(paramiko.ServerInterface):
    """One connection to ``host``: only :data:`USER` with the lab's key gets in."""

    def __init__(self, host: EmulatedHost, authorized: paramiko.PKey) -> None:
        self._host = host
        self._authorized = authorized
        self._lock = threading.Lock()
        self._opened: list[paramiko.Channel] = []
        self.sessions: dict[int, _Session] = {}

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        if username == USER and key == self._authorized:
            return AUTH_SUCCESSFUL
        return AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if kind != "session":
            return OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        self.sessions[chanid] = _Session()
        return OPEN_SUCCEEDED

    def _session(self, channel: paramiko.Channel) -> _Session:
        return self.sessions[channel.get_id()]

    def check_channel_pty_request(self, channel: paramiko.Channel, *details: Any) -> bool:
        self._session(channel).tty = True
        return True

    def check_channel_window_change_request(self, channel: paramiko.Channel, *details: Any) -> bool:
        return True

    def check_channel_env_request(self, channel: paramiko.Channel, name: bytes, value: bytes) -> bool:
        key = name.decode("utf-8", "replace")
        if key != "LANG" and not key.startswith("LC_"):  # what sshd_config's AcceptEnv lets in
            return False
        self._session(channel).env[key] = value.decode("utf-8", "replace")
        return True

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        text = command.decode("utf-8", "surrogateescape")
        self._session(channel).start = lambda: self._serve(channel, lambda shell: _run(shell, text))
        return True

    def check_channel_shell_request(self, channel: paramiko.Channel) -> bool:
        tty = self._session(channel).tty
        self._session(channel).start = lambda: self._serve(channel, lambda shell: _interact(shell, tty))
        return True

    def _serve(self, channel: paramiko.Channel, body: Callable[[Shell], int]) -> None:
        """Give ``body`` a login shell on ``channel``, then report its status and close."""
        session = self.sessions.pop(channel.get_id())
        self._keep_opened(channel.get_transport())
        stdout = ChannelOut(channel, tty=session.tty)
        stderr = ChannelOut(channel, error=True, tty=session.tty)
        streams = Streams(ChannelIn(channel, (stdout, stderr)), stdout, stderr)
        shell = self._host.start_shell(streams, session.env)
        shell.process.output = (stdout, stderr)
        if session.tty:
            terminal = LineDiscipline(channel, lambda number: self._signal(shell, number))
            shell.streams = Streams(terminal.input, stdout, stdout)
        try:
            status = body(shell)
            stdout.flush()
            stderr.flush()
            if status >= 0:  # a client takes a missing status for death by a signal
                channel.send_exit_status(status)
            channel.shutdown_write()
        except (OSError, EOFError):
            pass  # the client is gone
        finally:
            self._host.end(shell.process)
            with suppress(OSError, EOFError):  # the client went meanwhile
                channel.close()

    def _keep_opened(self, transport: paramiko.Transport) -> None:
        """Take opened channels off the transport's queue, which nobody else reads, and let go of closed ones.

        The transport itself holds them only weakly: one that nobody keeps is closed before its first request.
        """
        with self._lock:
            while (opened := transport.accept(timeout=0)) is not None:
                self._opened.append(opened)
            self._opened = [kept for kept in self._opened if not kept.closed]

    def _signal(self, shell: Shell, number: int) -> None:
        for process in self._host.processes.foreground(shell.process):
            process.send(number)


def _run(shell: Shell, command: str) -> int:
    shell.process.argv = ["bash", "-c", command]
    return shell.main(command)


def _interact(shell: Shell, tty: bool) -> int:
    """Read lines and run them until the end of input or ``exit``."""
    prompt = f"{USER}@{shell.host.hostname}:~# ".encode() if tty else b""
    while True:
        shell.streams.stdout.write(prompt)
        shell.streams.stdout.flush()
        line = bytearray()
        while (byte := shell.streams.stdin.read(1)) not in (b"", b"\n"):
            line += byte
        if not byte and not line:
            return shell.status
        try:
            shell.source(line.decode("utf-8", "replace"))
        except ShellExit as leave:
            return leave.status
        finally:
            shell.streams.stderr.flush()


class SshFace:
    """The SSH server of one host. ``port`` stays the same through power cuts; ``0`` asks for a free one."""

    def __init__(
        self, host: EmulatedHost, key: paramiko.PKey, authorized: paramiko.PKey, port: int = 0
    ) -> None:
        self.host = host
        self.key = key
        self._authorized = authorized
        self._connections: list[paramiko.Transport] = []
        self._lock = threading.Lock()
        self.socket = _bound(port)
        self.port: int = self.socket.getsockname()[1]

    def accept(self) -> None:
        """Take one connection; its handshake runs in its own thread."""
        try:
            connection, _ = self.socket.accept()
        except OSError:
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(True)
        transport = _Transport(connection)
        transport.add_server_key(self.key)
        transport.set_subsystem_handler(
            "sftp",
            SftpServer,
            HostSftp,
            files=self.host.vfs,
            home=self.host.login_environment()["HOME"],
        )
        with self._lock:
            self._connections = [known for known in self._connections if known.is_active()]
            self._connections.append(transport)
        transport.start_server(event=threading.Event(), server=_Login(self.host, self._authorized))

    def drop(self) -> None:
        """Close every connection, as a host without power does."""
        with self._lock:
            connections, self._connections = self._connections, []
        for transport in connections:
            # Its thread looks every tenth of a second whether it is to end; the end of its input wakes it.
            with suppress(OSError):
                transport.sock.shutdown(socket.SHUT_RDWR)
        for transport in connections:
            transport.close()


def _bound(port: int) -> socket.socket:
    """Return a socket that holds ``port`` but does not listen: connections to it are refused."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind((LOOPBACK, port))
    found.setblocking(False)
    return found


class Listener:
    """Accepts for all hosts of a lab, each while it has power."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="ssh-accept", daemon=True).start()

    def add(self, face: SshFace) -> None:
        """Serve ``face`` whenever its host has power."""
        face.host.on_up.append(lambda: self._up(face))
        face.host.on_down.append(lambda: self._down(face))
        if face.host.powered:
            self._up(face)

    def _up(self, face: SshFace) -> None:
        with self._lock:
            face.socket.listen(_BACKLOG)
            self._selector.register(face.socket, selectors.EVENT_READ, face)

    def _down(self, face: SshFace) -> None:
        with self._lock:
            self._selector.unregister(face.socket)
            face.socket.close()
            face.socket = _bound(face.port)
        face.drop()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                face: SshFace = key.data
                face.accept()


def new_key() -> paramiko.ECDSAKey:
    """Return a new key pair for a host or for the lab's user."""
    return paramiko.ECDSAKey.generate()

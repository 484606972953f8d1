"""The SSH face of an emulated host: what a peer sees as the host goes down."""

import socket
import threading

import paramiko
import pytest

from harness.emulator.clock import LabClock
from harness.emulator.host import EmulatedHost
from harness.emulator.programs.base import Streams
from harness.emulator.ssh_server import LOOPBACK, SshFace, new_key
from harness.emulator.terminal import ChannelIn, ChannelOut


def test_a_host_that_goes_down_ends_its_connections_at_once() -> None:
    """When the power is off the peer has been told; it does not wait for the server's next look."""
    key = new_key()
    face = SshFace(EmulatedHost("bench1", LabClock()), new_key(), key)
    face.socket.setblocking(True)
    face.socket.listen()
    threading.Thread(target=face.accept).start()
    with paramiko.Transport(socket.create_connection((LOOPBACK, face.port))) as transport:
        transport.connect(username="root", pkey=key)
        peer = socket.fromfd(transport.sock.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        face.drop()
        peer.setblocking(False)
        assert peer.recv(1, socket.MSG_PEEK) == b""
        peer.close()
    face.socket.close()


class Channel:
    """A channel without a peer. ``sent``: its packets; nothing comes in."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def sendall(self, data: bytes) -> None:
        self.sent.append(data)

    sendall_stderr = sendall

    def recv(self, length: int) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("line", "packets"),
    [
        ("echo a; cat /etc/hostname; echo b", []),
        ("echo a; sleep 1; echo b", [b"a\n"]),
        ("echo a; sleep 1 >/dev/null; echo b", [b"a\n"]),
        ("echo a; true | cat; echo b", [b"a\n"]),
        ("echo a; cat; echo b", [b"a\n"]),
        ("echo a; read line; echo b", [b"a\n"]),
        ("sleep 1 & echo a; wait; echo b", [b"a\n"]),
    ],
)
def test_what_is_printed_goes_out_before_anything_waits_and_else_at_the_end(
    line: str, packets: list[bytes]
) -> None:
    channel = Channel()
    out = ChannelOut(channel)  # type: ignore[arg-type] # all of one that it needs
    error = ChannelOut(channel, error=True)  # type: ignore[arg-type]
    host = EmulatedHost("bench1", LabClock())
    shell = host.start_shell(Streams(ChannelIn(channel, (out, error)), out, error))  # type: ignore[arg-type]
    shell.process.output = (out, error)
    shell.main(line)
    assert channel.sent == packets
    out.flush()
    assert b"".join(channel.sent).endswith(b"b\n")

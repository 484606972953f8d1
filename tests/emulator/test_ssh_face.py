"""The SSH face of an emulated host: what a peer sees as the host goes down."""

import socket
import threading

import paramiko

from harness.emulator.clock import LabClock
from harness.emulator.host import EmulatedHost
from harness.emulator.ssh_server import LOOPBACK, SshFace, new_key


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

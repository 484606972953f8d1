"""Who listens on a port of this machine: nobody before a service is started, and that service after."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness.errors import InfrastructureError

_LISTENING = "0A"  # state of a socket in /proc/net/tcp


def free_port(address: str = "127.0.0.1") -> int:
    """Return a TCP port of ``address`` on which nobody listens now."""
    with _socket(address) as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port


def prove_free(address: str, port: int) -> None:
    """Return if nobody listens on ``port`` of ``address``.

    A service that outlived its run and answers from its caches has produced whole runs of bogus findings.

    :raises InfrastructureError: somebody does, with the process where it can be told.
    """
    with _socket(address) as probe:
        # As the service does it: a connection that lingers from before does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen()
        except OSError as error:
            raise InfrastructureError(
                f"The port {port} of {address} cannot be used ({error.strerror}){_holders(port)}.",
                hint="End what uses it, or choose another port.",
            ) from None


def listens(pid: int, port: int) -> bool:
    """Return whether the process ``pid`` itself listens on the TCP port ``port``."""
    return port in listening_ports(pid)


def listening_ports(pid: int) -> set[int]:
    """Return the TCP ports on which the process ``pid`` itself listens."""
    own = _sockets_of(pid)
    return {port for inode, port in _listening() if inode in own}


def _socket(address: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)


def _holders(port: int) -> str:
    sockets = {inode for inode, at in _listening() if at == port}
    for folder in Path("/proc").glob("[0-9]*"):
        if sockets & _sockets_of(int(folder.name)):
            with suppress(OSError):
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                return f": process {folder.name} ({words.strip()[:120]}) listens there"
    return ""


def _listening() -> Iterator[tuple[str, int]]:
    """Yield inode and port of every TCP socket that listens, at any address."""
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # a kernel without IPv6
            for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = row.split()
                if fields[3] == _LISTENING:
                    yield fields[9], int(fields[1].rpartition(":")[2], 16)


def _sockets_of(pid: int) -> set[str]:
    """Return the inodes of the sockets that the process has; none where it is gone or not ours."""
    found = set()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                target = str(link.readlink())
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found

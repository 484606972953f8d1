"""Who listens on a port of this machine: nobody before a service is started, and that service after."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from harness.errors import HarnessBug, InfrastructureError

_LISTENING = "0A"  # state of a socket in /proc/net/tcp


#: Below it are the ports of well-known services.
_LOWEST = 10_000
_HIGHEST = 65_535
_TRIES = 100
_BACKLOG = 128


def free_port(*addresses: str) -> int:
    """Return a TCP port on which nobody listens now, at any of the addresses; 127.0.0.1 by default.

    It is none that the kernel gives to outgoing connections: one of these would take it while the service
    that it is chosen for is restarted.

    :raises InfrastructureError: this machine does not have an address, or no port is free.
    """
    places = addresses or ("127.0.0.1",)
    lasting = _lasting_ports()
    for _ in range(_TRIES):
        port = random.choice(lasting)
        try:
            with ExitStack() as opened:
                for address in places:
                    opened.enter_context(_socket(address)).bind((address, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise InfrastructureError(
                    f"Nobody can listen at {' and '.join(places)}: {error.strerror}.",
                    hint="Choose addresses that this machine has.",
                ) from None
        else:
            return port
    raise InfrastructureError(f"Of {_TRIES} ports of {' and '.join(places)} none is free.")


def _lasting_ports() -> Sequence[int]:
    """Return the ports outside the range that the kernel takes for outgoing connections."""
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    found = [*range(_LOWEST, first), *range(last + 1, _HIGHEST + 1)]
    return found or range(_LOWEST, _HIGHEST + 1)  # the kernel may be told to take them all


def listen(addresses: Sequence[str], port: int = 0) -> list[socket.socket]:
    """Return sockets that listen at all of the addresses on one port.

    :param port: 0 chooses one as :func:`free_port` does.
    :raises InfrastructureError: it is taken, or this machine does not have an address.
    """
    for left in reversed(range(1 if port else _TRIES)):
        chosen = port or free_port(*addresses)
        with ExitStack() as opened:
            try:
                found = [opened.enter_context(_listener(address, chosen)) for address in addresses]
            except OSError as error:
                if left:  # between the choice of a port and its use anybody may take it
                    continue
                raise InfrastructureError(
                    f"The port {chosen} of {' and '.join(addresses)} cannot be used ({error.strerror})"
                    f"{_holders(chosen)}.",
                    hint="End what uses it, or choose another port.",
                ) from None
            opened.pop_all()
            return found
    raise HarnessBug("a loop that returns or raises did neither")


def _listener(address: str, port: int) -> socket.socket:
    found = _socket(address)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((address, port))
        found.listen(_BACKLOG)
    except OSError:
        found.close()
        raise
    return found


def prove_free(address: str, port: int) -> None:
    """Return if nobody listens on ``port`` of ``address``.

    A service that outlived its run and answers from its caches has produced whole runs of bogus findings.

    :raises InfrastructureError: somebody does, with the process where it can be told.
    """
    # As the service does it: a connection that lingers from before does not count.
    for opened in listen((address,), port):
        opened.close()


def listens(pid: int, port: int) -> bool:
    """Return whether the process ``pid`` itself listens on the TCP port ``port``."""
    return port in listening_ports(pid)


def listening_ports(pid: int) -> set[int]:
    """Return the TCP ports on which the process ``pid`` itself listens."""
    own = _sockets_of(pid)
    return {port for inode, port in _listening() if inode in own}


def _socket(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # The protocol is named, or asyncio leaves Nagle's algorithm on: 44 ms a request.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if family == socket.AF_INET6:
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return found


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

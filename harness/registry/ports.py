"""Who listens on a port of this machine: nobody before a service is started, and that service after."""

from __future__ import annotations

import errno
import os
import random
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from harness.errors import InfrastructureError

_LISTENING = "0A"  # state of a socket in /proc/net/tcp

#: Below it are the ports of well-known services.
_LOWEST = 10_000
_HIGHEST = 65_535
_TRIES = 100
#: How long a program may take to start on a busy machine, and to close what it inherited when it does;
#: nothing tells when it has.
_FORKED_SECONDS, _STARTING_SECONDS, _POLL_SECONDS = 5.0, 0.2, 0.005
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


def reserve(address: str, port: int) -> socket.socket:
    """Return what keeps others from being given ``port`` by :func:`free_port`, until it is closed.

    It is bound and never listens: a service listens beside it, and again after a restart.

    :raises InfrastructureError: the port is taken.
    """
    found = _socket(address)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((address, port))
    except OSError as error:
        found.close()
        raise InfrastructureError(
            f"The port {port} of {address} cannot be used ({error.strerror}){_told_of(port)}.",
            hint="End what uses it, or choose another port.",
        ) from None
    return found


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
    began = time.monotonic()
    until = began + _STARTING_SECONDS
    while True:
        chosen = port or free_port(*addresses)
        with ExitStack() as opened:
            try:
                found = [opened.enter_context(_listener(address, chosen)) for address in addresses]
            except OSError as error:
                # Between the choice of a port and its use anybody may take it; and one that we have closed
                # lives on in what another thread has forked, until that runs its own program.
                if all(map(_is_fork, _holders(chosen))):
                    # It runs its program before it lets go of what it inherited.
                    until = min(time.monotonic(), began + _FORKED_SECONDS) + _STARTING_SECONDS
                if error.errno == errno.EADDRINUSE and time.monotonic() < until:
                    time.sleep(_POLL_SECONDS)
                    continue
                raise InfrastructureError(
                    f"The port {chosen} of {' and '.join(addresses)} cannot be used ({error.strerror})"
                    f"{_told_of(chosen)}.",
                    hint="End what uses it, or choose another port.",
                ) from None
            opened.pop_all()
            return found


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


def _holders(port: int) -> list[int]:
    """Return the processes that listen on ``port`` now."""
    sockets = {inode for inode, at in _listening() if at == port}
    pids = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")] if sockets else []
    return [pid for pid in pids if sockets & _sockets_of(pid)]


def _told_of(port: int) -> str:
    for pid in _holders(port):
        if words := _words_of(pid):
            text = words.replace(b"\0", b" ").decode(errors="replace").strip()
            return f": process {pid} ({text[:120]}) listens there"
    return ""


def _is_fork(pid: int) -> bool:
    """Whether the process is a child of ours that does not run a program of its own yet, or is gone."""
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return True
    return parent == os.getpid() and _words_of(pid) == _words_of(os.getpid())


def _words_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


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

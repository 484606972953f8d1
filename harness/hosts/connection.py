"""Open an SSH connection that checks who answers, and say in clear words why it could not be opened."""

from __future__ import annotations

import logging
import socket
import time
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
from paramiko import auth_handler, buffered_pipe, channel, packet, transport
from paramiko.config import SSH_PORT
from paramiko.pkey import UnknownKeyType

from harness.errors import ConfigurationError, HarnessError, InfrastructureError, UnreachableError
from harness.hosts.access import Access

#: Seconds between keepalives, and how long data may stay unacknowledged before the link counts as lost:
#: a host that loses its power in the middle of a flash is noticed long before the flash's own deadline.
KEEPALIVE = 15
_UNACKNOWLEDGED = 30
#: The fastest cipher that both paramiko and OpenSSH have (110 instead of 80 MB/s).
_FAST_CIPHER = "aes128-gcm@openssh.com"

# Paramiko measures its deadlines with the wall clock: set forwards in the middle of a login, it would take
# the host for one that does not answer; set backwards, wait for hours. It needs nothing else of the time.
_STEADY = SimpleNamespace(time=time.monotonic, sleep=time.sleep)
for _module in (transport, auth_handler, buffered_pipe, channel, packet):
    vars(_module)["time"] = _STEADY

# What went wrong is in the errors below; without a handler paramiko prints tracebacks of its own.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


def open_connection(name: str, access: Access, deadline: float) -> paramiko.SSHClient:
    """Return a connection to host ``name`` on which the login succeeded.

    :param deadline: seconds for TCP, key exchange and login, each.
    :raises UnreachableError: nothing answers at the address.
    :raises InfrastructureError: the host key is unknown or changed, or the login was refused.
    :raises ConfigurationError: the known-hosts file or the key file cannot be read.
    """
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    try:
        _trust(client, access)
    except OSError as error:
        raise ConfigurationError(
            f"The known-hosts file {access.known_hosts} for {name} cannot be read: {error.strerror}.",
            hint="Host keys are always checked; name a file that holds this host's key.",
        ) from None
    key = _key(name, access)
    link = _tcp(name, access, deadline)
    try:
        client.connect(
            access.address,
            access.port,
            access.user,
            password=access.password,
            pkey=key,
            sock=link,
            timeout=deadline,
            banner_timeout=deadline,
            auth_timeout=deadline,
            allow_agent=access.agent,
            look_for_keys=False,
            transport_factory=_transport,
        )
    except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
        client.close()
        link.close()
        # The cause is in the message; paramiko's own frames hold the password.
        raise _explained(error, name, access) from None
    except BaseException:
        client.close()
        link.close()
        raise
    transport = client.get_transport()
    if transport is not None:
        transport.set_keepalive(KEEPALIVE)
    return client


def _trust(client: paramiko.SSHClient, access: Access) -> None:
    """Give ``client`` the keys that the host may have. :raises OSError: the file of them cannot be read.

    A lab has one file for all of its hosts; it is parsed once, not by each of them.
    """
    state = access.known_hosts.stat()
    known = _parsed(access.known_hosts, state.st_ino, state.st_mtime_ns, state.st_size)
    name = access.address if access.port == SSH_PORT else f"[{access.address}]:{access.port}"
    for kind, key in (known.lookup(name) or {}).items():
        client.get_host_keys().add(name, kind, key)


@lru_cache(maxsize=8)
def _parsed(path: Path, *_: int) -> paramiko.HostKeys:
    """Return the keys in the file ``path`` as it was at that moment."""
    return paramiko.HostKeys(str(path))


def _key(name: str, access: Access) -> paramiko.PKey | None:
    """Read the private key. Left to itself, paramiko tries to read it as every kind of key, and tells
    of the last that it is not instead of the refusal."""
    if access.key_file is None:
        return None
    try:
        return paramiko.PKey.from_path(access.key_file)
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        hint = "Check `credentials: key_file` in the inventory."
    except TypeError:
        problem = "needs a passphrase"
        hint = "Load it into an SSH agent and use `agent: true`."
    except (ValueError, paramiko.SSHException, UnknownKeyType):
        problem = "is not a private key of a known kind"
        hint = "Check `credentials: key_file` in the inventory."
    raise ConfigurationError(f"The key file {access.key_file} for {name} {problem}.", hint=hint)


def _tcp(name: str, access: Access, deadline: float) -> socket.socket:
    try:
        link = socket.create_connection((access.address, access.port), timeout=deadline)
    except TimeoutError:
        reason = f"no answer within {deadline:g} s"
    except OSError as error:
        reason = error.strerror or str(error)
    else:
        # paramiko leaves Nagle's algorithm on: 44 to 88 ms for every command.
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED * 1000)
        return link
    raise UnreachableError(
        f"{name} cannot be reached at {access.address}:{access.port}: {reason}.",
        hint="Is the host up, and are address and port in the inventory right?",
    )


def _transport(sock: Any, **options: Any) -> paramiko.Transport:
    transport = paramiko.Transport(sock, **options)
    security = transport.get_security_options()
    if _FAST_CIPHER in security.ciphers:
        security.ciphers = (_FAST_CIPHER, *(c for c in security.ciphers if c != _FAST_CIPHER))
    return transport


def _explained(error: Exception, name: str, access: Access) -> HarnessError:
    """Return the error that says why the connection was not opened; it never holds a secret."""
    where = f"{access.address}:{access.port}"
    if isinstance(error, paramiko.BadHostKeyException):
        return InfrastructureError(
            f"The host key of {name} at {where} is not the one in {access.known_hosts}: "
            f"{error.key.get_name()} {error.key.fingerprint} answered, "
            f"{error.expected_key.fingerprint} is on file; nothing was sent to it.",
            hint="Someone may stand in between, or the host was reinstalled. If the change is meant, "
            f"replace its line in {access.known_hosts}.",
        )
    if isinstance(error, paramiko.AuthenticationException):
        return InfrastructureError(
            f"{name} at {where} refused the login of user {access.user!r} with {access.login}.",
            hint="Check the user and the credentials that the inventory refers to.",
        )
    text = str(error) or type(error).__name__
    if "known_hosts" in text:
        return InfrastructureError(
            f"The host key of {name} at {where} is not in {access.known_hosts}; nothing was sent to it.",
            hint=f"Compare its fingerprint on the host's console, then add it to {access.known_hosts}.",
        )
    if "authentication methods" in text:
        return InfrastructureError(
            f"The login at {name} could not be tried with {access.login}: {text}.",
            hint="Check the credentials that the inventory refers to.",
        )
    return UnreachableError(
        f"{name} answers at {where}, but no SSH session came about: {text}.",
        hint="Is it an SSH server, and does it accept more connections?",
    )

"""Open an SSH connection that checks who answers, and say in clear words why it could not be opened."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
from paramiko import auth_handler, buffered_pipe, channel, packet, transport
from paramiko.pkey import PublicBlob, UnknownKeyType

from harness.errors import ConfigurationError, HarnessError, InfrastructureError, UnreachableError
from harness.hosts.access import Access, Jump, certificate_of
from harness.hosts.agent import AgentLogin, NoAgentKeysError
from harness.hosts.host_trust import ChangedKeyError, HostTrust, NotTrustedError, UnknownKeyError
from harness.hosts.jumps import Jumps
from harness.hosts.liveness import LiveTransport, tuned
from harness.hosts.silence import Silence

# Paramiko measures its deadlines with the wall clock: set forwards in the middle of a login, it would take
# the host for one that does not answer; set backwards, wait for hours. It needs nothing else of the time.
_STEADY = SimpleNamespace(time=time.monotonic, sleep=time.sleep)
for _module in (transport, auth_handler, buffered_pipe, channel, packet):
    vars(_module)["time"] = _STEADY

# What went wrong is in the errors below; without a handler paramiko prints tracebacks of its own.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

_SILENT = Silence()
#: fe80::/10 (RFC 4291, 2.5.6).
_LINK_LOCAL = ("fe8", "fe9", "fea", "feb")
_ON_LINK = "fe80::1%eth1"


class Connection:
    """A connection on which the login succeeded; a jump host on the way is held for as long as it is open."""

    def __init__(self, client: paramiko.SSHClient, jump: Jump | None) -> None:
        self._client = client
        self._jump = jump
        self._lock = threading.Lock()

    def get_transport(self) -> paramiko.Transport | None:
        """Return what commands run over; None where it is gone."""
        return self._client.get_transport()

    def close(self) -> None:
        """Close it; may be called twice."""
        self._client.close()
        with self._lock:
            jump, self._jump = self._jump, None
        if jump is not None:
            _JUMPS.release(jump)


def open_connection(name: str, access: Access, deadline: float, *, waiting: bool = False) -> Connection:
    """Return a connection to host ``name`` on which the login succeeded.

    :param deadline: seconds for TCP, key exchange and login, each.
    :param waiting: it is waited for: it is asked even if it was silent a moment ago.
    :raises UnreachableError: nothing answers at the address, or on the way to it.
    :raises InfrastructureError: the host key is unknown or changed, or the login was refused.
    :raises ConfigurationError: the known-hosts file or the key file cannot be read.
    """
    patience = deadline if waiting else _SILENT.patience(access, deadline)
    client = paramiko.SSHClient()
    trust = _trust(name, access)
    client.set_missing_host_key_policy(trust)
    key = _key(name, access)
    began = time.monotonic()
    try:
        opened = _logged_in(name, client, access, (key, trust), patience, deadline)
    except UnreachableError as error:
        _SILENT.note(access, error, time.monotonic() - began)
        raise
    _SILENT.forget(access)
    return opened


def _logged_in(
    name: str,
    client: paramiko.SSHClient,
    access: Access,
    known: tuple[paramiko.PKey | None, HostTrust],
    patience: float,
    deadline: float,
) -> Connection:
    key, trust = known
    with way_to(name, access, patience) as link, ExitStack() as meanwhile:
        try:
            by_agent = meanwhile.enter_context(closing(AgentLogin(access.user))) if access.agent else None
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
                allow_agent=False,
                auth_strategy=by_agent,
                look_for_keys=False,
                transport_factory=partial(_transport, trust),
            )
        except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
            client.close()
            # The cause is in the message; paramiko's own frames hold the password.
            raise _explained(error, name, access) from None
        except BaseException:
            client.close()
            raise
    opened = client.get_transport()
    if isinstance(opened, LiveTransport):
        opened.watch()
    return Connection(client, access.jump)


@contextmanager
def way_to(name: str, access: Access, deadline: float) -> Iterator[Any]:
    """Give a stream to the SSH server of the host ``name``: a socket, or a channel through its jump host.

    Where what is done with it fails, it is closed, and a jump host let go; else that is for the caller.

    :raises UnreachableError: there is no way. :raises HarnessError: as of each host on the way.
    """
    jump = access.jump
    link = _tcp(name, access, deadline) if jump is None else _JUMPS.channel(name, access, jump, deadline)
    try:
        yield link
    except BaseException:
        if jump is None:
            link.close()
        else:
            _JUMPS.abandon(link, jump)
        raise


def release(jump: Jump | None) -> None:
    """Let go of what :func:`way_to` has held."""
    if jump is not None:
        _JUMPS.release(jump)


_JUMPS = Jumps(open_connection)


def _trust(name: str, access: Access) -> HostTrust:
    """Return what decides whom the host is taken for. :raises ConfigurationError: its file cannot be read."""
    try:
        return HostTrust(access)
    except OSError as error:
        raise ConfigurationError(
            f"The known-hosts file {access.known_hosts} for {name} cannot be read: {error.strerror}.",
            hint=f"Host keys are always checked. Look at the host's and keep it:  hil host trust {name}",
        ) from None


def _transport(trust: HostTrust, link: Any, **options: Any) -> LiveTransport:
    """Return a connection over ``link`` that asks for a host key which can be told to be the host's."""
    made = LiveTransport(link, **options)
    security = made.get_security_options()
    security.key_types = trust.preferred(security.key_types)
    return made


def _key(name: str, access: Access) -> paramiko.PKey | None:
    """Read the private key, and its certificate where it has one beside it. Left to itself, paramiko tries to
    read it as every kind of key, and tells of the last that it is not instead of the refusal.

    :raises ConfigurationError: it cannot be read, or opened.
    """
    if access.key_file is None:
        return None
    secret = access.passphrase
    hint = "Check `credentials: key_file` in the inventory."
    try:
        return paramiko.PKey.from_path(access.key_file, secret.encode() if secret else None)  # type: ignore[arg-type]
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except TypeError:
        problem = "needs a passphrase" if secret is None else "needs no passphrase, and one is given"
        hint = "Say where that is: `credentials: {key_file: ..., passphrase: {env: NAME}}`."
    except (ValueError, paramiko.SSHException, UnknownKeyType):
        problem = "is not a private key of a known kind"
        if _is_no_certificate(certificate := certificate_of(access.key_file)):
            problem, hint = f"has a certificate beside it, {certificate}, that is none", "Sign the key anew."
        elif secret is not None:
            problem, hint = "is not opened by its passphrase", "Check `passphrase` in the inventory."
    raise ConfigurationError(f"The key file {access.key_file} for {name} {problem}.", hint=hint)


def _is_no_certificate(path: Path) -> bool:
    """Return whether there is a file ``path``, and it is no certificate."""
    try:
        PublicBlob.from_file(str(path))
    except FileNotFoundError:
        return False
    except (ValueError, LookupError, paramiko.SSHException, OSError):
        return True
    return False


def _tcp(name: str, access: Access, deadline: float) -> socket.socket:
    hint = "Is the host up, and are address and port in the inventory right?"
    try:
        return tuned(socket.create_connection((access.address, access.port), timeout=deadline))
    except TimeoutError:
        reason = f"no answer within {deadline:g} s"
    except OSError as error:
        reason = error.strerror or str(error)
        if ":" in access.address and access.address.lower().startswith(_LINK_LOCAL):
            hint = f"A link-local address names the interface of this machine that leads there: {_ON_LINK}."
    raise UnreachableError(f"{name} cannot be reached at {access.where}: {reason}.", hint=hint)


def _explained(error: Exception, name: str, access: Access) -> HarnessError:
    """Return the error that says why the connection was not opened; it never holds a secret."""
    if isinstance(error, ChangedKeyError):
        return InfrastructureError(
            f"The host key of {name} at {access.where} is not the one in {access.known_hosts}: "
            f"{error.shown.kind} {error.shown.fingerprint} answered, "
            f"{error.on_file.fingerprint} is on file; nothing was sent to it.",
            hint="Someone may stand in between, or the host was reinstalled. If the change is meant, replace "
            f"the key:  hil host trust {name} --replace",
        )
    if isinstance(error, NotTrustedError):
        return InfrastructureError(
            f"{name} at {access.where} is not taken for itself: {error}; nothing was sent to it.",
            hint=f"Correct the host's certificate, or @cert-authority in {access.known_hosts}; or keep the "
            f"key of the host itself:  hil host trust {name}",
        )
    if isinstance(error, paramiko.AuthenticationException):
        return InfrastructureError(
            f"{name} at {access.where} refused the login of user {access.user!r} with {access.login}.",
            hint="Check the user and the credentials that the inventory refers to.",
        )
    if isinstance(error, UnknownKeyError):
        return InfrastructureError(
            f"The host key of {name} at {access.where} is not in {access.known_hosts}; nothing was sent.",
            hint=f"Compare its fingerprint with what its console says, then keep it:  hil host trust {name}",
        )
    text = str(error) or type(error).__name__
    if isinstance(error, NoAgentKeysError):
        return InfrastructureError(
            f"The login at {name} could not be tried with {access.login}: {text}.",
            hint="Start an agent and give it the key: ssh-add; or name another credential in the inventory.",
        )
    return UnreachableError(
        f"{name} answers at {access.where}, but no SSH session came about: {text}.",
        hint="Is it an SSH server, and does it accept more connections?",
    )

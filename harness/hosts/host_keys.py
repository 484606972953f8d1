"""Fetches the keys that a host shows, without a login; who they belong to is for a person to say."""

from __future__ import annotations

from typing import Final

import paramiko

from harness.errors import UnreachableError
from harness.hosts.access import Access
from harness.hosts.connection import release, way_to
from harness.hosts.known_hosts import HostKey
from harness.hosts.liveness import LiveTransport

#: A host shows one key in a handshake, of a kind that both sides know: so each kind is asked for by itself.
_KINDS: Final = (
    ("ssh-ed25519",),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    ("rsa-sha2-512", "rsa-sha2-256"),
)


def shown_keys(name: str, access: Access, deadline: float = 15.0) -> list[HostKey]:
    """Return the keys of the host ``name``, the one that is preferred first.

    :raises UnreachableError: nothing answers, or no SSH server does.
    :raises HarnessError: as of its jump hosts.
    """
    found = [key for kinds in _KINDS if (key := _shown(name, access, kinds, deadline)) is not None]
    if not found:
        raise UnreachableError(f"{name} at {access.where} shows no host key of a kind that is known.")
    return found


def _shown(name: str, access: Access, kinds: tuple[str, ...], deadline: float) -> HostKey | None:
    """Return the host's key of one of ``kinds``; None where it has none."""
    key: paramiko.PKey | None = None
    with way_to(name, access, deadline) as link:
        transport = LiveTransport(link)
        try:
            transport.get_security_options().key_types = kinds
            transport.start_client(timeout=deadline)
            key = transport.get_remote_server_key()
        except paramiko.ssh_exception.IncompatiblePeer:
            pass
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise UnreachableError(
                f"{name} answers at {access.where}, but shows no host key: {error or type(error).__name__}.",
                hint="Is it an SSH server?",
            ) from None
        finally:
            transport.close()
    release(access.jump)
    return HostKey(key.get_name(), key.get_base64()) if key is not None else None

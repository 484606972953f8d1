"""How the real hosts of a lab are reached: what the inventory says, with its secrets found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.hosts.access import Access, Jump, Sudo
from harness.record.redaction import register_secret

if TYPE_CHECKING:
    from harness.inventory.entries import Credential
    from harness.inventory.model import Lab


def access_of(lab: Lab, host: str) -> Access | None:
    """Return how the real host ``host`` is reached over SSH; None for the local machine.

    What is secret in it is masked from now on in all that is written.

    :raises ConfigurationError: there is no such host, or a secret that it refers to is not to be had.
    """
    from harness.inventory.credentials import resolve

    entry = lab.host(host).ssh
    if entry is None:
        return None
    login = resolve(entry.credentials)
    for secret in login.secrets:
        register_secret(secret)
    through = access_of(lab, entry.jump) if entry.jump is not None else None
    return Access(
        entry.address,
        entry.port,
        entry.user,
        entry.known_hosts,
        key_file=login.key_file,
        passphrase=login.passphrase,
        password=login.password,
        agent=login.agent,
        sudo=None if entry.sudo is None else Sudo(password_of(entry.sudo.credentials)),
        jump=Jump(entry.jump, through) if entry.jump is not None and through is not None else None,
    )


def password_of(credentials: Credential | None) -> str | None:
    """Return the password that ``credentials`` lead to, masked from now on; None where there are none.

    :raises ConfigurationError: it is not to be had.
    """
    from harness.inventory.credentials import resolve

    password = None if credentials is None else resolve(credentials).password
    if password is not None:
        register_secret(password)
    return password

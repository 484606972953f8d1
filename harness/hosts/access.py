"""How a host is reached over SSH, with its secrets resolved; never printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

DEFAULT_PORT: Final = 22
_ROOT = "root"


@dataclass(frozen=True, slots=True)
class Sudo:
    """What makes a command run as root where the login is not root's.

    ``password``: what sudo asks for; None: it asks for none.
    """

    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Access:
    """Address, user, the host key's file, and one way to log in.

    ``known_hosts``: file that must hold the host's key. One of ``key_file``, ``password`` and
    ``agent`` is given; ``passphrase`` opens an encrypted ``key_file``. ``sudo``: for commands that need root.
    ``jump``: the host through which this one is reached; its name and its own access.
    """

    address: str
    port: int
    user: str
    known_hosts: Path
    key_file: Path | None = None
    passphrase: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    agent: bool = False
    sudo: Sudo | None = None
    jump: Jump | None = None

    @property
    def login(self) -> str:
        """How the login is proved, in words without a secret."""
        if self.key_file is not None:
            certificate = certificate_of(self.key_file)
            with_it = f" and its certificate {certificate}" if certificate.exists() else ""
            return f"the key {self.key_file}{with_it}"
        return "a password" if self.password is not None else "the SSH agent"

    @property
    def where(self) -> str:
        """Address and port, for messages: ``10.10.7.3:22``, ``[fe80::1%eth0]:22``."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{address}:{self.port}"

    @property
    def known_as(self) -> str:
        """The name under which files of known hosts have it (sshd(8)): ``fe80::1%eth0``, ``[::1]:2222``."""
        return self.address if self.port == DEFAULT_PORT else f"[{self.address}]:{self.port}"

    @property
    def names(self) -> tuple[str, str]:
        """The names that lines of authorities in such files are about: with its port, and without."""
        return self.known_as, self.address

    @property
    def needs_sudo(self) -> bool:
        """Whether a command that needs root goes through sudo."""
        return self.sudo is not None and self.user != _ROOT

    def hops(self) -> Iterator[Jump]:
        """Yield the hosts on the way, the one that is reached first first."""
        if self.jump is not None:
            yield from self.jump.access.hops()
            yield self.jump


@dataclass(frozen=True, slots=True)
class Jump:
    """A host on the way to another one: its name in the inventory, and how it is reached itself."""

    name: str
    access: Access


def certificate_of(key_file: Path) -> Path:
    """Return where OpenSSH keeps the certificate of a private key: ``id_ed25519-cert.pub``."""
    return key_file.with_name(f"{key_file.name}-cert.pub")

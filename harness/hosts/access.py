"""How a host is reached over SSH, with its secrets resolved; never printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Access:
    """Address, user, the host key's file, and one way to log in.

    ``known_hosts``: file that must hold the host's key. One of ``key_file``, ``password`` and
    ``agent`` is given.
    """

    address: str
    port: int
    user: str
    known_hosts: Path
    key_file: Path | None = None
    password: str | None = field(default=None, repr=False)
    agent: bool = False

    @property
    def login(self) -> str:
        """How the login is proved, in words without a secret."""
        if self.key_file is not None:
            return f"the key {self.key_file}"
        return "a password" if self.password is not None else "the SSH agent"

"""What an inventory says of the way to a real host: address, login, jump host, how to become root there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, model_validator

from harness.inventory.entries import Credential, Entry, EntryError, no_such_entry, unknown_name
from harness.inventory.forms import FilePath, HostAddress, Name, User

if TYPE_CHECKING:
    from harness.inventory.model import Host


class Sudo(Entry):
    """The login may run commands as root by sudo. ``credentials``: the password, where sudo asks for one."""

    credentials: Credential | None = None

    @model_validator(mode="after")
    def _asks_for_a_password(self) -> Sudo:
        if self.credentials is not None and not self.credentials.is_password:
            raise EntryError("sudo asks for a password; refer to one with env or file", "credentials")
        return self


def _sudo(value: Any) -> Any:
    if isinstance(value, bool):
        return {} if value else None
    if type(value) in (str, int, float):  # what was given is not repeated: it may be the password
        raise ValueError("neither true nor a mapping with 'credentials'; a password never stands here")
    return value


SudoEntry = Annotated[
    Sudo | None, BeforeValidator(_sudo, json_schema_input_type=Sudo | StrictBool | None), Field(default=None)
]


class SshAccess(Entry):
    """How a real host is reached over SSH. Its host key must stand in ``known_hosts``.

    ``jump``: the host of this lab through which it is reached. ``sudo``: true, or with the password's
    ``credentials``: what needs root there goes through sudo; not needed where ``user`` is root.
    """

    address: HostAddress
    user: User
    port: StrictInt = Field(default=22, ge=1, le=65535)
    known_hosts: FilePath = Field(default=Path("~/.ssh/known_hosts"), validate_default=True)
    credentials: Credential = Credential(agent=True)
    jump: Name | None = None
    sudo: SudoEntry

    @property
    def where(self) -> str:
        """User, address and port, for people."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.user}@{address}:{self.port}"


def jumps_of(hosts: Mapping[str, Host], name: str) -> Iterator[str]:
    """Yield the jump hosts on the way to the host ``name``, the nearest to it first; a circle has no end."""
    entry = hosts[name].ssh
    while entry is not None and entry.jump is not None:
        yield entry.jump
        entry = hosts[entry.jump].ssh


def check_jumps(hosts: Mapping[str, Host]) -> None:
    """:raises EntryError: a jump host is not there, is not reached over SSH, or leads in a circle."""
    for name, host in hosts.items():
        if host.ssh is None or host.ssh.jump is None:
            continue
        keys = ("hosts", name, "ssh", "jump")
        found = hosts.get(host.ssh.jump)
        if found is None:
            known = [other for other, entry in hosts.items() if entry.ssh and other != name]
            raise no_such_entry(unknown_name("host", host.ssh.jump, known, "this lab"), *keys)
        if found.ssh is None:
            raise EntryError(f"{found.name!r} is not reached over SSH, and so is no jump host", *keys)
    for name in hosts:
        passed = [name]
        for jump in jumps_of(hosts, name):
            passed.append(jump)
            if passed.count(jump) > 1:
                way = " -> ".join(passed)
                raise EntryError(f"the way to {name} leads in a circle: {way}", "hosts", name, "ssh", "jump")

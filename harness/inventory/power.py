"""What an inventory says of the power of a real host: a Redfish or IPMI controller of it, or commands."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt, model_validator

from harness.inventory.entries import Credential, Entry, EntryError
from harness.inventory.forms import CommandLine, FilePath, HostAddress, ProgramName, Url, User

_Seconds = Annotated[float, Field(gt=0, le=3600)]


class PowerCommand(Entry):
    """Command lines that switch a host; they run on the harness's own machine and end when it is done.

    ``status``: prints a line that ends with ``on`` or ``off``; without it nobody sees what was switched.
    """

    off: CommandLine
    on: CommandLine
    status: CommandLine | None = None


class RedfishPower(Entry):
    """A host's controller that speaks Redfish, at the ``url`` of its service, with ``/redfish/v1`` or not.

    Any other path in ``url`` is the prefix below which a reverse proxy has the service.
    ``system``: id or path of the computer; may be left out where the controller has one only. ``ca_file``:
    the authority of its certificate; ``insecure``: anybody's certificate is taken. ``login``: with each
    request (``basic``), or once for a ``session``.
    """

    url: Url
    user: User
    credentials: Credential
    system: Annotated[str, Field(pattern=r"^[A-Za-z0-9._~/-]+$")] | None = None
    ca_file: FilePath | None = None
    insecure: StrictBool = False
    login: Literal["basic", "session"] = "basic"

    @model_validator(mode="after")
    def _holds(self) -> RedfishPower:
        _must_be_password(self.credentials)
        if set(self.url) & {"?", "#"}:
            raise EntryError("has a query or a fragment; a service's address has none", "url")
        if self.insecure and self.ca_file:
            raise EntryError("contradicts 'insecure', which checks no certificate", "ca_file")
        return self


class IpmiPower(Entry):
    """A host's controller that speaks IPMI 2.0 over the network, asked by ``ipmitool``.

    ``cipher_suite``: of the session; by default what ipmitool chooses. ``privilege``: the level asked for.
    """

    address: HostAddress
    user: User
    credentials: Credential
    port: StrictInt = Field(default=623, ge=1, le=65535)
    cipher_suite: Annotated[StrictInt, Field(ge=1, le=17)] | None = None
    privilege: Literal["OPERATOR", "ADMINISTRATOR"] = "ADMINISTRATOR"
    program: ProgramName = "ipmitool"

    @model_validator(mode="after")
    def _holds(self) -> IpmiPower:
        _must_be_password(self.credentials)
        return self


def _must_be_password(credentials: Credential) -> None:
    if not credentials.is_password:
        raise EntryError("the controller asks for a password; refer to one with env or file", "credentials")


class Power(Entry):
    """How the power of a real host is switched: exactly one of ``redfish``, ``ipmi`` and ``command``.

    ``deadline``: seconds in which it must be seen to be off, and to be on, each.
    """

    redfish: RedfishPower | None = None
    ipmi: IpmiPower | None = None
    command: PowerCommand | None = None
    deadline: _Seconds = 120.0

    @property
    def way(self) -> Literal["redfish", "ipmi", "command"]:
        """By what it is switched."""
        return "redfish" if self.redfish else "ipmi" if self.ipmi else "command"

    @model_validator(mode="after")
    def _exactly_one(self) -> Power:
        given = [way for way in ("redfish", "ipmi", "command") if getattr(self, way)]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of redfish, ipmi and command; it has {' and '.join(given) or 'none'}"
            )
        return self

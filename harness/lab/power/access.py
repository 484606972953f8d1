"""How the power of a host is switched, with its secrets found: plain data that another process takes, too."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.lab.power.switch import Switch

if TYPE_CHECKING:
    from harness.inventory.model import Host

#: Seconds in which an emulated host is seen to be switched: at once, but for a machine that is busy.
EMULATED_DEADLINE: Final = 30.0


@dataclass(frozen=True, slots=True)
class RedfishAccess:
    """A Redfish service; ``system``: id or path of the computer, empty: its only one."""

    url: str
    user: str
    password: str = field(repr=False)
    system: str = ""
    ca_file: str = ""
    insecure: bool = False
    session: bool = False


@dataclass(frozen=True, slots=True)
class IpmiAccess:
    """A controller that ``program`` asks by IPMI; ``cipher_suite`` 0: as the program chooses."""

    address: str
    port: int
    user: str
    password: str = field(repr=False)
    cipher_suite: int = 0
    privilege: str = "ADMINISTRATOR"
    program: str = "ipmitool"


@dataclass(frozen=True, slots=True)
class CommandAccess:
    """Command lines; ``status`` empty: nobody can see what the power is."""

    off: tuple[str, ...]
    on: tuple[str, ...]
    status: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PowerAccess:
    """One of the three for the host ``name``, and the seconds that each switching may take."""

    name: str
    by: RedfishAccess | IpmiAccess | CommandAccess
    deadline: float

    def opened(self) -> Switch:
        """Return the switch; close it."""
        if isinstance(self.by, RedfishAccess):
            from harness.lab.power.redfish import Redfish

            return Redfish(self.name, self.by)
        if isinstance(self.by, IpmiAccess):
            from harness.lab.power.ipmi import Ipmi

            return Ipmi(self.name, self.by)
        from harness.lab.power.commands import Commands

        return Commands(self.name, self.by)

    def to_text(self) -> str:
        """Return all of it, secrets included, for the standard input of another process."""
        return json.dumps({"name": self.name, "deadline": self.deadline, **_named(self.by)})

    @classmethod
    def from_text(cls, text: str) -> PowerAccess:
        """Return what :meth:`to_text` made."""
        values: dict[str, Any] = json.loads(text)
        kind: Any = {one.__name__: one for one in (RedfishAccess, IpmiAccess, CommandAccess)}[values["kind"]]
        by = {key: tuple(value) if isinstance(value, list) else value for key, value in values["by"].items()}
        return cls(values["name"], kind(**by), values["deadline"])


def emulated_access(name: str, url: str, user: str, password: str) -> PowerAccess:
    """Return how the power of an emulated host is switched that has a Redfish controller at ``url``."""
    return PowerAccess(name, RedfishAccess(url, user, password), EMULATED_DEADLINE)


def _named(by: RedfishAccess | IpmiAccess | CommandAccess) -> dict[str, Any]:
    return {"kind": type(by).__name__, "by": asdict(by)}


def power_access(host: Host) -> PowerAccess | None:
    """Return how the power of the real ``host`` is switched; None: it is not.

    :raises ConfigurationError: the secret that its entry refers to is not to be had.
    """
    from harness.lab.reaching import password_of

    power = host.power
    if power is None:
        return None
    by: RedfishAccess | IpmiAccess | CommandAccess
    if power.redfish is not None:
        of = power.redfish
        by = RedfishAccess(
            of.url.rstrip("/"),
            of.user,
            password_of(of.credentials) or "",
            of.system or "",
            str(Path(of.ca_file)) if of.ca_file else "",
            of.insecure,
            of.login == "session",
        )
    elif power.ipmi is not None:
        ipmi = power.ipmi
        by = IpmiAccess(
            ipmi.address,
            ipmi.port,
            ipmi.user,
            password_of(ipmi.credentials) or "",
            ipmi.cipher_suite or 0,
            ipmi.privilege,
            ipmi.program,
        )
    else:
        assert power.command is not None
        by = CommandAccess(power.command.off, power.command.on, power.command.status or ())
    return PowerAccess(host.name, by, power.deadline)

"""Switches power by IPMI 2.0, asked by ipmitool; the password is in its environment, in no command line."""

from __future__ import annotations

import shutil

from harness.errors import BlockedError, ConfigurationError, InfrastructureError, UnreachableError
from harness.lab.power.access import IpmiAccess
from harness.lab.power.commands import outcome, reading
from harness.lab.power.switch import Power, Reading

#: The longest password of IPMI 2.0 (20.x; ipmitool(1), -P).
_LONGEST_PASSWORD = 20
#: Seconds between retransmissions, and how many: a controller that is silent is told in 6 s, not in 20.
_PATIENCE = ("-N", "2", "-R", "2")
#: ipmitool says the same of a wrong password as of a controller that is gone; more could lock the account.
_TRIES = 3


class Ipmi:
    """The controller of one host."""

    def __init__(self, name: str, access: IpmiAccess) -> None:
        self._name = name
        self._access = access
        self._refused = 0

    @property
    def where(self) -> str:
        """Who is asked, for messages."""
        return f"the IPMI controller at {self._access.address}"

    @property
    def sees(self) -> bool:
        """It says what the power is."""
        return True

    def state(self, seconds: float) -> Reading:
        """Return what ``power status`` says."""
        return reading(self._run("status", f"asks for the power of {self._name}", seconds))

    def ask(self, to: Power, seconds: float) -> None:
        """Run ``power off``, which cuts it at once, or ``power on``."""
        self._run(to, f"switches {self._name} {to}", seconds)

    def close(self) -> None:
        """Nothing is open."""

    def _run(self, word: str, does: str, seconds: float) -> str:
        """Run ipmitool.

        :raises UnreachableError: no session came about; after some tries it is told for good.
        :raises BlockedError: there is no ipmitool. :raises InfrastructureError: the controller refuses.
        """
        access = self._access
        if shutil.which(access.program) is None:
            raise BlockedError(
                f"The power of {self._name} cannot be switched: there is no {access.program} here.",
                hint="Install it:  sudo apt-get install ipmitool",
            )
        if len(access.password.encode()) > _LONGEST_PASSWORD:
            raise ConfigurationError(
                f"The password for {self.where} is longer than {_LONGEST_PASSWORD} bytes; IPMI has none such."
            )
        suite = ("-C", str(access.cipher_suite)) if access.cipher_suite else ()
        command = [access.program, "-I", "lanplus", "-H", access.address, "-p", str(access.port)]
        command += ["-U", access.user, "-E", "-L", access.privilege, *suite, *_PATIENCE, "power", word]
        try:
            said = outcome(does, command, seconds, {"IPMI_PASSWORD": access.password, "LC_ALL": "C"})
        except InfrastructureError as error:
            if "Unable to establish" not in error.message:
                raise
            self._refused += 1
            kind = UnreachableError if self._refused < _TRIES else InfrastructureError
            raise kind(
                f"{self.where} gives {access.user!r} no session: it is not there, or the login is wrong"
                f"{f'; it was tried {_TRIES} times' if self._refused >= _TRIES else ''}.",
                hint="Check address, user and credentials of `power: ipmi` in the inventory; older "
                "controllers want `cipher_suite: 3`.",
            ) from None
        self._refused = 0
        return said

"""The command lines of the host agent in each era (sections 3.2 and 3.3), run by the host's own shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.emulator.containers import TOOL_IMAGES
from harness.emulator.host import EmulatedHost
from harness.emulator.process import Buffer, Bytes
from harness.emulator.programs.base import Executable, Streams

FPGASUPDATE: Final = "/usr/bin/fpgasupdate"
FPGAINFO: Final = "/usr/bin/fpgainfo"
RSU: Final = "/usr/bin/rsu"
CACHE: Final = "/var/local/share/applications/sysinv"
_MOUNTED: Final = "/mnt/images"
_CPUSET: Final = "/sys/fs/cgroup/cpuset/platform"
_HOST_LOCALE: Final = {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}
_LOCALES: Final = ("LC_ALL=en_US.UTF-8", "LANG=en_US.UTF-8")


class SysinvError(Exception):
    """What sysinv's own exceptions are: the agent reports them, unlike every other one."""


class CommandFailed(Exception):
    """A program ended with something else than 0."""

    def __init__(self, argv: Sequence[str], code: int, text: str) -> None:
        super().__init__(f"Command '{shlex.join(argv)}' returned non-zero exit status {code}.")
        self.code = code
        self.text = text


@dataclass(frozen=True, slots=True)
class Tools:
    """Runs programs on a host as its agent does."""

    host: EmulatedHost

    def run(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> str:
        """Run ``argv`` and return its standard output. :raises CommandFailed: it did not end with 0."""
        out, err = Buffer(), Buffer()
        code = self.host.run(shlex.join(argv), Streams(Bytes(), out, err), dict(env or {}))
        text = out.data.decode("utf-8", "replace")
        if code != 0:
            raise CommandFailed(argv, code, text + err.data.decode("utf-8", "replace"))
        return text

    @property
    def image(self) -> str:
        """The tool image of the host's era."""
        return TOOL_IMAGES[self.host.era]

    def installed(self, program: str) -> bool:
        """Return whether ``program`` can be run."""
        if not self.host.vfs.exists(program):
            return False
        return isinstance(self.host.vfs.node(program), Executable)

    # -- the card -------------------------------------------------------------------------------

    def cards(self) -> list[str]:
        """Return the PCI addresses of the cards. :raises CommandFailed: lspci failed."""
        listing = self.run(["lspci", "-Dm", "-d", "8086:0b30"])
        return [line.split()[0] for line in listing.splitlines() if line.strip()]

    def flash(self, file: str, address: str) -> None:
        """Have fpgasupdate write the cached ``file`` to the card at ``address``.

        :raises SysinvError: there is no such tool. :raises CommandFailed: it refused or failed.
        """
        options = ["-y", "--log-level", "debug"]
        if self.host.era == "host":
            if not self.installed(FPGASUPDATE):
                raise SysinvError(
                    f"{FPGASUPDATE} not found, the opae package is not installed. "
                    f"Cannot update the image of device {address}."
                )
            self.run([FPGASUPDATE, *options, f"{CACHE}/{file}", address], _HOST_LOCALE)
            return
        command = ["fpgasupdate", *options, f"{_MOUNTED}/{file}", address]
        if self.host.era == "docker":
            locale = [word for value in _LOCALES for word in ("-e", value)]
            mount = ["-v", f"{CACHE}:{_MOUNTED}"]
            self.run(["docker", "run", "-t", "--privileged", *locale, *mount, self.image, *command])
            return
        self.remove_container("n3000-opae")
        if not self.host.vfs.exists(_CPUSET):
            self.host.vfs.write(f"{_CPUSET}/cpuset.cpus", b"0\n")
        locale = [word for value in _LOCALES for word in ("--env", value)]
        mount = ["--mount", f"type=bind,src={CACHE},dst={_MOUNTED},options=rbind:ro"]
        front = ["ctr", "-n=k8s.io", "run", "--rm", "--privileged", *locale, "--cgroup", "platform"]
        self.run([*front, *mount, self.image, "n3000-opae", *command])

    def remove_container(self, name: str) -> None:
        """Remove the container ``name`` that an earlier run has left. :raises CommandFailed: it cannot be."""
        listing = self.run(["ctr", "-n=k8s.io", "container", "list", f"image=={self.image}"])
        if any(line.split()[:1] == [name] for line in listing.splitlines()):
            self.run(["ctr", "-n=k8s.io", "container", "rm", name])

    def reset(self, address: str) -> None:
        """Have ``rsu`` load the BMC's user image again. :raises CommandFailed: it failed."""
        self._rsu("bmcimg", address)

    def reset_retimer(self, address: str) -> None:
        """Reset the retimers of a card. :raises CommandFailed: it failed."""
        if self.host.era == "host":
            self._rsu("retimer", address)
            return
        for place in self.host.vfs.glob(f"/sys/bus/pci/devices/{address}/{LEGACY_BMC}/pkvl"):
            self.run(["sh", "-c", f"echo 1 > {shlex.quote(place)}/eeprom_load"])
            self.run(["cat", f"{place}/eeprom_update_status"])  # a wrong status is only logged

    def _rsu(self, kind: str, address: str) -> None:
        if self.host.era == "host":
            if not self.installed(RSU):
                raise CommandFailed([RSU, kind, address], 127, "not found")
            self.run([RSU, kind, address])
        elif self.host.era == "docker":
            self.run(["docker", "run", "-t", "--privileged", self.image, "rsu", kind, address])
        else:
            front = ["ctr", "-n=k8s.io", "run", "--rm", "--privileged"]
            self.run([*front, self.image, "v1", "rsu", kind, address])


#: Below a card's PCI function: the FPGA management engine and the BMC of the out-of-tree drivers.
LEGACY_FME: Final = "fpga/intel-fpga-dev.*/intel-fpga-fme.*"
LEGACY_BMC: Final = f"{LEGACY_FME}/spi-altera.*.auto/spi_master/spi*/spi*.*"

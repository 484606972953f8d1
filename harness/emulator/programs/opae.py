"""What the OPAE tools share: finding cards in /sys, formatting versions, dying with a traceback."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.emulator.programs.base import Invocation, ProgramExit

#: The first that is there: DFL drivers, or the out-of-tree ones of generation A.
_DRIVERS = ("/sys/bus/pci/drivers/dfl-pci", "/sys/bus/pci/drivers/intel-fpga-pci")
_FMES = ("fpga_region/region*/dfl-fme.*", "fpga/intel-fpga-dev.*/intel-fpga-fme.*")
_ADDRESS = re.compile(r"(?:([0-9a-fA-F]{4}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])")
_SPIS = ("dfl_dev.*/*spi*/spi_master/spi*/spi*.*", "spi-altera.*.auto/spi_master/spi*/spi*.*")


@dataclass(frozen=True, slots=True)
class Pac:
    """A card as a tool sees it: the address of its management function and its directory in /sys."""

    run: Invocation
    address: str
    path: str

    def find(self, pattern: str) -> str | None:
        """Return the first path below the card that ``pattern`` matches."""
        found = self.run.vfs.glob(f"{self.path}/{pattern}")
        return found[0] if found else None

    @property
    def legacy(self) -> bool:
        """Whether the out-of-tree drivers have it (generation A)."""
        return self.find(_FMES[0]) is None

    @property
    def fme(self) -> str | None:
        """The management engine's directory."""
        return self.find(_FMES[self.legacy])

    def fme_value(self, pattern: str) -> str | None:
        """Return the text below the management engine that ``pattern`` leads to; None if it is not read."""
        return self.value(f"{_FMES[self.legacy]}/{pattern}")

    def bmc_value(self, pattern: str) -> str | None:
        """Return the text below the BMC's directory that ``pattern`` leads to; None where it is not read."""
        return self.value(self._below_bmc(pattern))

    def bmc(self, pattern: str) -> str | None:
        """Return the first path below the BMC's directory that ``pattern`` matches."""
        return self.find(self._below_bmc(pattern))

    def _below_bmc(self, pattern: str) -> str:
        legacy = self.legacy
        return f"{_FMES[legacy]}/{_SPIS[legacy]}/{pattern}"

    def value(self, pattern: str) -> str | None:
        """Return the stripped text of the first file that ``pattern`` matches; None where it is not read."""
        path = self.find(pattern)
        if path is None:
            return None
        try:
            return self.run.vfs.read(path).decode("utf-8", "replace").strip()
        except OSError:
            return None


def cards(run: Invocation) -> list[Pac]:
    """Return the cards that are bound to the driver, by address."""
    driver = next((path for path in _DRIVERS if run.vfs.exists(path)), _DRIVERS[0])
    return [
        Pac(run, path.rpartition("/")[2], run.vfs.realpath(path))
        for path in run.vfs.glob(f"{driver}/[0-9a-f]*:*")
    ]


def canonical_address(text: str) -> str | None:
    """Return ``text`` with its domain; None where it is no PCI address."""
    match = _ADDRESS.fullmatch(text)
    return f"{match[1] or '0000'}:{match[2]}" if match else None


def version(word: int) -> str:
    """Return a BMC version word as the tools print it: 0x44020014 is ``D.2.0.20``."""
    revision, *numbers = word.to_bytes(4, "big")
    letter = bytes([revision]).decode("ascii", "surrogateescape")
    return f"{letter}.{'.'.join(map(str, numbers))}"


def traceback(run: Invocation, message: str) -> ProgramExit:
    """Print what Python prints for an exception that nobody caught; return the exit that follows."""
    run.streams.stdout.flush()
    run.err(
        "Traceback (most recent call last):\n"
        f'  File "/usr/bin/{run.name}", line 33, in <module>\n'
        f"    sys.exit(load_entry_point('opae.admin', 'console_scripts', '{run.name}')())\n"
        f"{message}\n"
    )
    return ProgramExit(1)


def os_error_text(error: OSError) -> str:
    """Return ``error`` as Python prints it, without the file."""
    return f"[Errno {error.errno}] {error.strerror}"

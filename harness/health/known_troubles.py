"""Versions of tools and drivers that are known to go wrong together, from the vendor's trackers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from harness.cards.truth import CardTruth
from harness.health.checks import Check, bad, ok, warn
from harness.judgement.values import NOT_EXPOSED, Unknown

Version = tuple[int, ...]

_VERSION: Final = re.compile(r"\b(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?\b")
#: First version of OPAE whose fpgasupdate ends after an error in `transferring`, a word of generation D alone
#: (opae-sdk #2816; n3000.md, section 7.3).
_TRANSFERS: Final[Version] = (2, 4, 0)


def version_of(text: str) -> Version | None:
    """Return the version in what a tool says of itself, such as ``fpgasupdate 2.14.0``; None: it has none."""
    match = _VERSION.search(text)
    return tuple(int(part or 0) for part in match.groups()) if match else None


def driver_checks(truth: CardTruth) -> Iterator[Check]:
    """Yield what the drivers of a card show of it, and lack.

    Its bitstream_id is the FPGA's own register: all ones there is a card that fell off the bus.
    """
    if isinstance(truth.driver, Unknown):
        yield bad(
            "driver",
            f"no driver: {truth.driver.reason}",
            "Load it on the host: modprobe dfl-pci (out of tree: intel-fpga-pci)",
        )
    elif isinstance(truth.generation, Unknown):
        yield bad(
            "driver",
            f"{truth.driver}, and {truth.generation.reason}",
            "The kernel needs the card's secure-update driver: modprobe intel-m10-bmc-sec-update; dmesg says "
            "why a probe failed",
        )
    elif isinstance(truth.bitstream_id, Unknown):
        yield bad(
            "driver",
            f"{truth.driver}, generation {truth.generation}; its bitstream_id is {truth.bitstream_id}",
            "A power cycle of the host brings back a card that fell off the bus.",
        )
    else:
        yield ok("driver", f"{truth.driver}, generation {truth.generation}")


def security_checks(truth: CardTruth) -> Iterator[Check]:
    """Yield a doubt where the drivers show nothing of root keys (opae-sdk #3172)."""
    if isinstance(truth.generation, str) and truth.sr_root == NOT_EXPOSED:
        yield warn(
            "security",
            "the drivers do not show the root entry hashes; `fpgainfo security` says that they are not "
            "supported (opae-sdk #3172)",
            "The kernel needs FPGA_M10_BMC_SEC_UPDATE; root keys cannot be judged without it.",
        )


def reset_checks(truth: CardTruth, resets: bool) -> Iterator[Check]:
    """Yield a doubt where `rsu` cannot reset the card, as with the drivers of the mainline kernel.

    It takes the card's network functions away before it finds that out (LP 2160223; n3000.md, 5.2).

    :param resets: whether the driver has a file by which the card is reset.
    """
    if truth.generation == "D" and not resets:
        yield warn(
            "reset",
            "the driver has no control/image_load: `rsu` ends with an error and leaves the card's network "
            "functions without drivers (LP 2160223)",
            "Boot a kernel that has it (StarlingX's, linux-dfl); or activate images by a power cycle.",
        )


def tool_checks(truth: CardTruth, version: str | None) -> Iterator[Check]:
    """Yield a doubt where a version of the flashing tool goes wrong with the card's drivers.

    :param version: what the tool says of itself; None where it is in an image.
    """
    found = version_of(version or "")
    if found is not None and found < _TRANSFERS and truth.generation == "D":
        yield warn(
            "tool version",
            f"{version} does not end after an error while it transfers (opae-sdk #2816)",
            "Install OPAE 2.4.0 or later on the host.",
        )

"""What can be wrong with the tools and the driver of an emulated host, as switches."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Final

from harness.errors import ConfigurationError

#: Name -> what the tool or the driver then does. Each changes one thing.
TOOL_DEFECTS: Final[dict[str, str]] = {
    "fpgasupdate-ignores-error": "an update that the driver ends with an error is told as Secure update OK",
    "fpgasupdate-exits-0": "a failure is told, and the exit status is 0",
    "fpgasupdate-misses-phase": "it waits to see the file transferred, and looks once a second",
    "fpgasupdate-refuses-board": "it wants a file of the driver that such a card never has, and refuses",
    "rsu-resets-nothing": "it says that the operation is complete, and writes nothing to image_load",
    "rsu-fails-after-reset": "it resets the card, and ends with status 1 for what it does afterwards",
    "fpgainfo-none-for-unread": "it cannot read the cancelled keys, and prints None as for no such key",
    "fpgainfo-count-of-before": "it shows the flash count that it has read first since the host's boot",
    "fpgainfo-root-of-bmc": "it shows the root entry hash of the section BMC for the FIM, too",
    "fpgainfo-boot-page-inverted": "it takes bit 36 of the bitstream id the other way round",
    "driver-starts-nothing": "a file that was written is dropped, and the status never leaves idle",
    "driver-without-control": "it has no files by which a card is reset, as a mainline kernel's",
    "driver-forgets-error": "the attribute error is empty after an update that failed",
    "driver-logs-code-of-before": "the kernel log has the authentication result of the update before",
    "driver-hides-keys": "reading the cancelled keys of the section SR fails with EIO",
}


def checked(names: Collection[str]) -> frozenset[str]:
    """Return the names. :raises ConfigurationError: there is no such defect of tools; with the nearest."""
    for name in sorted(names):
        if name not in TOOL_DEFECTS:
            near = difflib.get_close_matches(name, TOOL_DEFECTS, 1)
            raise ConfigurationError(
                f"There is no defect {name!r} of the tools of an emulated host.",
                hint=f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(TOOL_DEFECTS)}.",
            )
    return frozenset(names)

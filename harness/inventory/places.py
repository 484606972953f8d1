"""What an inventory says of the place that a host is in a labgrid installation."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from harness.inventory.entries import Entry

#: Where a coordinator listens that nobody has told otherwise (labgrid 26.0, `labgrid-coordinator --help`).
PORT: Final = 20408
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?\]|[A-Za-z0-9_][A-Za-z0-9_.-]*)(?::(\d{1,5}))?")


def coordinator_address(text: str) -> str:
    """Return ``text`` as ``HOST:PORT``. :raises ValueError: it is no address of a coordinator."""
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[2] or PORT) < 0x10000:
        raise ValueError(
            f"{text!r} is not the address of a coordinator; it has the form lab.example:{PORT} or "
            f"[::1]:{PORT}"
        )
    return f"{match[1]}:{match[2] or PORT}"


class LabgridPlace(Entry):
    """The place that stands for a host in labgrid: a run has it from its first change until it ends."""

    coordinator: Annotated[str, AfterValidator(coordinator_address)]
    place: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$")]

    def __str__(self) -> str:
        return f"{self.place} at {self.coordinator}"

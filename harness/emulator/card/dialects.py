"""In what the drivers of the four generations differ when they update a card (n3000.md 4.1, 4.2, 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

#: A: out-of-tree intel-fpga drivers; B: ifpga_sec_mgr; C: fpga_image_load; D: in-tree, firmware-upload.
Generation = Literal["A", "B", "C", "D"]

#: What the BMC's status may be at the end of an update (4.4 step 5), and wear-out (3.2).
_GOOD: Final = frozenset({0x00, 0x80, 0x81, 0x82})
_WEAROUT: Final = 0x08


@dataclass(frozen=True, slots=True)
class Dialect:
    """One generation's ways. ``register``: form of a register in its log.

    ``doorbell_label``: its name of the doorbell there; empty: the profile's. ``good_at_end``: what of the
    BMC's status it takes for success at completion. ``words``: phase -> its word, where that is another.
    """

    register: str = "0x{:08x}"
    doorbell_label: str = "RSU error status"
    good_at_end: frozenset[int] = _GOOD
    words: Mapping[str, str] = field(default_factory=dict)

    def error(self, text: str) -> str:
        """Return ``<phase>:<error>`` with this generation's word for the phase."""
        phase, colon, name = text.partition(":")
        return f"{self.words.get(phase, phase)}{colon}{name}"


DIALECTS: Final[dict[Generation, Dialect]] = {
    "A": Dialect(register="8'h{:08x}"),
    # The one that takes wear-out at completion for success.
    "B": Dialect(good_at_end=_GOOD | {_WEAROUT}, words={"receiving": "read_file", "transferring": "writing"}),
    "C": Dialect(),
    "D": Dialect(doorbell_label=""),
}

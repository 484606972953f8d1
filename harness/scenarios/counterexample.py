"""A counterexample of an exploration as a scenario file: what was done, and what documents promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

SOURCE: Final = (
    "Intel FPGA PAC N3000 Security User Guide (683519): policy; codes: authentication result register, as in "
    "DPDK drivers/raw/ifpga"
)
_EARLY: Final = ("preparing", "transferring")
_RESETS: Final = ("reset", "power-cycle")
#: Phases that no fault can be bound to by their own name -> the one that the tool shows.
_SHOWN_AS: Final = {"keys": "programming"}


class Done(Protocol):
    """One step of an exploration; see :class:`harness.lab.explored_card.Step`."""

    @property
    def name(self) -> str:
        """What was done."""

    @property
    def image(self) -> str:
        """The image of an update."""

    @property
    def phase(self) -> str:
        """The phase in which an update was disturbed."""

    @property
    def code(self) -> int:
        """How documents say that the card answers."""


def scenario_of(steps: Sequence[Done], reason: str, probes: Sequence[Done] = ()) -> dict[str, Any]:
    """Return the scenario that does ``steps`` and states what documents promise of each.

    A power cycle is written as a reset, a second updater is left out. ``probes``: updates that show what
    keys hold at the end.
    """
    expect: dict[str, Any] = {}
    done = [*_steps(steps), *(["reset"] if steps[-1].name not in _RESETS else [])]
    for probe in probes:
        done += [*_update(probe), "reset"]
    if any(step.name in ("cut", "reboot") for step in steps):
        expect = {"verdicts": {"fpgasupdate": "LOST"}}
    return {
        "about": f"Found by exploration, and shrunk to {len(steps)} steps: {reason}.",
        "source": SOURCE,
        "given": {"card": {"root": "none"}, **({"needs": ["power"]} if expect else {})},
        "steps": done,
        "expect": expect,
    }


def _steps(steps: Sequence[Done]) -> Iterator[Any]:
    moves = False
    for step in steps:
        if step.name in _RESETS:
            yield "reset"
        elif step.name == "move":
            moves = True
        else:
            if moves:
                yield {"fault": "move", "at": "start"}
            moves = False
            yield from _update(step)


def _update(step: Done) -> Iterator[dict[str, Any]]:
    refused = f"unchanged 0x{step.code:02X}" if step.code else ""
    promise = refused or "lands"
    if step.name == "cut":
        yield {"fault": "power-cut", "at": _SHOWN_AS.get(step.phase, step.phase)}
        promise = "factory" if step.phase == "copying" else "unchanged"
    elif step.name == "cancel":
        yield {"fault": "cancel", "at": step.phase}
        promise = "unchanged"
    elif step.name == "reboot":
        yield {"fault": "reboot", "at": _SHOWN_AS.get(step.phase, step.phase)}
        promise = "unchanged" if step.phase in _EARLY else promise
    yield {"flash": step.image, "promise": promise, "activate": False}

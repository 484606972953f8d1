"""What a command that runs a scenario many times asks of a lab: that it is emulated, or may be worn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harness.errors import RefusedError

if TYPE_CHECKING:
    from harness.inventory.model import Lab

RealOption = Annotated[bool, typer.Option("--real", help="Also on real cards, which every flash wears.")]


def refuse_real(entry: Lab, doing: str, *, real: bool) -> None:
    """Return if a lab may be worn. :raises RefusedError: it has real hosts, and nobody said so."""
    if not entry.emulated and not real:
        raise RefusedError(
            f"The lab {entry.name} has real hosts, and {doing} runs a scenario many times.",
            hint="Name an emulated lab with --lab, or say --real: each flash wears a card.",
        )

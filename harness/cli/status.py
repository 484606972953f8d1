"""`hil status`: side by side, what StarlingX systems say of their cards, what the cards hold, the verdict."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import typer

from harness.cli.form import Form, FormOption
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.judgement.records import Record
    from harness.judgement.side_by_side import Row
    from harness.lab.system_bench import SystemBench

R = TypeVar("R", bound="Record")
app = typer.Typer(add_completion=False, rich_markup_mode=None)
_EPILOG: Final = "Examples:  hil status subcloud4    hil status --way cli -o json    hil status --every 10"
_HEADS: Final = ("DEVICE", "WHAT", "THE SYSTEM SAYS", "THE CARD HOLDS", "VERDICT")
#: Records that are remembered, so that one who watches for days is not slowed down by the first.
_KEPT: Final = 20_000
_GOOD: Final = ("MATCH", "UNVERIFIABLE")


@dataclass
class _Memory:
    """Keeps the latest records; nothing of a status is written anywhere."""

    records: deque[Record] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _count: int = 0

    def add(self, record: R) -> R:
        """Keep ``record``; return it numbered, with its time."""
        self._count += 1
        numbered = replace(record, seq=self._count, time=time.time())
        self.records.append(numbered)
        return numbered


@app.command(epilog=_EPILOG)
def status(
    system: Annotated[list[str] | None, typer.Argument(help="Only these systems; default: all.")] = None,
    inventory: Annotated[Path | None, typer.Option(help="The inventory file.")] = None,
    lab: Annotated[str | None, typer.Option(help="The lab; default: the inventory's default_lab.")] = None,
    way: Annotated[Literal["rest", "cli"], typer.Option(help="Ask by the API, or by the command.")] = "rest",
    every: Annotated[float, typer.Option(min=0, help="Look again every so many seconds; 0: once.")] = 0,
    output: FormOption = Form.TABLE,
) -> None:
    """Show what each system says of its cards beside what they hold; exits with 1 where that differs.

    Nothing is changed. What an image is, is what the system was told of it: its bytes are not read.
    """
    from harness.cli.opening import running_lab
    from harness.inventory.load import load_inventory
    from harness.lab.system_bench import SystemBench, systems_of

    loaded = load_inventory(inventory)
    entry = loaded.lab(lab)
    names = _chosen(system or [], systems_of(entry), entry.name)
    memory = _Memory()
    with ExitStack() as ends:
        running = ends.enter_context(running_lab(loaded, entry))
        benches = [ends.enter_context(SystemBench(running, name, memory, way=way)) for name in names]
        rows = _look(benches, memory)
        _print(rows, output)
        while every:
            time.sleep(every)
            rows = _look(benches, memory)
            _print(rows, output)
    if any(row.verdict.value not in _GOOD for row in rows):
        raise typer.Exit(1)


def _chosen(wanted: list[str], known: list[str], lab: str) -> list[str]:
    from harness.inventory.entries import unknown_name

    for name in wanted:
        if name not in known:
            raise unknown_name("system", name, known, f"the lab {lab}")
    if not known:
        raise ConfigurationError(
            f"The lab {lab} has no system with a card.", hint="Give a host `system: NAME` in the inventory."
        )
    return wanted or known


def _look(benches: list[SystemBench], memory: _Memory) -> list[Row]:
    from harness.judgement.side_by_side import side_by_side

    for bench in benches:
        bench.look()
    return side_by_side([*_told(memory.records), *memory.records])


def _told(records: Iterable[Record]) -> Iterator[Record]:
    """Yield what each image is, as the system was told: its kind, and the id or key that it has."""
    from harness.judgement.records import Claim, Observation

    for record in records:
        if isinstance(record, Claim) and "/image/" in record.subject.name:
            values = {"image": _facts(record.statement)}
            yield Observation(probe="as-told", subject=record.subject, values=values)


def _facts(said: Any) -> dict[str, Any]:
    effects = {"root-key": "root-key", "key-revocation": "key-cancellation"}
    kind = said.get("bitstream_type")
    effect = effects.get(kind) or ("user-image" if said.get("bmc") is False else "unparsed")
    number = said.get("bitstream_id")
    return {
        "name": said.get("name") or said.get("uuid"),
        "effect": effect,
        "section": "SR",
        "bitstream_id": f"0x{number.removeprefix('0x')}" if isinstance(number, str) else None,
        "programs_root": said.get("key_signature"),
        "cancel_id": said.get("revoke_key_id"),
    }


def _print(rows: list[Row], output: Form) -> None:
    if output is Form.JSON:
        typer.echo(json.dumps([asdict(row) for row in rows]))
        return
    table = [_HEADS, *((r.device, r.what, r.said, r.truth, r.verdict.value) for r in rows)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEADS))]
    for cells in table:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())

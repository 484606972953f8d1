"""`hil status`: side by side, what systems and controllers say of cards, what these hold, the verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from harness.cli.form import Form, FormOption
from harness.cli.remembered import Remembered
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.inventory.model import Lab
    from harness.judgement.records import Record
    from harness.judgement.side_by_side import Row
    from harness.lab.background import BackgroundLab
    from harness.lab.watch import Watch

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_EPILOG: Final = "Examples:  hil status subcloud4    hil status --way cli -o json    hil status --every 10"
#: What the row of a system is about that does not answer.
ANSWER: Final = "answer"


@app.command(epilog=_EPILOG)
def status(
    system: Annotated[
        list[str] | None, typer.Argument(help="Only these; of a controller its subclouds too. Default: all.")
    ] = None,
    inventory: Annotated[Path | None, typer.Option(help="The inventory file.")] = None,
    lab: Annotated[str | None, typer.Option(help="The lab; default: the inventory's default_lab.")] = None,
    way: Annotated[Literal["rest", "cli"], typer.Option(help="Ask by the API, or by the command.")] = "rest",
    every: Annotated[float, typer.Option(min=0, help="Look again every so many seconds; 0: once.")] = 0,
    output: FormOption = Form.TABLE,
) -> None:
    """Show what each system, and the system controller above it, says of its cards beside what they hold.

    Exits with 1 where that differs, with 3 where a system does not answer. Nothing is changed. What an image
    is, is what the system was told of it: its bytes are not read. On a terminal, --every draws in place.
    """
    from harness.cli.opening import running_lab
    from harness.cli.status_text import show
    from harness.inventory.load import load_inventory
    from harness.lab.background import chosen_lab
    from harness.lab.watch import Watch

    loaded = load_inventory(inventory)
    entry, kept = chosen_lab(loaded, lab)
    wanted, asked = _chosen(system or [], entry)
    memory = Remembered()
    stays = kept.runs()

    @contextmanager
    def opened() -> Iterator[Watch]:
        with (
            kept.attach(loaded) if stays else running_lab(loaded, entry, kept=kept) as running,
            Watch(running, asked, memory, way=way) as watch,
        ):
            yield watch

    with closing(_looks(opened, kept if stays else None, asked, memory, wanted)) as looks:
        for rows in looks:
            show(rows, output, live=every > 0)
            if not every:
                break
            time.sleep(every)
    if any(row.diverges for row in rows):
        raise typer.Exit(1)
    if any(row.what == ANSWER for row in rows):
        raise typer.Exit(3)


def _chosen(named: list[str], lab: Lab) -> tuple[frozenset[str], list[str]]:
    """Return the devices and systems whose rows are wanted, and the systems that are asked for them."""
    from harness.inventory.entries import unknown_name
    from harness.lab.watch import watched

    known = watched(lab)
    for name in named:
        if name not in known:
            raise unknown_name("system", name, list(known), f"the lab {lab.name}")
    if not known:
        raise ConfigurationError(
            f"The lab {lab.name} has no system with a card.",
            hint="Give a host `system: NAME` in the inventory.",
        )
    systems = [name for name, above in known.items() if not named or name in named or above in named]
    cards = [f"{host.name}/{card.name}" for host, card in lab.cards() if host.system in systems]
    above = dict.fromkeys(known[name] for name in systems if known[name])
    return frozenset([*systems, *cards]), list(dict.fromkeys([*above, *systems]))


def _looks(
    opened: Callable[[], AbstractContextManager[Watch]],
    kept: BackgroundLab | None,
    asked: Collection[str],
    memory: Remembered,
    wanted: Collection[str],
) -> Generator[list[Row], None, None]:
    """Yield rows again and again; where every system is silent, the lab is opened again for the next ones.

    ``kept``: the lab that runs in the background, which is waited for where it does not run any more.
    """
    while True:
        with opened() as watch:
            silent: set[str] = set()
            while not silent.issuperset(asked):
                rows = _look(watch, memory, wanted)
                silent = {row.device for row in rows if row.what == ANSWER}
                yield rows
        while kept is not None and not kept.runs():
            why = f"the lab {kept.name} does not run; it is opened again once it does"
            yield [replace(row, truth=why) if row.what == ANSWER else row for row in rows]


def _look(watch: Watch, memory: Remembered, wanted: Collection[str]) -> list[Row]:
    from harness.judgement.model import VerdictKind
    from harness.judgement.side_by_side import Row, side_by_side

    with memory.look():
        failed: Mapping[str, str] = watch.look()
    records = memory.records
    rows = side_by_side([*_told(records), *records])
    silent = [Row(name, ANSWER, "nothing", why, VerdictKind.UNVERIFIABLE) for name, why in failed.items()]
    return [*(row for row in rows if row.device in wanted), *silent]


def _told(records: Iterable[Record]) -> Iterator[Record]:
    """Yield what each image is, as the system was told: its kind, and the id or key that it has."""
    from harness.judgement.records import Claim, Observation

    for record in records:
        if isinstance(record, Claim) and "/image/" in record.subject.name:
            values = {"image": _facts(record.statement)}
            yield Observation(probe="as-told", subject=record.subject, values=values)


def _facts(said: Any) -> dict[str, Any]:
    from harness.judgement.grouping import digits

    effects = {"root-key": "root-key", "key-revocation": "key-cancellation"}
    kind, number = str(said.get("bitstream_type")), said.get("bitstream_id")
    code = digits(number) if isinstance(number, str) else ""
    # A release that does not say whether an image is for the BMC: that has its MD5 as its id (section 1.1).
    user = said.get("bmc") is False or (said.get("bmc") is not True and 0 < len(code) <= 16)
    return {
        "name": said.get("name") or said.get("uuid"),
        "effect": effects.get(kind) or ("user-image" if user else "unparsed"),
        "section": "SR",
        "bitstream_id": f"0x{code}" if code else None,
        "programs_root": said.get("key_signature"),
        "cancel_id": said.get("revoke_key_id"),
    }

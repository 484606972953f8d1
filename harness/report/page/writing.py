"""Writes the page of a run: `report.html`, whole or not at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from harness.judgement.judge import Judgement
from harness.judgement.records import Record
from harness.report.files import filled, write_whole
from harness.report.page.contents import Contents, contents
from harness.report.printable import printable_parts

FILE_NAME: Final = "report.html"
_TEMPLATES: Final = Path(__file__).with_name("templates")
#: Text that may have line ends.
_PROSE: Final = frozenset({"text", "claimed", "truth", "how_read", "reason", "reasons", "outcomes", "what"})


def write_page(
    run_dir: Path,
    judgement: Judgement,
    records: Iterable[Record],
    to: Path | None = None,
    flaky: Collection[str] = (),
) -> Path:
    """Write the page of a run into its folder, or ``to`` a file; return its path.

    :param records: those that ``judgement`` was made from, once more.
    :param flaky: the scenarios that went both ways in past runs.
    :raises InfrastructureError: it cannot be written.
    """
    return write_whole(
        to or run_dir / FILE_NAME,
        page(contents(judgement, records, str(run_dir), flaky)),
        what="The report",
        hint=f"The history is whole: make room, then `hil report html {run_dir}`.",
    )


def page(said: Contents) -> str:
    """Return the page as HTML."""
    style, script = ((_TEMPLATES / name).read_text("utf-8") for name in ("report.css", "report.js"))
    template = _TEMPLATES / "report.html.jinja"
    return filled(template, said=printable_parts(said, _PROSE), style=style, script=script)

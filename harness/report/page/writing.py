"""Writes the page of a run: `report.html`, whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from harness.errors import InfrastructureError
from harness.judgement.judge import Judgement
from harness.judgement.records import Record
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
    path = to or run_dir / FILE_NAME
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    text = page(contents(judgement, records, str(run_dir), flaky))
    try:
        fresh.write_text(text, encoding="utf-8", errors="backslashreplace")
        fresh.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise InfrastructureError(
            f"The report {path} cannot be written: {error.strerror}.",
            hint=f"The history is whole: make room, then `hil report html {run_dir}`.",
        ) from error
    return path


def page(said: Contents) -> str:
    """Return the page as HTML. Text from outside is escaped, and asks for nothing from anywhere."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = ((_TEMPLATES / name).read_text("utf-8") for name in ("report.css", "report.js"))
    template = environment.get_template("report.html.jinja")
    return template.render(said=printable_parts(said, _PROSE), style=style, script=script).lstrip()

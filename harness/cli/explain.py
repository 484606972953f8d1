"""`hil explain`: which claims a pasted log makes, what truth each needs, which contradict each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.form import Form, FormOption
from harness.cli.pasted import PASTED, SkewOption, skews

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_EPILOG = """Examples:

  hil explain report.txt

  hil explain sysinv.log dockerd.log.gz -o json

  ssh controller-0 'cat /var/log/sysinv.log' | hil explain -

Exit codes: 0 whatever the log claims; 2 a file cannot be read.
"""


@app.command(epilog=_EPILOG)
def explain(
    files: Annotated[list[Path], PASTED],
    skew: SkewOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Say which claims logs make: who says what of what, and where; what must be read to judge each, by which
    checker, and how it is called where it is false; and which of them contradict each other already.

    Files hold what engineers paste: tables of system and dcmanager, command lines, output of fpgasupdate,
    rsu and fpgainfo, logs of sysinv, registries, engines and the kernel. Nothing of a lab is touched.
    """
    from harness.scenarios.field_logs.explaining import explained, explained_text
    from harness.scenarios.field_logs.reading import read_field_logs

    log = read_field_logs(list(map(str, files)), skews(skew, files))
    typer.echo(json.dumps(explained(log), indent=1) if output is Form.JSON else explained_text(log))

"""`hil engine`: keep a private Docker engine running, see it, read its log, stop it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.form import Form, FormOption

if TYPE_CHECKING:
    from harness.registry.engines.private import PrivateEngine

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Keep a private Docker engine running.",
)

FolderOption = Annotated[
    Path,
    typer.Option("--folder", envvar="HIL_ENGINE", help="Where the engine and all that it holds are kept."),
]
_FOLDER = Path("/var/lib/hil-engine")


@app.command(
    short_help="Start an engine and leave it running.",
    epilog="Examples:  hil engine up     hil engine up --folder /tmp/second     hil engine up -o json",
)
def up(folder: FolderOption = _FOLDER, output: FormOption = Form.TABLE) -> None:
    """Start a private engine that stays until `hil engine down`, and say how it is used.

    It needs root and Debian's docker.io, which is installed where it is missing. Without these, the
    machine's own engine is named where one answers. Nothing of the machine's Docker is changed.
    """
    from harness.registry.engines.choose import open_engine
    from harness.registry.engines.private import PrivateEngine

    engine = open_engine(folder, stays=True)
    if isinstance(engine, PrivateEngine):
        _print(_described(engine), output)
        return
    typer.echo("No private engine can run here; the machine's own is as good as its settings.", err=True)
    _print(
        {
            "name": engine.name,
            "running": True,
            "pid": None,
            "url": engine.url,
            "version": engine.version,
            "storage_driver": engine.storage_driver,
        },
        output,
    )


@app.command(
    short_help="Show whether an engine runs.",
    epilog="Examples:  hil engine status     hil engine status -o json",
)
def status(folder: FolderOption = _FOLDER, output: FormOption = Form.TABLE) -> None:
    """Show whether the private engine runs, and how it is used."""
    _print(_described(_known(folder)), output)


@app.command(
    short_help="Show what an engine has said.",
    epilog="Examples:  hil engine logs     hil engine logs --last 20     hil engine logs -o json",
)
def logs(
    folder: FolderOption = _FOLDER,
    last: Annotated[
        int | None, typer.Option("--last", min=1, metavar="N", help="Only the last N lines.")
    ] = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Show the log of the private engine, of all its starts in this folder."""
    entries = _known(folder).logs()[-(last or 0) :]
    if output is Form.JSON:
        found = [
            {"time": entry.time, "level": entry.level, "message": entry.message, "fields": dict(entry.fields)}
            for entry in entries
        ]
        typer.echo(json.dumps(found, indent=2))
        return
    for entry in entries:
        typer.echo(entry.raw)


@app.command(
    short_help="Stop an engine and remove what it held.",
    epilog="Examples:  hil engine down     hil engine down --folder /tmp/second",
)
def down(folder: FolderOption = _FOLDER) -> None:
    """Stop the private engine and remove all that it held, also where it was killed."""
    engine = _known(folder)
    known, running = engine.enclosure.known, engine.running
    engine.enclosure.remove()
    said = "stopped" if running else "was not running; what was left of it is removed"
    typer.echo(f"{engine.name}: {said if known else 'was not running'}")


def _known(folder: Path) -> PrivateEngine:
    """Return the engine of ``folder``, running or not.

    :raises ConfigurationError: the folder holds something else.
    """
    from harness.registry.engines.private import PrivateEngine

    engine = PrivateEngine(folder, stays=True)
    engine.enclosure.check_known()
    return engine


def _described(engine: PrivateEngine) -> dict[str, Any]:
    from harness.errors import InfrastructureError

    pid = engine.enclosure.keeper()
    entry: dict[str, Any] = {
        "name": engine.name,
        "running": pid is not None,
        "pid": pid,
        "url": engine.url,
        "folder": str(engine.enclosure.folder),
        "left_behind": pid is None and engine.enclosure.known,
    }
    if pid is None:
        return entry
    try:
        return entry | {
            "version": engine.version,
            "storage_driver": engine.storage_driver,
            "certificates": str(engine.enclosure.certificates),
            "registry_host": engine.registry_host(),
        }
    except InfrastructureError as error:  # one that is damaged can still be seen and stopped
        return entry | {"error": error.message}


def _print(entry: dict[str, Any], output: Form) -> None:
    if output is Form.JSON:
        typer.echo(json.dumps(entry, indent=2))
        return
    if not entry["running"]:
        left = "; a killed one left something (hil engine down removes it)" if entry["left_behind"] else ""
        typer.echo(f"{entry['name']}: not running{left}. Start it: hil engine up")
        return
    process = f" (process {entry['pid']})" if entry["pid"] else ""
    kind = f", Docker {entry['version']} with {entry['storage_driver']}" if "version" in entry else ""
    typer.echo(f"{entry['name']}: running{process}{kind}")
    if "error" in entry:
        typer.echo(f"  out of order: {entry['error']}")
        return
    typer.echo(f"  export DOCKER_HOST={entry['url']}")
    if "certificates" in entry:
        typer.echo(f"  {entry['registry_host']} is ::1 to it; it trusts what is in")
        typer.echo(f"  {entry['certificates']}/{entry['registry_host']}:PORT/ca.crt")

"""The `hil` command: names its sub-commands without importing them, and turns errors into exit codes."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from harness.errors import EXIT_INTERRUPTED, HarnessBug, HarnessError, InfrastructureError

if TYPE_CHECKING:
    from harness.cli.streams import Output

#: name -> (module and attribute of its typer app, one line of help). The module is imported only when the
#: sub-command is used, so that `hil --help` and completion stay quick.
SUB_COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("harness.cli.run:app", "Run scenarios or campaigns, judge every step, leave a report."),
    "scenario": ("harness.cli.scenario:app", "Check scenario files, begin one, draft one."),
    "explain": ("harness.cli.explain:app", "Say what a pasted log claims, and what truth that needs."),
    "explore": ("harness.cli.explore:app", "Do to cards what nobody thought of, hold them to the documents."),
    "qualify": ("harness.cli.qualify:app", "Prove that a plan notices every known defect."),
    "trace": ("harness.cli.trace:app", "Show which scenarios prove a requirement, and how they went."),
    "sweep": ("harness.cli.sweep:app", "Disturb pushes, updates, resets at every point; judge reports."),
    "export": ("harness.cli.export:app", "Make a scenario file of what a run did."),
    "shrink": ("harness.cli.shrink:app", "Make a scenario smaller while its verdict stays."),
    "bisect": ("harness.cli.bisect:app", "Find the release, defect or build that made it bad."),
    "judge": ("harness.cli.judge:app", "Judge a stored history again."),
    "report": ("harness.cli.report:app", "Show the page of a run; write its results for other programs."),
    "history": ("harness.cli.history:app", "Show how scenarios went on devices in past runs."),
    "dashboard": ("harness.cli.dashboard:app", "Show what goes on, on a page of this machine."),
    "host": ("harness.cli.host:app", "Show hosts, trust their keys, switch their power."),
    "card": ("harness.cli.card:app", "Show what is true of a card, flash it, reset it."),
    "doctor": ("harness.cli.doctor:app", "Say what of a lab works, what is missing, and how to fix it."),
    "lease": ("harness.cli.lease:app", "Show who may write to cards; take a card, give it back."),
    "record": ("harness.cli.record:app", "Capture a card into a file that can be replayed."),
    "image": ("harness.cli.image:app", "Inspect, verify, sign and damage signed images."),
    "inventory": ("harness.cli.inventory:app", "Check and show what the harness may touch."),
    "lab": ("harness.cli.lab:app", "Keep an emulated lab running."),
    "engine": ("harness.cli.engine:app", "Keep a private Docker engine running."),
    "emulator": ("harness.cli.emulator:app", "Ask the emulated card alone."),
    "status": ("harness.cli.status:app", "Show what systems say of their cards, and what these hold."),
    "defects": ("harness.cli.defects:app", "Show the known defects that an emulated system can have."),
}

#: What a file system refuses whoever asks, and what helps. It is met wherever a path is only looked at, too.
_REFUSED = {
    errno.EACCES: "Name a place that you may use, or have its owner permit it.",
    errno.EPERM: "Name a place that you may use, or have its owner permit it.",
    errno.EROFS: "Name a place that can be written.",
    errno.ENOSPC: "Make room there.",
    errno.EDQUOT: "Make room there.",
}
_COMPLETION_OPTIONS = frozenset({"install_completion", "show_completion"})


class LazyGroup(TyperGroup):
    """Knows every sub-command by name and help; loads one when the command line resolves to it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: TyperCommand(name, help=text, rich_markup_mode=None)
            for name, (_, text) in SUB_COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the real sub-command in place of the one that only has a name and a help."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(str(command.name)) if command else None, rest


def load_command(name: str) -> TyperCommand | TyperGroup:
    """Import the sub-command ``name``. Its options come as the module declares them, its look as `hil`'s."""
    module, attribute = SUB_COMMANDS[name][0].split(":")
    app: typer.Typer = getattr(import_module(module), attribute)
    app.rich_markup_mode = None
    command = cast(TyperCommand | TyperGroup, typer.main.get_command(app))
    command.name = name
    command.params = [param for param in command.params if param.name not in _COMPLETION_OPTIONS]
    return command


def _show_version(wanted: bool) -> None:
    if wanted:
        from harness import __version__

        typer.echo(f"hil {__version__}")
        raise typer.Exit


root = typer.Typer(
    name="hil",
    cls=LazyGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 green, 1 not as stated, 2 usage or configuration, 3 infrastructure or blocked, "
    "4 refused, 5 a bug of the harness, 130 interrupted.",
)


@root.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Hold what FPGA cards and registries are reported to be to what they are."""


def main() -> None:
    """Run `hil`: errors of ours are told in one message with a hint, and decide the exit code."""
    from harness.cli.streams import Output

    output = Output()
    code = _told(lambda: _run(output), output)
    sys.exit(_told(lambda: output.end(code), output))


def _run(output: Output) -> int:
    """Run the command line; return its exit code."""
    from harness.cli.streams import EXIT_NO_READER

    try:
        typer.main.get_command(root)(prog_name="hil")
    except SystemExit as end:
        if output.abandoned:
            return EXIT_NO_READER
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _told(act: Callable[[], int], output: Output) -> int:
    """Return the exit code that ``act`` gives, or that its error stands for, once that was told."""
    try:
        return act()
    except HarnessBug as error:
        return _tell_bug(str(error))
    except HarnessError as error:
        return _tell(error)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 -- the last stop: whatever comes up here is a bug and must say so
        theirs = (output.error() or _refused(error)) if isinstance(error, OSError) else None
        return _tell(theirs) if theirs else _tell_bug(f"{type(error).__name__}: {error}")


def _refused(error: OSError) -> InfrastructureError | None:
    """Return what to tell where the file system refused a path; None where it is about none."""
    if error.filename is None or error.errno not in _REFUSED:
        return None
    return InfrastructureError(f"{error.filename}: {error.strerror}.", hint=_REFUSED[error.errno])


def _tell(error: HarnessError) -> int:
    from harness.record.redaction import redact
    from harness.report.printable import printable

    typer.echo(f"Error: {printable(redact(str(error)))}", err=True)
    return error.exit_code


def _tell_bug(message: str) -> int:
    """Print where the current exception came from, and that it is nobody's fault but the harness's."""
    import traceback

    from harness.record.redaction import redact
    from harness.report.printable import printable

    told = printable(redact(f"{traceback.format_exc()}\nBug: {message}"))
    typer.echo(
        f"{told}\n  This is a bug of the harness, neither of the lab nor of the cards. Report it with the "
        "lines above.",
        err=True,
    )
    return HarnessBug.exit_code

"""`hil emulator`: ask the emulated card alone, without a lab."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any

import typer

from harness.cli.form import Form, FormOption

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Ask the emulated card alone.",
)


_SIMULATE_EPILOG = """Examples:

  hil emulator simulate image.bin

  hil emulator simulate --root $(hil image root-hash root.pem) --cancelled 0,5 image.bin
"""


class SectionName(str, Enum):
    """A section of the card with a root of trust of its own."""

    SR = "SR"
    BMC = "BMC"
    PR = "PR"


ProfileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="NAME=VALUE",
        help="A value of the card's profile, as JSON or text; may be repeated. See `hil emulator profile`.",
    ),
]


@app.callback()
def _emulator() -> None:
    """Ask the emulated card alone."""


@app.command(
    short_help="Say what the card makes of images.",
    epilog=_SIMULATE_EPILOG,
)
def simulate(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Images; - is standard input.")],
    section: Annotated[
        SectionName, typer.Option("--section", help="The section that --root and --cancelled are about.")
    ] = SectionName.SR,
    root: Annotated[
        str | None, typer.Option("--root", metavar="HASH", help="Its root entry hash; without: a blank card.")
    ] = None,
    cancelled: Annotated[
        str, typer.Option("--cancelled", metavar="IDS", help="Its cancelled CSK ids, such as 0,5.")
    ] = "",
    bmc_root: Annotated[
        str,
        typer.Option(
            "--bmc-root",
            metavar="none|factory|HASH",
            help="Root of the BMC section; default: none on a blank card, else the factory's.",
        ),
    ] = "",
    profile: ProfileOption = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Say what the card makes of each file, each against the same state, with nothing written."""
    from harness.emulator.card.profile import CardProfile
    from harness.emulator.simulate import card_state, parse_ids
    from harness.emulator.simulate import simulate as ask
    from harness.report.printable import printable

    state = card_state(section.value, root, parse_ids(cancelled), bmc_root)
    values = CardProfile.from_mapping(_profile_values(profile or []))
    answers = [ask(file, _read(file), state, values) for file in files]
    if output is Form.JSON:
        typer.echo(json.dumps([answer.to_json() for answer in answers], indent=2))
        return
    names = [printable(answer.file, layout="") for answer in answers]
    width = max(map(len, names))
    for name, answer in zip(names, answers, strict=True):
        word = "accepted" if answer.accepted else "refused"
        typer.echo(f"{name:{width}}  {word:8}  {answer.code or '-':4}  {answer.reason}")


@app.command(
    short_help="List what of an emulated card can be chosen.", epilog="Example:  hil emulator profile -o json"
)
def profile(output: FormOption = Form.TABLE) -> None:
    """List the values by which an emulated card's behaviour is chosen where documents leave it open."""
    from harness.emulator.card.profile import CardProfile, profile_docs

    defaults = CardProfile().to_mapping()
    docs = profile_docs()
    if output is Form.JSON:
        listed = [{"name": name, "default": defaults[name], "meaning": text} for name, text in docs.items()]
        typer.echo(json.dumps(listed, indent=2))
        return
    for name, text in docs.items():
        typer.echo(f"{name} = {json.dumps(defaults[name])}\n    {text}")


def _profile_values(options: list[str]) -> dict[str, Any]:
    from harness.errors import ConfigurationError

    values: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise ConfigurationError(f"--profile {option!r} is not NAME=VALUE.")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text.split(",") if name == "disabled_checks" else text
    return values


def _read(file: str) -> bytes:
    import sys
    from pathlib import Path

    from harness.errors import ConfigurationError
    from harness.images.layout import STAGING_SIZE

    try:
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as stream:
            # One byte more than staging holds is enough to know that it is refused.
            return stream.read(STAGING_SIZE + 1)
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error.strerror}.", hint="Name an image file, or - for standard input."
        ) from error

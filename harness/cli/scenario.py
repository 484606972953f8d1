"""`hil scenario`: check scenario files, begin one, draft one from a bug report, print what they may hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli.form import Form, FormOption
from harness.cli.pasted import PASTED, SkewOption, skews
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.images.recipes import Recipe
    from harness.inventory.model import Inventory
    from harness.scenarios.files import ScenarioFile
    from harness.scenarios.steps import Step

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Check scenario files, begin one, draft one from a bug report, print what they may hold.",
)

#: Of docstrings: it means nothing to who reads a list of steps.
_MARKUP = re.compile(r"(?::\w+:)?`+~?(?:harness\.[\w.]+\.)?([^`]*)`+")
_SUFFIX = ".scenario.yaml"


def files_of(incomplete: str) -> list[str]:
    """Return the scenario files below the working directory, for completion."""
    found = (str(path) for path in Path("testplans").rglob(f"*{_SUFFIX}"))
    return sorted(path for path in found if path.startswith(incomplete))


@app.command(
    short_help="Check scenario files.",
    epilog="Examples:  hil scenario check testplans     hil scenario check my.scenario.yaml -o json",
)
def check(
    files: Annotated[
        list[Path], typer.Argument(help="Scenario files, or folders of them.", autocompletion=files_of)
    ],
    inventory: Annotated[
        Path | None, typer.Option(help="The inventory, beside which the image recipes are.")
    ] = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Check the files; every error is listed with its line, what is allowed and the nearest spelling.

    Steps that a conftest.py registers are known, as pytest would know them.
    """
    from harness.plugin.conftest_steps import load_steps_beside
    from harness.scenarios.files import load_scenario
    from harness.scenarios.never_fires import never_fires

    images = _images(inventory)
    read: list[ScenarioFile] = []
    wrong: list[ConfigurationError] = []
    paths = list(_below(files))
    load_steps_beside(paths)
    for path in paths:
        try:
            scenario = load_scenario(path, images)
            if in_vain := never_fires(scenario):
                raise ConfigurationError("\n".join(in_vain), hint="Arm it where the operation comes to it.")
            read.append(scenario)
        except ConfigurationError as error:
            wrong.append(error)
    if output is Form.JSON:
        told = [{"message": error.message, "hint": error.hint} for error in wrong]
        typer.echo(json.dumps({"scenarios": [_summary(each) for each in read], "errors": told}, indent=2))
    else:
        for each in read:
            typer.echo(f"{each.path}: nothing wrong; {_size(each)}")
    if wrong:
        raise ConfigurationError("\n".join(error.message for error in wrong), hint=wrong[0].hint)


@app.command(
    short_help="Write a scenario to begin with.",
    epilog="Examples:  hil scenario new testplans/mine/two_roots     hil scenario new two_roots -o json",
)
def new(
    name: Annotated[str, typer.Argument(help="Its name, with the folder that it goes to.")],
    requirement: Annotated[str, typer.Option(help="The requirement that it is a proof of.")] = "",
    output: FormOption = Form.TABLE,
) -> None:
    """Write a scenario file that can be run as it is, and changed to what you mean."""
    from harness.scenarios.writing import write_new

    path = Path(name if name.endswith(_SUFFIX) else f"{name}{_SUFFIX}")
    write_new(path, requirement)
    typer.echo(json.dumps({"file": str(path)}) if output is Form.JSON else f"{path}: try `hil run {path}`")


@app.command(
    short_help="Print every key and step.",
    epilog="Examples:  hil scenario schema -o json > mine.schema.json     hil scenario schema testplans/mine",
)
def schema(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders whose conftest.py files register steps as well.")
    ] = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Print every step and what it takes; `-o json` is the JSON Schema of a file, for editors.

    With the steps that conftest.py files register: those of the folders named, by default of testplans.
    """
    from harness.plugin.conftest_steps import conftests_below, load_steps_beside
    from harness.scenarios.file_model import json_schema
    from harness.scenarios.steps import STEPS

    load_steps_beside(conftests_below(folders or [Path("testplans")]))
    if output is Form.JSON:
        typer.echo(json.dumps(json_schema(), indent=2))
        return
    for name, step in STEPS.items():
        about = _MARKUP.sub(r"\1", step.about)
        typer.echo(f"{name}: {about}")
        for line in _arguments(step):
            typer.echo(f"    {line}")
    typer.echo("use: Take the steps of another file here.\n    use: FILE\n    with: its parameters\n")
    typer.echo("Keys of a file: about, source, requirements, given, over, steps, expect.")
    typer.echo("Any step: `as: NAME` names its result, which `$NAME` stands for in later steps.")


@app.command(
    name="from-log",
    short_help="Draft a scenario from a bug report.",
    epilog="Examples:\n\n  hil scenario from-log report.txt -o report.scenario.yaml\n\n"
    "  hil scenario from-log sysinv.log dockerd.log.gz --skew dockerd.log.gz=2\n\n"
    "  xclip -o | hil scenario from-log - --about cards",
)
def from_log(
    files: Annotated[list[Path], PASTED],
    save: Annotated[
        Path | None, typer.Option("-o", "--save", help="Write it to this new file; default: print it.")
    ] = None,
    about: Annotated[
        Literal["cloud", "system", "pushes", "cards"] | None,
        typer.Option(help="What it is to be about; default: what the files are about most."),
    ] = None,
    skew: SkewOption = None,
    inventory: Annotated[Path | None, typer.Option(help="The inventory of the lab that it is for.")] = None,
) -> None:
    """Draft a scenario from what was pasted into a bug report: command lines, tables, output of tools, logs.

    Each step cites file and line. What the files do not say is marked NOT RECOVERED, with something legal in
    its place; secrets are masked. Several files are merged by time. `hil explain` shows what is read of them.
    """
    from harness.scenarios.field_logs.drafting import draft_scenario
    from harness.scenarios.field_logs.reading import read_field_logs
    from harness.scenarios.writing import write_text

    log = read_field_logs(list(map(str, files)), skews(skew, files))
    known, recipes = _lab_and_recipes(inventory)
    text = draft_scenario(log, about=about, inventory=known, recipes=recipes)
    if save is None:
        typer.echo(text, nl=False)
        return
    path = save if save.name.endswith(_SUFFIX) else save.with_name(f"{save.name}{_SUFFIX}")
    write_text(path, text)
    open_ends = text.count("NOT RECOVERED") - 1
    typer.echo(f"{path}: {open_ends} NOT RECOVERED; read it, then try `hil run {path}`")


def _lab_and_recipes(inventory: Path | None) -> tuple[Inventory | None, Mapping[str, Recipe] | None]:
    """Return the inventory and the recipes of the project here; None where there are none."""
    from harness.images.recipes import load_recipes
    from harness.inventory.load import load_inventory
    from harness.lab.background import project_of

    try:
        known = load_inventory(inventory)
    except ConfigurationError:
        if inventory is not None:
            raise
        return None, None
    try:
        text = (project_of(known) / "fixtures" / "images.yaml").read_text(encoding="utf-8")
    except OSError:
        return known, None
    return known, load_recipes(text)


def _images(inventory: Path | None) -> list[str] | None:
    """Return the recipes of the project here; None where there is none to compare with."""
    from harness.inventory.load import load_inventory
    from harness.lab.background import project_of
    from harness.plugin.images import ImageShelf

    try:
        return list(ImageShelf.of(project_of(load_inventory(inventory))))
    except ConfigurationError:
        if inventory is not None:
            raise
        return None


def _below(files: list[Path]) -> Iterator[Path]:
    for path in files:
        found = sorted(path.rglob(f"*{_SUFFIX}")) if path.is_dir() else [path]
        if not found:
            raise ConfigurationError(f"There is no scenario file (NAME{_SUFFIX}) in {path}.")
        yield from found


def _summary(scenario: ScenarioFile) -> dict[str, Any]:
    return {
        "file": str(scenario.path),
        "name": scenario.name,
        "about": scenario.about,
        "requirements": list(scenario.requirements),
        "variants": [each.id for each in scenario.variants if each.id],
        "fixtures": sorted(scenario.fixtures),
        "steps": [call.step.name for call in scenario.variants[0].calls],
    }


def _size(scenario: ScenarioFile) -> str:
    steps = len(scenario.variants[0].calls)
    rows = f", {len(scenario.variants)} variants" if scenario.variants[0].id else ""
    return f"{steps} step{'' if steps == 1 else 's'}{rows}"


def _arguments(step: Step) -> Iterator[str]:
    for argument, kind in step.kinds.items():
        key = step.name if argument == step.main else argument
        default = step.default(argument)
        known = "" if default in (None, "", ()) else f", default {str(default).lower()}"
        yield f"{key}: {kind}{'' if step.needs(argument) else ' (optional' + known + ')'}"

"""`hil shrink`: makes a scenario smaller while it still shows the same, ready to be a reproduction."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli.export import OneDeviceOption, ScenarioOption, run_folders
from harness.cli.form import Form, FormOption
from harness.cli.many_runs import RealOption, refuse_real
from harness.cli.releases import DefectOption, ReleaseOption, WithoutDefectOption, release_arguments
from harness.cli.scenario import files_of
from harness.errors import EXIT_INTERRUPTED, ConfigurationError
from harness.interruption import stopped_is_interrupted

if TYPE_CHECKING:
    from harness.scenarios.reductions import Data
    from harness.scenarios.shrink import Progress, Shrunk

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_EPILOG = """Examples:

  hil shrink testplans/reproductions/device_image_out_of_sync.scenario.yaml --save least.scenario.yaml

  hil shrink reports/latest --scenario test_ctrl_c_while_programming

  hil shrink found.scenario.yaml --keep fpgasupdate=FALSE_SUCCESS --keep BREACH --tries 100

Steps are left out, arguments and what is given made simpler; each candidate is run on the emulated lab, and
taken where it shows what is kept every time (--confirm). Ctrl-C leaves the best so far.

Exit codes: 0 shrunk, 2 usage, or the scenario does not show what is to be kept, 3 it could not be run,
4 the lab is real and --real was not given, 130 interrupted (with the best so far).
"""


def _targets(incomplete: str) -> list[str]:
    return [*files_of(incomplete), *run_folders(incomplete)]


@app.command(epilog=_EPILOG)
def shrink(
    target: Annotated[Path, typer.Argument(help="A scenario file, or a run.", autocompletion=_targets)],
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERDICT", help="FALSE_SUCCESS, REPORTER=FALSE_SUCCESS or BREACH; default: the worst."
        ),
    ] = None,
    scenario: ScenarioOption = "",
    device: OneDeviceOption = "",
    inventory: Annotated[Path | None, typer.Option(help="The inventory file.")] = None,
    lab: Annotated[str | None, typer.Option(help="The lab; default: the run's, or the default_lab.")] = None,
    way: Annotated[Literal["rest", "cli"] | None, typer.Option(help="How systems are asked.")] = None,
    release: ReleaseOption = None,
    defect: DefectOption = None,
    without_defect: WithoutDefectOption = None,
    confirm: Annotated[int, typer.Option(min=1, help="So often it must show what is kept.")] = 2,
    tries: Annotated[int, typer.Option(min=1, help="Runs at most.")] = 500,
    seconds: Annotated[float, typer.Option(min=0.1, help="About so long at most.")] = 900.0,
    real: RealOption = False,
    save: Annotated[Path | None, typer.Option(help="Write the result to this scenario file.")] = None,
    output: FormOption = Form.TABLE,
) -> None:
    """Make a scenario smaller while its verdict stays."""
    from harness.plugin import steps  # noqa: F401 -- it knows them all
    from harness.scenarios.files import SUFFIX
    from harness.scenarios.shrink import Budget, Shrinking
    from harness.scenarios.trials import Sight, Trials
    from harness.scenarios.writing import save_scenario

    if save is not None:
        _check_place(save)
    kept = [Sight.parse(word) for word in keep or []]
    variants, own = _read(target, scenario, device)
    said = _options(inventory, lab, way)
    options = [*(word for word in own if lab is None or not word.startswith("--hil-lab=")), *said]
    options += release_arguments(release, defect, without_defect)
    _check_lab(inventory, options, variants, device, real=real)
    told = _told if sys.stderr.isatty() else lambda progress: None
    with stopped_is_interrupted(), Trials(options) as trials:
        path = trials.folder / f"{_name(target, save)}{SUFFIX}"
        made = Shrinking(trials, path, Budget(tries, seconds, confirm), told, device=device).run(
            variants, kept
        )
    if told is _told:
        print(file=sys.stderr)
    text = _file(made, options)
    if save is not None:
        save_scenario(save, text)
    typer.echo(
        json.dumps(_json(made, save), indent=1) if output is Form.JSON else _text(made, save, text, options)
    )
    raise typer.Exit(EXIT_INTERRUPTED if made.ended == "interrupted" else 0)


def _name(target: Path, save: Path | None) -> str:
    name = (save or target).name.partition(".")[0]
    return name if name.isidentifier() else "candidate"


def _check_place(save: Path) -> None:
    """Say at once what would keep the result from being saved. :raises ConfigurationError: something does."""
    from harness.scenarios.files import SUFFIX

    if not save.name.endswith(SUFFIX):
        raise ConfigurationError(f"{save} is no name of a scenario file.", hint=f"It ends with {SUFFIX}.")
    if not (save.parent.is_dir() and os.access(save.parent, os.W_OK)):
        raise ConfigurationError(
            f"{save} cannot be written: there is no folder {save.parent} that can.",
            hint="Name another place.",
        )


def _read(target: Path, scenario: str, device: str) -> tuple[list[Data], list[str]]:
    """Return the variants of the scenario at ``target``, and what pytest is told of the lab of its run."""
    from harness.cli.judge import history_files
    from harness.record.history import read_history
    from harness.scenarios.export import export
    from harness.scenarios.files import SUFFIX, load_scenario
    from harness.scenarios.plain import plain_variants

    if target.name.endswith(SUFFIX):
        return plain_variants(load_scenario(target)), []
    if target.suffix == ".py" or "::" in str(target):
        raise ConfigurationError(
            f"{target} is no scenario file.", hint="Run it, and shrink the run: hil shrink reports/latest."
        )
    records = (record for path in history_files(target) for record in read_history(path))
    made = export(records, scenario=scenario, device=device)
    options = iter(made.options)
    return [dict(made.data)], [f"--hil-{name.removeprefix('--')}={next(options)}" for name in options]


def _options(inventory: Path | None, lab: str | None, way: str | None) -> list[str]:
    said = {"inventory": inventory, "lab": lab, "way": way}
    return [f"--hil-{name}={value}" for name, value in said.items() if value]


def _check_lab(
    inventory: Path | None, options: Sequence[str], variants: Sequence[Data], device: str, *, real: bool
) -> None:
    """Say at once what is wrong with where it is run.

    :raises ConfigurationError: there is no such lab or device.
    :raises RefusedError: a lab that is run on has real hosts, and nobody said that they may be worn.
    """
    from harness.inventory.load import load_inventory
    from harness.inventory.selection import check_devices

    named = [option.partition("=")[2] for option in options if option.startswith("--hil-lab=")]
    if not named and inventory is None:
        named = [lab for each in variants if (lab := each.get("given", {}).get("lab"))]
    labs: list[str | None] = [*dict.fromkeys(named)] or [None]
    for name in labs:
        entry = load_inventory(inventory).lab(name)
        check_devices(entry, [device] if device else [])
        refuse_real(entry, "shrinking", real=real)


def _told(progress: Progress) -> None:
    print(
        f"\r{progress.tries} tries, {progress.cached} known, {progress.steps} steps left, "
        f"{progress.seconds:.0f} s ",
        end="",
        file=sys.stderr,
        flush=True,
    )


def _file(made: Shrunk, options: Sequence[str]) -> str:
    """Return the text of the result, with how it is run and what is known of it at its head."""
    from harness.scenarios.writing import scenario_text

    shown = f"as stated in {made.shown} of {made.runs} runs" if made.runs else "not confirmed"
    kept = " and ".join(map(str, made.kept))
    data = {**made.data, "about": f"The least that was found of: {made.data['about']}"}
    return (
        f"# Shrunk by `hil shrink` from {made.before} steps, {kept} kept; {shown}: "
        f"{_command('FILE', options)}\n" + scenario_text(data)
    )


def _command(file: str, options: Sequence[str]) -> str:
    words = [option.replace("--hil-", "--", 1).replace("=", " ", 1) for option in options]
    return " ".join(["hil run", file, *words])


def _json(made: Shrunk, save: Path | None) -> dict[str, Any]:
    return {
        "schema": "hil-shrink/1",
        "kept": [str(sight) for sight in made.kept],
        "device": made.device,
        "steps": {"before": made.before, "after": made.after},
        "ended": made.ended,
        "shown": made.shown,
        "runs": made.runs,
        "flaky": made.flaky,
        "tries": made.progress.tries,
        "known": made.progress.cached,
        "flashes": made.progress.flashes,
        "seconds": round(made.progress.seconds, 1),
        "file": str(save) if save is not None else None,
        "scenario": made.data,
    }


_ENDED = {
    "minimal": "Nothing that was tried makes it smaller",
    "tries": "The budget of tries is used up",
    "seconds": "The budget of seconds is used up",
    "interrupted": "Interrupted; this is the best so far",
}


def _text(made: Shrunk, save: Path | None, text: str, options: Sequence[str]) -> str:
    kept = " and ".join(map(str, made.kept))
    lines = [
        f"{made.before} -> {made.after} steps, {kept} kept; {made.progress.tries} tries, "
        f"{made.progress.flashes} updates, {made.progress.seconds:.1f} s. {_ENDED[made.ended]}."
    ]
    if made.runs and made.flaky:
        lines.append(f"It is flaky: as stated in {made.shown} of {made.runs} runs.")
    lines.append(f"saved as {save}: {_command(str(save), options)}" if save is not None else text)
    return "\n".join(lines)

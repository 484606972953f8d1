"""`hil bisect`: finds the release, known defect or build from which on a scenario shows something."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.form import Form, FormOption
from harness.cli.many_runs import RealOption, refuse_real
from harness.cli.releases import release_names
from harness.cli.scenario import files_of
from harness.errors import EXIT_INTERRUPTED, ConfigurationError
from harness.interruption import stopped_is_interrupted

if TYPE_CHECKING:
    from harness.scenarios.bisected import Bisected, Point
    from harness.scenarios.bisection import Count, Step

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_EPILOG = """Examples:

  hil bisect --good corrected --bad stx-2020-07 testplans/regression/device_images/test_order.py

  hil bisect --over defects --good corrected --bad stx-8 --keep FALSE_SUCCESS mine.scenario.yaml

  hil bisect --over defects --good corrected --bad corrected+copy-dropped testplans/regression/flash

  hil bisect --builds builds/ --good 1.bin --bad 40.bin flashes_build.scenario.yaml

  hil bisect --builds list.txt --with 'deploy-firmware {}' --good v1 --bad v9 testplans/regression/flash

Both ends are run --runs times first, which measures how often each shows what is looked for (default:
a scenario that is not as stated). What lies between is then run as often as its flakes make necessary, until
one is the first bad one with the probability --confidence. A build is put into effect by --with, or flashed
by a scenario under the name --image.

Exit codes: 0 found, 1 not found with that confidence, 2 usage, or an end does not show what it should,
3 something could not be run, 4 the lab is real and --real was not given, 130 interrupted (with what is known
so far).
"""


class Over(str, Enum):
    """What is bisected."""

    RELEASES = "releases"
    DEFECTS = "defects"


@app.command(epilog=_EPILOG)
def bisect(
    good: Annotated[
        str, typer.Option(metavar="NAME", help="Does not show it.", autocompletion=release_names)
    ],
    bad: Annotated[str, typer.Option(metavar="NAME", help="Shows it.", autocompletion=release_names)],
    target: Annotated[
        str, typer.Argument(help="Scenarios: a file, folder or node id.", autocompletion=files_of)
    ] = "testplans/regression",
    over: Annotated[Over, typer.Option(help="Releases, or the known defects between two.")] = Over.RELEASES,
    builds: Annotated[Path | None, typer.Option(help="Builds in order: a list, or a folder.")] = None,
    with_: Annotated[
        str, typer.Option("--with", metavar="COMMAND", help="Puts a build into effect, in place of {}.")
    ] = "",
    image: Annotated[str, typer.Option(help="What scenarios call the build that they flash.")] = "build",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERDICT", help="What makes it bad: FALSE_SUCCESS, REPORTER=FALSE_SUCCESS, BREACH."
        ),
    ] = None,
    inventory: Annotated[Path | None, typer.Option(help="The inventory file.")] = None,
    lab: Annotated[str | None, typer.Option(help="The lab; default: the default_lab.")] = None,
    device: Annotated[
        list[str] | None, typer.Option(help="Only this host or host/card; may be repeated.")
    ] = None,
    keyword: Annotated[str, typer.Option("-k", help="Only scenarios whose name matches.")] = "",
    runs: Annotated[int, typer.Option(min=2, help="So often each end is run at first.")] = 3,
    tries: Annotated[int, typer.Option(min=1, help="Runs between the ends at most.")] = 500,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999999, help="Of the answer.")] = 0.99,
    real: RealOption = False,
    output: FormOption = Form.TABLE,
) -> None:
    """Find what made scenarios bad: the release, the known defect or the build."""
    from harness.scenarios.bisected import Bisected, alone
    from harness.scenarios.trials import Sight, Trials

    sights = [Sight.parse(word) for word in keep or []]
    points = _points(over, builds, good, bad, with_, image)
    _check(target, inventory, lab, device or [], real=real)
    began = time.monotonic()
    with stopped_is_interrupted(), Trials(_options(inventory, lab, device or [], keyword)) as trials:
        work = Bisected(trials, target, points, sights, lambda step, count: _told(points, step, count))
        work.run(runs=runs, confidence=confidence, tries=tries)
        at, probability = work.search.likeliest()
        by_itself = None
        found = probability >= confidence and not work.interrupted
        if over is Over.DEFECTS and builds is None and at > 1 and found:
            by_itself = work.try_alone(alone(points, at), runs)
    said = _json(work, over.value if builds is None else "builds", confidence, by_itself)
    said["seconds"] = round(time.monotonic() - began, 1)
    typer.echo(json.dumps(said, indent=1) if output is Form.JSON else _text(said))
    raise typer.Exit(EXIT_INTERRUPTED if work.interrupted else 0 if said["found"] else 1)


def _points(
    over: Over, listed: Path | None, good: str, bad: str, command: str, image: str
) -> Sequence[Point]:
    from harness.scenarios import bisected

    if listed is not None:
        return bisected.builds(listed, good, bad, command, image)
    if command:
        raise ConfigurationError("--with is about builds, and none are named.", hint="Name them: --builds.")
    return bisected.defects(good, bad) if over is Over.DEFECTS else bisected.releases(good, bad)


def _check(
    target: str, inventory: Path | None, lab: str | None, devices: Sequence[str], *, real: bool
) -> None:
    """Say at once what is wrong with what is run, and where.

    :raises ConfigurationError: there is no such target, lab or device.
    :raises RefusedError: the lab has real hosts, and nobody said that they may be worn.
    """
    from harness.cli.campaigns import is_there
    from harness.inventory.load import load_inventory
    from harness.inventory.selection import check_devices

    if not is_there(target):
        raise ConfigurationError(
            f"There is nothing to run at {target}.",
            hint="Name a file or folder of scenarios, such as testplans/regression/flash.",
        )
    entry = load_inventory(inventory).lab(lab)
    check_devices(entry, list(devices))
    refuse_real(entry, "a bisection", real=real)


def _options(inventory: Path | None, lab: str | None, devices: Sequence[str], keyword: str) -> list[str]:
    said = {"inventory": inventory, "lab": lab}
    options = [f"--hil-{name}={value}" for name, value in said.items() if value]
    return [*options, *(f"--hil-device={name}" for name in devices), *(["-k", keyword] if keyword else [])]


def _told(points: Sequence[Point], step: Step, count: Count) -> None:
    """Tell of one run on standard error."""
    shown = {True: "bad", False: "good", None: "no result"}[step.shown]
    print(
        f"{points[step.point].name}: {shown} ({count.shown} of {count.runs} bad so far)  "
        f"[first bad: {points[step.likeliest].name}, {step.probability:.1%}]",
        file=sys.stderr,
        flush=True,
    )


def _json(work: Bisected, over: str, confidence: float, by_itself: Count | None) -> dict[str, Any]:
    names = [point.name for point in work.points]
    at, probability = work.search.likeliest()
    counts = work.search.counts
    return {
        "schema": "hil-bisect/1",
        "over": over,
        "target": work.target,
        "looked_for": [str(sight) for sight in work.sights] or ["not as stated"],
        "points": [
            {"name": name, "shown": count.shown, "runs": count.runs, "interval": list(count.interval)}
            for name, count in zip(names, counts, strict=True)
        ],
        "steps": [
            {
                "point": names[step.point],
                "shown": step.shown,
                "first_bad": names[step.likeliest],
                "probability": step.probability,
            }
            for step in work.steps
        ],
        "found": probability >= confidence,
        "interrupted": work.interrupted,
        "first_bad": names[at],
        "last_good": names[at - 1],
        "confidence": probability,
        "wanted_confidence": confidence,
        "candidates": [names[each] for each in work.search.range_of(confidence)],
        "untestable": [names[each] for each in sorted(work.search.untestable)],
        "alone": None if by_itself is None else {"shown": by_itself.shown, "runs": by_itself.runs},
    }


def _text(said: dict[str, Any]) -> str:
    ends = [said["points"][0], said["points"][-1]]
    lines = [
        f"{word}  {end['name']}: bad in {end['shown']} of {end['runs']} runs "
        f"(95 %: {end['interval'][0]:.0%} to {end['interval'][1]:.0%})"
        for word, end in zip(("good", "bad "), ends, strict=True)
    ]
    lines += [
        f"      {point['name']}: bad in {point['shown']} of {point['runs']} runs"
        for point in said["points"][1:-1]
        if point["runs"]
    ]
    if said["untestable"]:
        lines.append(f"No result of {', '.join(said['untestable'])}.")
    if said["found"]:
        lines.append(f"First bad: {said['first_bad']} (after {said['last_good']}), {said['confidence']:.2%}.")
    else:
        among = ", ".join(said["candidates"])
        yet = "Interrupted, not found yet" if said["interrupted"] else "Not found"
        lines.append(f"{yet}: the first bad one is among {among} ({said['wanted_confidence']:.0%}).")
    if (by_itself := said["alone"]) is not None:
        more = "enough by itself" if by_itself["shown"] else "not enough without those before it"
        lines.append(f"It is {more}: bad in {by_itself['shown']} of {by_itself['runs']} runs.")
    if said["found"] and said["over"] == "releases":
        ends_said = f"--good {said['last_good']} --bad {said['first_bad']}"
        lines.append(f"Which defect: hil bisect --over defects {ends_said} {said['target']}")
    return "\n".join(lines)

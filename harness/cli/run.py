"""`hil run`: runs scenarios with pytest and ends with one of the documented exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli.campaigns import DurationOption, SeedOption, TargetsArgument, campaign_of, is_there
from harness.cli.releases import DefectOption, ReleaseOption, WithoutDefectOption, release_arguments
from harness.errors import ConfigurationError, InfrastructureError
from harness.interruption import stopped_is_interrupted

if TYPE_CHECKING:
    from harness.plugin.exit_codes import Observer
    from harness.plugin.progress import Progress
    from harness.scenarios.plan import Plan

app = typer.Typer(add_completion=False, rich_markup_mode=None)

#: What pytest's temporary files lie in, with the process id at its end.
_TEMPORARY = "hil-run-"
#: Exit codes of a run that is not as stated, whatever its scenarios say: something besides them went wrong.
_NOT_AS_STATED = (1, 2, 5)

WorkersOption = Annotated[
    str, typer.Option("-n", metavar="NUMBER", help="Run in this many processes; auto: one for each card.")
]
LeasesOption = Annotated[
    str | None, typer.Option(metavar="URL", help="The leases of cards; default: HIL_LEASES, else the index.")
]
LeaseWaitOption = Annotated[
    float, typer.Option(min=0, help="Seconds that a card which another run has is waited for.")
]

PlanOnlyOption = Annotated[
    bool, typer.Option("--plan-only", help="Run nothing: say what would wear cards, or cannot be undone.")
]

_EPILOG = """Examples:

  hil run testplans/regression

  hil run testplans/reproductions -k unsigned

  hil run testplans/regression --device subcloud1 -o json

  hil run soak-cards --seed 7 --duration "30 min" -n 4

  hil run qualification-cards --lab rack7 --irreversible root-key --plan-only

Exit codes: 0 as stated, 1 something is not as stated, 2 usage or configuration, 3 infrastructure or
blocked, 4 refused by the interlock, 5 a bug of the harness, 130 interrupted (with a judged partial report).
"""


_AllowBlockedOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Accept that scenarios of this file or folder (or of the folders of this name) are blocked; "
        "may be repeated."
    ),
]


@app.command(epilog=_EPILOG)
def run(
    targets: TargetsArgument,
    inventory: Annotated[Path | None, typer.Option(help="The inventory file.")] = None,
    lab: Annotated[str | None, typer.Option(help="The lab; default: the inventory's default_lab.")] = None,
    device: Annotated[
        list[str] | None, typer.Option(help="Only this host or host/card; may be repeated.")
    ] = None,
    registry: Annotated[str | None, typer.Option(help="The registry; default: the lab's first.")] = None,
    way: Annotated[
        Literal["rest", "cli"] | None, typer.Option(help="Ask systems by their API, or by their command.")
    ] = None,
    release: ReleaseOption = None,
    defect: DefectOption = None,
    without_defect: WithoutDefectOption = None,
    keyword: Annotated[str, typer.Option("-k", help="Only scenarios whose name matches.")] = "",
    irreversible: Annotated[str, typer.Option(help="Permit on REAL cards: root-key,key-cancellation.")] = "",
    allow_blocked: _AllowBlockedOption = None,
    reports: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("reports"),
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The index of runs; default: HIL_STORE, else a file in --reports."),
    ] = None,
    allure: Annotated[Path | None, typer.Option(help="Write Allure results to this folder.")] = None,
    seed: SeedOption = None,
    duration: DurationOption = None,
    workers: WorkersOption = "0",
    leases: LeasesOption = None,
    lease_wait: LeaseWaitOption = 0.0,
    output: Annotated[
        Literal["text", "table", "json"], typer.Option("-o", help="text (or table) or json.")
    ] = "text",
    plan_only: PlanOnlyOption = False,
    exit_first: Annotated[bool, typer.Option("-x", help="Stop at the first that is not as stated.")] = False,
) -> None:
    """Run scenarios, hold every report to the truth, and say what diverged."""
    meant = campaign_of(targets, seed, duration)
    _check(meant.places)
    accepted = _accepted([*(allow_blocked or []), *meant.may_be_blocked], meant.places)
    lab_name = _check_lab(inventory, lab or meant.lab, device or [], registry, irreversible)
    # Node ids count from here, so that they can be typed as they are printed.
    arguments = [*meant.places, *meant.arguments, f"--rootdir={Path.cwd()}", f"--hil-reports={reports}"]
    given = {"store": store, "inventory": inventory, "lab": lab, "registry": registry, "way": way}
    given |= {"irreversible": irreversible, "leases": leases, "lease-wait": str(lease_wait or "")}
    arguments += [f"--hil-{name}={value}" for name, value in given.items() if value]
    arguments += release_arguments(release, defect, without_defect)
    arguments += [f"--hil-device={name}" for name in device or []]
    arguments += [*(["-k", keyword] if keyword else []), *(["-x"] if exit_first else [])]
    if allure is not None and not plan_only:
        _check_writable(allure)
    arguments += _plugins(allure, workers)
    # What pytest would say of progress and results is said by `harness/plugin/progress.py` and the summary.
    arguments += ["-qq", "-rN", "--tb=short", "-o", "console_output_style=classic"]
    with _words_to_stderr(output), stopped_is_interrupted(), _temporary_folder() as temporary:
        arguments += [f"--basetemp={temporary}"]
        code = _plan(arguments, output) if plan_only else None
        raise typer.Exit(_run(arguments, output, accepted, reports, lab_name) if code is None else code)


def _plugins(allure: Path | None, workers: str) -> list[str]:
    """Return which plugins pytest loads: those that are asked for.

    :raises ConfigurationError: ``workers`` is no number, and not ``auto``.
    """
    if workers != "auto" and not workers.isdecimal():
        raise ConfigurationError(f"-n {workers} is no number of processes.", hint="Such as -n 4, or -n auto.")
    # allure-pytest costs 160 ms of every start; it is loaded only where results are wanted.
    arguments = [f"--alluredir={allure}"] if allure else ["-p", "no:allure_pytest"]
    # Hypothesis' own plugin imports all of it (1 s) to print a summary that scenarios do not need.
    arguments += ["-p", "no:hypothesispytest"]
    return [*arguments, *(["-n", workers] if workers.strip("0") else ["-p", "no:xdist"])]


def _check_writable(results: Path) -> None:
    """Make the folder for Allure's results. :raises InfrastructureError: nothing can be written there."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=results):
            return
    except OSError as error:
        raise InfrastructureError(
            f"The folder {results} for Allure's results cannot be written: {error.strerror}.",
            hint="Name a folder that can be written with --allure.",
        ) from None


def _check(targets: list[str]) -> None:
    for target in targets:
        if not is_there(target):
            raise ConfigurationError(
                f"There is nothing to run at {target}.",
                hint="Name a file or folder of scenarios, such as testplans/regression.",
            )
        file = target.split("::")[0]
        if Path(file).is_file() and not file.endswith((".py", ".scenario.yaml")):
            raise ConfigurationError(
                f"{file} is no file of scenarios.",
                hint="They stand in test_NAME.py and in NAME.scenario.yaml, campaigns in NAME.campaign.yaml.",
            )


def _accepted(parts: list[str], targets: list[str]) -> list[str]:
    """Return the files, folders and node ids that ``parts`` name: by path, or by folder below a target.

    :raises ConfigurationError: there is no such one.
    """
    below: dict[str, list[str]] = {}
    for target in map(Path, targets):
        for path in sorted(target.rglob("*/")) if target.is_dir() else ():
            if path.is_dir() and not path.name.startswith((".", "__")):
                below.setdefault(path.name, []).append(str(path))
    found: list[str] = []
    for part in parts:
        here = [*below.get(part, ()), *([part] if is_there(part) else [])]
        if not here:
            raise ConfigurationError(
                f"There is nothing to run at {part}.",
                hint="Name a file or folder of scenarios by its path, or one of these folders: "
                f"{', '.join(sorted(below)) or 'none'}.",
            )
        found += here
    return found


def _check_lab(
    inventory: Path | None, lab: str | None, devices: list[str], registry: str | None, irreversible: str
) -> str:
    """Say what is wrong with inventory and options before anything starts; return the lab's name."""
    from harness.cards.interlock import named_acts
    from harness.inventory.load import load_inventory
    from harness.inventory.selection import check_devices

    entry = load_inventory(inventory).lab(lab)
    check_devices(entry, devices)
    if registry is not None:
        entry.registry(registry)
    named_acts(irreversible, "--irreversible")
    return entry.name


def _run(arguments: list[str], output: str, allow_blocked: list[str], reports: Path, lab: str) -> int:
    import pytest

    from harness.packages import heard_by
    from harness.plugin.exit_codes import Observer
    from harness.plugin.progress import Progress

    observer = Observer(allow_blocked)
    progress = Progress(sys.stdout, lab)
    try:
        _judge_cut_off(reports, progress)
        with heard_by(progress.line):
            status = pytest.main(arguments, plugins=[observer, progress])
    finally:
        progress.close()
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        print("Error: No scenario matches.\n  hint: Look at -k, and at the files named.", file=sys.stderr)
    code = observer.exit_code(int(status))
    if output == "json":
        print(json.dumps(_results(observer, code), indent=1), file=sys.__stdout__)
    return code


def _results(observer: Observer, code: int) -> dict[str, Any]:
    """Return the results as plain data. No scenario knows of a file that cannot be read: ``code`` does."""
    from harness.judgement.judge import judge
    from harness.report.results import results_json

    results = results_json(observer.judgement or judge([]))
    results["as_stated"] &= code not in _NOT_AS_STATED
    results["exit_codes"] = sorted({*results["exit_codes"], code} - {0})
    return results | ({"campaign": observer.campaign} if observer.campaign else {})


class _Planned:
    """A pytest plugin that keeps the plan."""

    def __init__(self) -> None:
        self.plan: Plan | None = None

    def pytest_hil_planned(self, plan: Plan) -> bool:
        """Keep it; it is told once pytest has ended."""
        self.plan = plan
        return True


def _plan(arguments: list[str], output: str) -> int:
    """Say what the scenarios would do, and run none. Exit code 0; 2 where they cannot be collected."""
    import pytest

    from harness.plugin.exit_codes import Observer
    from harness.scenarios.plan import told

    observer, planned, said = Observer(), _Planned(), io.StringIO()
    with contextlib.redirect_stdout(said):
        status = pytest.main([*arguments, "--hil-plan-only"], plugins=[observer, planned])
    if planned.plan is None or not planned.plan.scenarios:
        print(said.getvalue().strip(), file=sys.stderr, end="\n" if said.getvalue().strip() else "")
        if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            print("Error: No scenario matches.\n  hint: Look at -k, and at the files named.", file=sys.stderr)
        return observer.exit_code(int(status)) or 2
    plan = planned.plan
    for line in [json.dumps(plan.to_json(), indent=1)] if output == "json" else told(plan):
        print(line, file=sys.__stdout__)
    return observer.exit_code(int(status))


def _judge_cut_off(reports: Path, progress: Progress) -> None:
    """Judge what runs have recorded that were killed before they could do so, and say so."""
    from harness.errors import HarnessError
    from harness.judgement.judge import judge
    from harness.record.runs import cut_off, read_run
    from harness.report.page.writing import write_page
    from harness.report.results import write_results

    for run_dir in cut_off(reports):
        try:
            judgement = judge(read_run(run_dir))
            write_results(run_dir, judgement)
            write_page(run_dir, judgement, read_run(run_dir))
        except HarnessError as error:
            progress.line(f"The run {run_dir} was cut off, and cannot be judged: {error}")
            continue
        states = Counter(one.state for one in judgement.scenarios)
        told = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "no scenario"
        progress.line(f"The run {run_dir} was cut off; judged now: {told}.  See: hil judge {run_dir}")


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Give the place for pytest's temporary files, which it makes when it needs it; remove it at the end.

    What a run that was killed has left there is removed, too.
    """
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{_TEMPORARY}*"):
        number = left.name.removeprefix(_TEMPORARY)
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = base / f"{_TEMPORARY}{os.getpid()}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _words_to_stderr(output: str) -> Iterator[None]:
    """Where JSON is wanted, let standard output be JSON and nothing else."""
    if output != "json":
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield

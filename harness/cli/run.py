"""`hil run`: runs scenarios with pytest and ends with one of the documented exit codes."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.errors import EXIT_INTERRUPTED, ConfigurationError, worst_exit_code

if TYPE_CHECKING:
    import pytest

    from harness.judgement.judge import Judgement

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_EPILOG = """Examples:

  hil run testplans/regression

  hil run testplans/reproductions -k unsigned

  hil run testplans/regression --device subcloud1 -o json

Exit codes: 0 as stated, 1 something is not as stated, 2 usage or configuration, 3 infrastructure or
blocked, 4 refused by the interlock, 5 a bug of the harness, 130 interrupted (with a judged partial report).
"""


@app.command(epilog=_EPILOG)
def run(
    targets: Annotated[list[str], typer.Argument(help="Files, folders or node ids of scenarios.")],
    inventory: Annotated[Path | None, typer.Option(help="The inventory file.")] = None,
    lab: Annotated[str | None, typer.Option(help="The lab; default: the inventory's default_lab.")] = None,
    device: Annotated[
        list[str] | None, typer.Option(help="Only this host or host/card; may be repeated.")
    ] = None,
    keyword: Annotated[str, typer.Option("-k", help="Only scenarios whose name matches.")] = "",
    irreversible: Annotated[str, typer.Option(help="Permit on REAL cards: root-key,key-cancellation.")] = "",
    allow_blocked: Annotated[
        list[str] | None,
        typer.Option(help="Accept that scenarios in this folder or file are blocked; may be repeated."),
    ] = None,
    reports: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("reports"),
    allure: Annotated[Path | None, typer.Option(help="Write Allure results to this folder.")] = None,
    workers: Annotated[int, typer.Option("-n", min=0, help="Run in this many processes.")] = 0,
    output: Annotated[Literal["text", "json"], typer.Option("-o", help="text or json.")] = "text",
    exit_first: Annotated[bool, typer.Option("-x", help="Stop at the first that is not as stated.")] = False,
) -> None:
    """Run scenarios, hold every report to the truth, and say what diverged."""
    # Node ids count from here, so that they can be typed as they are printed.
    arguments = [*targets, f"--rootdir={Path.cwd()}", f"--hil-reports={reports}"]
    arguments += [f"--hil-inventory={inventory}"] if inventory else []
    arguments += [f"--hil-lab={lab}"] if lab else []
    arguments += [f"--hil-device={name}" for name in device or []]
    arguments += [f"--hil-irreversible={irreversible}"] if irreversible else []
    arguments += ["-k", keyword] if keyword else []
    arguments += ["-x"] if exit_first else []
    # allure-pytest costs 160 ms of every start; it is loaded only where results are wanted.
    arguments += [f"--alluredir={allure}"] if allure else ["-p", "no:allure_pytest"]
    # Hypothesis' own plugin imports all of it (1 s) to print a summary that scenarios do not need.
    arguments += ["-p", "no:hypothesispytest"]
    arguments += ["-n", str(workers)] if workers else ["-p", "no:xdist"]
    for target in targets:
        if not Path(target.split("::")[0]).exists():
            raise ConfigurationError(
                f"There is nothing to run at {target}.",
                hint="Name a file or folder of scenarios, such as testplans/regression.",
            )
    raise typer.Exit(_run(arguments, output, allow_blocked or []))


class _Observer:
    """Keeps what the run's plugin reports, for the exit code."""

    def __init__(self) -> None:
        self.run_dir: Path | None = None
        self.judgement: Judgement | None = None
        self.failed = False
        self.configuration_error = False

    def pytest_hil_run_judged(self, run_dir: Path, judgement: Judgement) -> None:
        self.run_dir, self.judgement = run_dir, judgement

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        from harness.plugin.judging import run_state_of

        self.failed |= report.failed and not run_state_of(report)


def _run(arguments: list[str], output: str, allow_blocked: list[str]) -> int:
    import pytest

    observer = _Observer()
    to_stderr = contextlib.redirect_stdout(sys.stderr) if output == "json" else contextlib.nullcontext()
    with to_stderr, _sigterm_is_ctrl_c():
        status = pytest.main(arguments, plugins=[observer])
    if output == "json":
        results = observer.run_dir / "results.json" if observer.run_dir else None
        print(results.read_text(encoding="utf-8") if results else json.dumps({"scenarios": []}))
    return exit_code(int(status), observer.judgement, observer.failed, allow_blocked)


def exit_code(status: int, judgement: Judgement | None, failed: bool, allow_blocked: list[str]) -> int:
    """Return the exit code of `hil run`.

    :param status: pytest's own exit code.
    :param judgement: of the run, None where nothing was recorded.
    :param failed: whether a test failed by itself, not by its scenario's run state.
    :param allow_blocked: parts of node ids whose BLOCKED scenarios are accepted.
    """
    from harness.judgement.model import RunState

    if status == 2:
        return EXIT_INTERRUPTED
    codes = {2} if status in (4, 5) else {5} if status == 3 else set()
    codes |= {1} if failed else set()
    for scenario in judgement.scenarios if judgement else []:
        accepted = scenario.run_state is RunState.BLOCKED and any(
            part in scenario.name for part in allow_blocked
        )
        codes |= set() if accepted else scenario.exit_codes
    codes |= {1} if judgement and judgement.outside_divergences else set()
    return worst_exit_code(codes)


@contextlib.contextmanager
def _sigterm_is_ctrl_c() -> Iterator[None]:
    """Let a stopped run end as an interrupted one does: judged, with nothing left behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

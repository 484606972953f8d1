"""`hil sweep`: disturbs pushes of real clients at every point of the protocol and holds them to the truth."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.errors import BlockedError, ConfigurationError, InfrastructureError
from harness.interruption import stopped_is_interrupted

if TYPE_CHECKING:
    from harness.registry.engine import Engine
    from harness.scenarios.push_sweep import Sweep
    from harness.scenarios.sweep_results import SweepResult, Trial

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_EPILOG = """Examples:

  hil sweep push --client all --action restart,rotate-keys

  hil sweep push --client oci-once,skopeo --action rotate-keys --point before:manifest-put --repeat 5

  hil sweep push --client docker-naive --action rotate-keys --soak 60

  hil sweep push --client skopeo,verified-push --action restart --image saved.tar

  hil sweep points; hil sweep actions; hil sweep clients

Exit codes: a sweep is an experiment and states nothing. 0: every trial was judged, and no client but
docker-naive and sysinv-download, which are known to, reported done of an image that is not there; 1: another
one did, or no push came to a point that was named; 2 usage; 3 a client was blocked (unless
--allow-blocked), or the lab failed; 5 a bug of the harness; 130 interrupted, with what was judged by then.
"""

_EngineChoice = Literal["auto", "private", "machine", "none"]


@app.callback(epilog=_EPILOG)
def _sweep() -> None:
    """Disturb pushes at every point of the protocol, and hold what clients report to the registry's store."""


@app.command(short_help="Disturb pushes at every point, and judge what clients report.", epilog=_EPILOG)
def push(
    client: Annotated[str, typer.Option(help="Clients by name, with commas; or all.")] = "all",
    action: Annotated[str, typer.Option(help="Actions by name, with commas.")] = "restart,rotate-keys",
    point: Annotated[
        list[str] | None, typer.Option(help="Only this point; may be repeated. Default: hil sweep points.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Trials at each point.")] = 1,
    engine: Annotated[_EngineChoice, typer.Option(help="The Docker engine: auto, private, ...")] = "auto",
    layers: Annotated[int, typer.Option(min=1, help="Layers of each image.")] = 4,
    layer_size: Annotated[int, typer.Option(min=2, help="Bytes of each layer.")] = 1 << 20,
    image: Annotated[
        Path | None, typer.Option(help="Push this instead: an OCI layout (folder or tar), a docker archive.")
    ] = None,
    soak: Annotated[float, typer.Option(min=0, help="Random instants for so many seconds, no points.")] = 0,
    workers: Annotated[int, typer.Option("-j", min=1, help="Clients at the same time.")] = 2,
    allow_blocked: Annotated[bool, typer.Option(help="Do not exit 3 where a client is blocked.")] = False,
    reports: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("reports"),
    output: Annotated[Literal["table", "json"], typer.Option("-o", help="table or json.")] = "table",
) -> None:
    """Push through each client, strike at each point by each action, and judge every report."""
    from harness.faults.registry_points import FaultPoint
    from harness.record.runs import new_run_dir
    from harness.registry.archives import read_image
    from harness.scenarios.push_points import default_points
    from harness.scenarios.push_sweep import Sweep
    from harness.scenarios.push_trials import Plan

    names, actions = _clients(client), _actions(action)
    asked = tuple(FaultPoint.parse(text) for text in point or ())
    given = read_image(image) if image is not None else None
    largest = max((blob.size for blob in given.blobs()), default=2) if given is not None else layer_size
    plan = Plan(actions, asked or default_points(largest), repeat, layers, layer_size, soak, given)
    total = len(names) * plan.trials if not soak else 0
    progress = _Progress(total)
    sweep = Sweep(
        names,
        plan,
        new_run_dir(reports),
        lambda: _engine(engine),
        told=progress.told,
        workers=workers,
        asked=tuple(map(str, asked)),
    )
    with stopped_is_interrupted():
        result, unkept = _kept(sweep)
    if output == "json":
        print(json.dumps(result.to_json(), indent=1))
    else:
        from harness.cli.sweep_text import render

        print(render(result, colour=sys.stdout.isatty()))
        print("" if unkept else f"kept in {sweep.run_dir}")
    if unkept is not None:
        raise unkept
    raise typer.Exit(result.exit_code(allow_blocked=allow_blocked))


@app.command(
    short_help="List the points at which a sweep strikes.",
    epilog="Examples:  hil sweep points     hil sweep points --layer-size 4096",
)
def points(
    layer_size: Annotated[int, typer.Option(min=2, help="Bytes of each layer.")] = 1 << 20,
) -> None:
    """List the points at which a sweep strikes, and how others are written."""
    from harness.faults.registry_points import STEPS, WHENS
    from harness.scenarios.push_points import default_points

    print("\n".join(map(str, default_points(layer_size))))
    print(f"\nOthers: WHEN:STEP#N, N a number or last. WHEN: {', '.join(WHENS)} (mid@BYTES).")
    print(f"STEP: {', '.join(STEPS)}")


@app.command(epilog="Example:  hil sweep actions | grep rotate")
def actions() -> None:
    """List what can be done at a point."""
    from harness.faults.registry_actions import ACTIONS

    width = max(map(len, ACTIONS))
    for name, about in ACTIONS.items():
        print(f"{name:<{width}}  {about}")


@app.command(epilog="Example:  hil sweep clients | grep -v Docker")
def clients() -> None:
    """List the clients that push."""
    from harness.registry.clients.catalogue import PUSH_CLIENTS

    width = max(map(len, PUSH_CLIENTS))
    for name, entry in PUSH_CLIENTS.items():
        print(f"{name:<{width}}  {entry.about}{' (Docker engine)' if entry.needs_engine else ''}")


def _clients(text: str) -> list[str]:
    """Return the clients named. :raises ConfigurationError: there is none of a name."""
    import difflib

    from harness.registry.clients.catalogue import PUSH_CLIENTS

    names = _words(text, "--client")
    if "all" in names:
        return list(PUSH_CLIENTS)
    for name in names:
        if name not in PUSH_CLIENTS:
            near = difflib.get_close_matches(name, PUSH_CLIENTS, 1)
            raise ConfigurationError(
                f"There is no client {name!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else "hil sweep clients lists them.",
            )
    return names


def _actions(text: str) -> tuple[str, ...]:
    """Return the actions named. :raises ConfigurationError: there is none of a name."""
    from harness.faults.registry_actions import registry_action

    names = _words(text, "--action")
    for name in names:
        registry_action(name)
    return tuple(names)


def _words(text: str, option: str) -> list[str]:
    names = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not names:
        raise ConfigurationError(f"{option} names nothing.", hint="Write names with commas between.")
    return names


def _engine(choice: _EngineChoice) -> Engine | None:
    """Return the engine that was asked for. :raises BlockedError: it cannot be had, or none is wanted."""
    if choice == "none":
        raise BlockedError("No Docker engine is wanted (--engine none).", hint="--engine auto finds one.")
    from harness.registry.engines.choose import open_engine
    from harness.registry.engines.machine import MachineEngine
    from harness.registry.engines.private import PrivateEngine

    if choice == "auto":
        return open_engine()
    if choice == "machine":
        return MachineEngine()
    engine = PrivateEngine()
    try:
        engine.start()
    except BaseException:
        engine.close()
        raise
    return engine


def _kept(sweep: Sweep) -> tuple[SweepResult, InfrastructureError | None]:
    """Run the sweep and keep in its folder what a run keeps; return why that could not be, if so."""
    import os

    from harness.record.runs import make_run_dir

    held = make_run_dir(sweep.run_dir)
    try:
        result = sweep.run()
        try:
            _keep(result, sweep.run_dir)
        except InfrastructureError as error:
            return result, error
        return result, None
    finally:
        os.close(held)


def _keep(result: SweepResult, run_dir: Path) -> None:
    """Write trials and results. :raises InfrastructureError: they cannot be written."""
    from harness.judgement.judge import judge
    from harness.record.runs import point_latest_at, read_run
    from harness.report.results import write_results

    trials = run_dir / "sweep.json"
    try:
        trials.write_text(json.dumps(result.to_json(), indent=1) + "\n")
    except OSError as error:
        raise InfrastructureError(
            f"The trials {trials} cannot be written: {error.strerror}.",
            hint="What was recorded until then is in the histories beside it; make room for the next sweep.",
        ) from None
    write_results(run_dir, judge(read_run(run_dir)))
    point_latest_at(run_dir)


class _Progress:
    """One line for each trial on standard error, with the time that is left."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def told(self, trial: Trial) -> None:
        """Show one more trial."""
        with self._lock:
            self._done += 1
            spent = time.monotonic() - self._began
            left = spent / self._done * max(0, self._total - self._done)
            of = f"{self._done}/{self._total}" if self._total else f"{self._done}"
            said = f"reported {trial.reported}, it is {trial.truth}" if trial.reported else "NOT_REACHED"
            rest = f"  ({left:.0f} s left)" if self._total else ""
            print(f"{of} {trial.client} {trial.action} {trial.point}: {said}{rest}", file=sys.stderr)

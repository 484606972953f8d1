"""`hil sweep`: disturbs an operation at every point that it passes, and holds reports to the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.cli.sweep_cards import FLASH, RESET, flash, reset
from harness.cli.sweep_keeping import (
    FreshOption,
    ReportsOption,
    ResumeOption,
    carried_out,
    known_names,
    place,
    words,
)
from harness.cli.sweep_systems import UPDATE, update
from harness.errors import BlockedError

if TYPE_CHECKING:
    from harness.registry.engine import Engine

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

_EPILOG = """Examples:

  hil sweep push --client all --action restart,rotate-keys

  hil sweep push --client oci-once,skopeo --action rotate-keys --point before:manifest-put --repeat 5

  hil sweep push --client docker-naive --action rotate-keys --soak 60

  hil sweep push --client skopeo,verified-push --action restart --image saved.tar

  hil sweep flash --image A/csk0 --device bench1/card0 --generation A,B,C,D

  hil sweep flash --list

  hil sweep points; hil sweep actions; hil sweep clients

Exit codes: a sweep is an experiment and states nothing. 0: every trial was judged, and no client but
docker-naive and sysinv-download, which are known to, reported done of an image that is not there; 1: another
one did, or no push came to a point that was named; 2 usage; 3 a client was blocked (unless
--allow-blocked), or the lab failed; 5 a bug of the harness; 130 interrupted, with what was judged by then:
the same command goes on there.
"""

_EngineChoice = Literal["auto", "private", "machine", "none"]


@app.callback(epilog=_EPILOG)
def _sweep() -> None:
    """Disturb pushes, updates or resets at every point of theirs, and hold what is reported to the truth."""


app.command(short_help="Disturb updates of cards at every point, and judge what is reported.", epilog=FLASH)(
    flash
)
app.command(short_help="Disturb resets of cards, and judge what is reported.", epilog=RESET)(reset)
app.command(
    short_help="Disturb a control plane's update at every point, and judge all it says.", epilog=UPDATE
)(update)


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
    reports: ReportsOption = Path("reports"),
    resume: ResumeOption = None,
    fresh: FreshOption = False,
    output: Annotated[Literal["table", "json"], typer.Option("-o", help="table or json.")] = "table",
) -> None:
    """Push through each client, strike at each point by each action, and judge every report."""
    from harness.faults.registry_points import FaultPoint
    from harness.registry.archives import read_image
    from harness.scenarios.push_points import default_points
    from harness.scenarios.push_sweep import PushSweep
    from harness.scenarios.push_trials import PushPlan

    names, actions = _clients(client), _actions(action)
    asked = tuple(FaultPoint.parse(text) for text in point or ())
    given = read_image(image) if image is not None else None
    largest = max((blob.size for blob in given.blobs()), default=2) if given is not None else layer_size
    plan = PushPlan(actions, asked or default_points(largest), repeat, layers, layer_size, soak, given)
    swept = PushSweep(names, plan, lambda: _engine(engine))
    total = len(names) * plan.trials if not soak else 0
    folder = place(swept, reports, resume, fresh=fresh or bool(soak))
    raise typer.Exit(
        carried_out(
            swept, folder, total, workers, tuple(map(str, asked)), output, allow_blocked=allow_blocked
        )
    )


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
    from harness.registry.clients.catalogue import PUSH_CLIENTS

    names = words(text, "--client")
    if "all" in names:
        return list(PUSH_CLIENTS)
    return known_names(names, PUSH_CLIENTS, "client", "hil sweep clients lists them.")


def _actions(text: str) -> tuple[str, ...]:
    """Return the actions named. :raises ConfigurationError: there is none of a name."""
    from harness.faults.registry_actions import registry_action

    names = words(text, "--action")
    for name in names:
        registry_action(name)
    return tuple(names)


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

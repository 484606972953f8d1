"""Which campaign the words behind `hil run` mean; with completion."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from harness.errors import ConfigurationError

_SUFFIX = ".campaign.yaml"


def campaign_names(incomplete: str) -> list[str]:
    """Return the campaigns below ``testplans`` by name, for completion."""
    names = {path.name.removesuffix(_SUFFIX) for path in Path("testplans").rglob(f"*{_SUFFIX}")}
    return sorted(name for name in names if name.startswith(incomplete))


TargetsArgument = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders or node ids of scenarios; or a campaign by its file or name.",
        autocompletion=campaign_names,
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(min=0, help="The seed of a campaign's random order; default: its own, or any.")
]
DurationOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="How long a campaign goes on, in place of its own: 10 s, 30 min, 2 h."),
]


@dataclass(frozen=True, slots=True)
class Targets:
    """What is run. ``arguments``: what pytest is told of a campaign. ``may_be_blocked``: its scenarios that
    may be. ``lab``: its own, where it names one."""

    places: list[str]
    arguments: list[str] = field(default_factory=list)
    may_be_blocked: list[str] = field(default_factory=list)
    lab: str | None = None


def is_there(target: str) -> bool:
    """Return whether there is the file or folder of a target; a name that is too long for one is none."""
    return os.path.exists(target.split("::")[0])  # noqa: PTH110 -- Path.exists raises for such a name


def campaign_of(targets: list[str], seed: int | None, duration: str | None = None) -> Targets:
    """Return what the words behind `hil run` mean.

    :param duration: how long a campaign goes on, in place of its own duration.
    :raises ConfigurationError: there is no such campaign, it is wrong, or it is one of several targets.
    """
    # A path is told from a name without pydantic, which costs a tenth of a second.
    if not any(target.endswith(_SUFFIX) or not is_there(target) for target in targets):
        return _no_campaign(targets, seed, duration)
    from harness.scenarios.campaigns import find_campaign, load_campaign, seconds_of

    found = [path for path in map(find_campaign, targets) if path is not None]
    if not found:
        return _no_campaign(targets, seed, duration)
    if len(targets) > 1:
        raise ConfigurationError(
            f"{found[0]} is a campaign, which is run by itself.", hint="Run the others by another `hil run`."
        )
    campaign = load_campaign(found[0])
    places = list(dict.fromkeys(str(selection.path) for selection in campaign.scenarios))
    arguments = [f"--hil-campaign={found[0]}", *_seed(seed)]
    if duration is not None:
        seconds_of(duration, "--duration")
        arguments.append(f"--hil-duration={duration}")
    return Targets(places, arguments, list(map(str, campaign.allow_blocked)), campaign.lab)


def _no_campaign(targets: list[str], seed: int | None, duration: str | None) -> Targets:
    if duration is not None:
        raise ConfigurationError(
            f"--duration is for campaigns, and {' '.join(targets)} is none.",
            hint="Write a campaign with `duration`; docs/writing-a-plan.md shows one.",
        )
    return Targets(targets, _seed(seed))


def _seed(seed: int | None) -> list[str]:
    return [] if seed is None else [f"--hil-seed={seed}"]

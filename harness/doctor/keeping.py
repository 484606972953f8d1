"""What a look at a lab and the kept health of its cards say of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.doctor.model import HEALTH, Diagnosis, Part
from harness.health.checks import Check, bad, warn
from harness.health.states import State
from harness.lab.health import in_words

if TYPE_CHECKING:
    from harness.lab.health import LabHealth
    from harness.lab.standing import Standing


def users_of(standings: Mapping[str, Standing]) -> dict[str, str]:
    """Return who uses each card that somebody uses."""
    return {card: str(one.lease) for card, one in standings.items() if one.lease is not None}


def kept_with(diagnosis: Diagnosis, health: LabHealth) -> None:
    """Take what was found of each card, and of its host, into the card's health.

    :raises InfrastructureError: the database does not answer.
    """
    hosts = {part.name: part.checks for part in diagnosis.parts if part.kind == "host"}
    for part in diagnosis.parts:
        if part.kind == "card" and not part.lease:
            health.found(part.name, (*hosts.get(part.name.partition("/")[0], ()), *part.checks))


def with_health(diagnosis: Diagnosis, standings: Mapping[str, Standing]) -> Diagnosis:
    """Return a diagnosis in which each card of ``standings`` has its kept health: if not good, a trouble."""
    return replace(diagnosis, parts=tuple(_with_health(part, standings) for part in diagnosis.parts))


def _with_health(part: Part, standings: Mapping[str, Standing]) -> Part:
    if part.kind != "card" or part.name not in standings:
        return part
    health = standings[part.name].health
    told = {
        State.QUARANTINED: bad,
        State.MAINTENANCE: warn,
        State.SUSPECT: warn,
    }.get(health.state)
    checks: tuple[Check, ...] = part.checks
    if told is not None:
        fix = (
            "A clean check makes it good: hil doctor --record"
            if health.state.usable
            else f"Once it is put right: hil card clear {part.name} --reason '...'"
        )
        checks = (*checks, told(HEALTH, in_words(health), fix))
    return replace(part, checks=checks, health=health.state.value)

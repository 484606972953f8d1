"""The points of a control plane's update of a card, what a sweep does there, and what documents say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from harness.errors import ConfigurationError
from harness.faults.points import POINTS as PHASES
from harness.judgement.model import VerdictKind

Value = int | float | str | bool | None
#: Phases that a system's update passes; it has no tool of ours that would announce its start.
OF_CARD: Final = tuple(point for point in PHASES if point != "start")
#: Before the image is uploaded, applied, and its writing ordered; and when the agent has said that it is
#: done.
BEFORE_ORDER: Final = "before-update"
REPORTED: Final = "reported"
BETWEEN: Final = ("before-upload", "before-apply", BEFORE_ORDER, REPORTED)
#: In the order in which an update comes to them.
POINTS: Final = (*BETWEEN[:3], *OF_CARD, REPORTED)
#: Where hosts, agents and conductor have something to do with it.
_WRITING: Final = (BEFORE_ORDER, *OF_CARD, REPORTED)
_STATE: Final = "sysinv-image-state"
Stated = Mapping[str, frozenset[VerdictKind]]
#: What nobody is told of, the audit takes as failed, whatever the card did (fact sheet of StarlingX, 4.7).
_WORD_LOST: Final[Stated] = {_STATE: frozenset({VerdictKind.FALSE_FAILURE})}
#: The agent has no image to write: a failure that says nothing of the card (section 3.2).
_NOT_TRIED: Final[Stated] = {_STATE: frozenset({VerdictKind.NOT_ATTEMPTED})}
#: An order that no agent takes is lost, and the audit looks at images in progress alone, and at no host.
_ORDER_LOST: Final[Stated] = {"sysinv-host": frozenset({VerdictKind.LOST})}
#: Lab seconds by which the agent's word comes after the audit has taken the image as failed.
_LATE: Final = 4300


@dataclass(frozen=True, slots=True)
class UpdateAction:
    """What is done at a point.

    ``strikes`` and ``undone``: troubles of the system with their values, then and once the update is over.
    ``points``: where it makes sense. ``stated``: reporter -> what documents say of its words then, even of a
    system without known defects.
    """

    about: str
    strikes: tuple[tuple[str, Value], ...]
    undone: tuple[tuple[str, Value], ...] = ()
    points: tuple[str, ...] = POINTS
    of_host: bool = False
    stated: Stated = field(default_factory=dict)


ACTIONS: Final[Mapping[str, UpdateAction]] = {
    "agent-killed": UpdateAction(
        "the agents of the hosts are killed, and start again after the update",
        (("agents", False),),
        (("agents", True),),
        points=_WRITING,
        stated={**_WORD_LOST, **_ORDER_LOST},
    ),
    "conductor-restart": UpdateAction(
        "the conductor ends and starts again at once",
        (("conductor", False), ("conductor", True)),
        points=_WRITING,
    ),
    "conductor-down": UpdateAction(
        "the conductor is down until the update is over",
        (("conductor", False),),
        (("conductor", True),),
        points=_WRITING,
        stated=_WORD_LOST,
    ),
    "restart": UpdateAction(
        "all services of the system end, and start again", (("restart", None),), stated=_WORD_LOST
    ),
    "reboot": UpdateAction(
        "the card's host is rebooted under power", (("reboot", None),), points=_WRITING, stated=_WORD_LOST
    ),
    "power-cut": UpdateAction(
        "the card's host loses its power, and has it again", (("power-cut", None),), points=_WRITING
    ),
    "api-away": UpdateAction(
        "the API answers the next request with 503; what was not taken is asked for once more",
        (("refuse-requests", 1),),
    ),
    "expire-tokens": UpdateAction("every token is void", (("expire-tokens", None),)),
    "abort": UpdateAction("the update is aborted", (("abort", None),), points=OF_CARD),
    "downloads-missing": UpdateAction(
        "the controller does not give the image out",
        (("downloads", "missing"),),
        (("downloads", "whole"),),
        points=(BEFORE_ORDER,),
        stated={**_NOT_TRIED, "file-server": frozenset({VerdictKind.LOST})},
    ),
    "downloads-short": UpdateAction(
        "the controller gives out half of the image",
        (("downloads", "short"),),
        (("downloads", "whole"),),
        points=(BEFORE_ORDER,),
        stated={"file-server": frozenset({VerdictKind.MISREPORT})},
    ),
    "disk-full": UpdateAction(
        "the card's host has no room for the image",
        (("disk-full", True),),
        (("disk-full", False),),
        points=(BEFORE_ORDER,),
        of_host=True,
        stated=_NOT_TRIED,
    ),
    "completion-late": UpdateAction(
        "the agent's word that it is done comes after the audit",
        (("completions", _LATE),),
        (("completions", 0),),
        points=(BEFORE_ORDER,),
        stated=_WORD_LOST,
    ),
    "completion-lost": UpdateAction(
        "the agent's word that it is done is lost",
        (("completions", None),),
        (("completions", 0),),
        points=(BEFORE_ORDER,),
        stated=_WORD_LOST,
    ),
    "move": UpdateAction(
        "the card comes back at another address after its next reset",
        (("move", None),),
        points=(BEFORE_ORDER, REPORTED),
    ),
    "boot-elsewhere": UpdateAction(
        "the card is at another address from its host's boot to the reset that follows",
        (("boot-elsewhere", None),),
        points=(BEFORE_ORDER, REPORTED),
    ),
}


def makes_sense(action: str, point: str) -> bool:
    """Return whether an action has anything to disturb at a point."""
    return point in ACTIONS[action].points


def check_point(point: str) -> None:
    """:raises ConfigurationError: an update has no such point; the hint has the nearest."""
    if point not in POINTS:
        from harness.inventory.entries import nearest

        close = nearest(point, list(POINTS))
        raise ConfigurationError(
            f"There is no point {point!r} in an update by a control plane.",
            hint=f"Did you mean {close!r}?" if close else f"Known: {', '.join(POINTS)}.",
        )

"""What a system controller says of its subclouds, of the firmware strategy and of the steps of that.

The fields are those of the fact sheet of StarlingX, section 5.4, with ``_`` for ``-`` and for blanks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from harness.controlplane.changes import PermitMaker
from harness.controlplane.protocol import NOT_SHOWN, Flag, Text, Whole
from harness.hosts.permits import StrategyAct
from harness.judgement.records import Evidence
from harness.judgement.values import Value

#: States in which a strategy does nothing more (section 5.4); a step has the last three.
ENDED: Final = ("complete", "failed", "aborted")
#: The sync status of a subcloud whose firmware is as the audit wants it; ``unknown`` is not.
IN_SYNC: Final = "in-sync"
FIRMWARE: Final = "firmware"
#: The region whose platform service takes images for all subclouds (section 5.1), and has dcmanager.
CENTRAL_REGION: Final = "SystemController"
ApplyType = Literal["parallel", "serial"]


@dataclass(frozen=True, slots=True)
class Subcloud:
    """A subcloud. ``endpoint_sync``: endpoint -> status; ``sync``: what they come to together."""

    name: str
    id: Whole = NOT_SHOWN
    management: Text = NOT_SHOWN
    availability: Text = NOT_SHOWN
    deploy_status: Text = NOT_SHOWN
    sync: Text = NOT_SHOWN
    backup_status: Text = NOT_SHOWN
    prestage_status: Text = NOT_SHOWN
    endpoint_sync: Value[Mapping[str, str]] = NOT_SHOWN
    firmware_sync_status: Text = NOT_SHOWN


@dataclass(frozen=True, slots=True)
class Strategy:
    """The strategy: there is one at most."""

    type: str
    state: str
    subcloud_apply_type: Text = NOT_SHOWN
    max_parallel_subclouds: Whole = NOT_SHOWN
    stop_on_failure: Flag = NOT_SHOWN
    created_at: Text = NOT_SHOWN
    updated_at: Text = NOT_SHOWN


@dataclass(frozen=True, slots=True)
class Step:
    """What the strategy does with one subcloud, named ``cloud``. ``stage``: a number; by CLI a word."""

    cloud: str
    state: str
    stage: Text = NOT_SHOWN
    details: Text = NOT_SHOWN
    started_at: Text = NOT_SHOWN
    finished_at: Text = NOT_SHOWN


CloudSaid = Subcloud | Strategy | Step


@dataclass(frozen=True, slots=True)
class StrategyOptions:
    """What a strategy is created with; what is None is left to the system (section 5.4: two in parallel).

    ``group``: of subclouds, by name or id; it goes with no other but ``stop_on_failure``.
    """

    subcloud_apply_type: ApplyType | None = None
    max_parallel: int | None = None
    stop_on_failure: bool = False
    group: str | None = None
    cloud_name: str | None = None

    def given(self) -> dict[str, Any]:
        """Return what is said of them, for the record of the intent."""
        names = self.__slots__
        return {name: value for name in names if (value := getattr(self, name)) not in (None, False)}


@dataclass(frozen=True, slots=True)
class StrategyChange:
    """One act on the strategy."""

    act: StrategyAct
    options: StrategyOptions = StrategyOptions()


class CloudReading(Protocol):
    """What is asked of dcmanager without changing anything; deadlines and errors as
    :class:`harness.controlplane.protocol.Reading` has them."""

    @property
    def name(self) -> str:
        """The system controller's name in the inventory."""
        ...

    @property
    def reporter(self) -> str:
        """Who makes the claims: ``dcmanager`` or ``dcmanager-cli``."""
        ...

    @property
    def evidence(self) -> Evidence:
        """The last answer, raw."""
        ...

    def subclouds(self) -> list[Subcloud]:
        """Return all subclouds, with what there is of each endpoint."""
        ...

    def subcloud(self, name: str) -> Subcloud:
        """Return one subcloud."""
        ...

    def strategy(self) -> Strategy | None:
        """Return the firmware strategy; None where there is none."""
        ...

    def steps(self) -> list[Step]:
        """Return the steps of the strategy; none where there is no strategy."""
        ...

    def progress(self) -> list[Strategy | Step]:
        """Return the strategy and its steps; nothing where there is no strategy."""
        ...

    def step(self, cloud: str) -> Step:
        """Return the step of one subcloud."""
        ...

    def close(self) -> None:
        """Release the connection; may be called twice."""
        ...


class CloudWayIn(CloudReading, Protocol):
    """One way into dcmanager: it is asked, and it carries out changes that are permitted."""

    def carry_out(self, change: StrategyChange, permits: PermitMaker) -> Strategy:
        """Carry out a change once; return the strategy as the answer shows it, which may be as it was before.

        :raises ControlPlaneError: it refused, with its own text, or what it answered is no strategy.
        """
        ...


def together(*answers: Evidence) -> Evidence:
    """Return several answers as one piece of evidence."""
    return Evidence("\n".join(one.text for one in answers), "; ".join(one.command for one in answers))

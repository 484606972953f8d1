"""A strategy of the VIM as data: phases, stages and steps, how far they are, and their form in the API."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

INITIAL: Final = "initial"
IN_PROGRESS: Final = "inprogress"
WAIT: Final = "wait"
SUCCESS: Final = "success"
FAILED: Final = "failed"
TIMED_OUT: Final = "timed-out"
ABORTING: Final = "aborting"
ABORTED: Final = "aborted"
#: Results of a step that is over.
OVER: Final = (SUCCESS, FAILED, TIMED_OUT, ABORTED)
BUILD: Final = "build"
APPLY: Final = "apply"
ABORT: Final = "abort"
#: States in which the VIM is at work.
AT_WORK: Final = ("building", "applying", "aborting")


@dataclass(slots=True)
class Step:
    """One step of a stage. ``hosts``: name -> UUID. ``done``: host -> whether its update is well.

    ``before``: host -> its state when the step began, where that must not change.
    """

    name: str
    timeout: int
    hosts: dict[str, str] = field(default_factory=dict)
    done: dict[str, bool] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    result: str = INITIAL
    reason: str = ""
    began: str = ""
    ended: str = ""

    def shown(self, ident: int) -> dict[str, Any]:
        """Return the step as the API shows it."""
        acts_on_hosts = self.hosts and not self.name.startswith("query")
        return {
            "step-id": ident,
            "step-name": self.name,
            "timeout": self.timeout,
            "entity-type": "hosts" if acts_on_hosts else "",
            "entity-uuids": list(self.hosts.values()),
            "entity-names": list(self.hosts),
            "result": self.result,
            "reason": self.reason,
            "start-date-time": self.began,
            "end-date-time": self.ended,
        }


@dataclass(slots=True)
class Stage:
    """Steps that are taken one after the other."""

    name: str
    steps: list[Step] = field(default_factory=list)
    current: int = 0
    inprogress: bool = False
    result: str = INITIAL
    reason: str = ""
    began: str = ""
    ended: str = ""

    @property
    def timeout(self) -> int:
        """Return how long all steps may take together, and one second."""
        return sum(step.timeout for step in self.steps) + 1

    def shown(self, ident: int) -> dict[str, Any]:
        """Return the stage as the API shows it."""
        return {
            "stage-id": ident,
            "stage-name": self.name,
            "timeout": self.timeout,
            "total-steps": len(self.steps),
            "current-step": self.current,
            "steps": [step.shown(index) for index, step in enumerate(self.steps)],
            "inprogress": self.inprogress,
            "result": self.result,
            "reason": self.reason,
            "start-date-time": self.began,
            "end-date-time": self.ended,
        }


@dataclass(slots=True)
class Phase:
    """Stages that are taken one after the other. ``stop``: the stage to stop before."""

    name: str
    stages: list[Stage] = field(default_factory=list)
    current: int = 0
    stop: int = 0
    inprogress: bool = False
    result: str = INITIAL
    reason: str = ""
    began: str = ""
    ended: str = ""

    @property
    def percentage(self) -> int:
        """Return how much of it is over, in percent; 100 where it is not at work."""
        steps = [step for stage in self.stages for step in stage.steps] if self.inprogress else []
        return 100 * sum(step.result in OVER for step in steps) // len(steps) if steps else 100

    def shown(self) -> dict[str, Any]:
        """Return the phase as the API shows it."""
        return {
            "phase-name": self.name,
            "timeout": sum(stage.timeout for stage in self.stages) + 1 if self.began else 0,
            "total-stages": len(self.stages),
            "current-stage": self.current,
            "stop-at-stage": self.stop,
            "stages": [stage.shown(index) for index, stage in enumerate(self.stages)],
            "inprogress": self.inprogress,
            "completion-percentage": self.percentage,
            "result": self.result,
            "reason": self.reason,
            "response": "",
            "start-date-time": self.began,
            "end-date-time": self.ended,
        }


@dataclass(slots=True)
class Strategy:
    """A firmware strategy. ``update``: names of the hosts that need an update, once it is built."""

    uuid: str
    controller_apply_type: str
    storage_apply_type: str
    worker_apply_type: str
    max_parallel_workers: int
    default_instance_action: str
    alarm_restrictions: str
    state: str = "building"
    current_phase: str = BUILD
    update: list[str] = field(default_factory=list)
    phases: dict[str, Phase] = field(
        default_factory=lambda: {name: Phase(name) for name in (BUILD, APPLY, ABORT)}
    )

    @property
    def phase(self) -> Phase:
        """Return the current phase."""
        return self.phases[self.current_phase]

    @property
    def stage(self) -> Stage:
        """Return the current stage of the current phase."""
        return self.phase.stages[self.phase.current]

    @property
    def step(self) -> Step:
        """Return the current step of the current stage."""
        return self.stage.steps[self.stage.current]

    def shown(self) -> dict[str, Any]:
        """Return the strategy as the API shows it."""
        return {
            "uuid": self.uuid,
            "name": "fw-update",
            "controller-apply-type": self.controller_apply_type,
            "storage-apply-type": self.storage_apply_type,
            "swift-apply-type": "ignore",
            "worker-apply-type": self.worker_apply_type,
            "max-parallel-worker-hosts": self.max_parallel_workers,
            "default-instance-action": self.default_instance_action,
            "alarm-restrictions": self.alarm_restrictions,
            "state": self.state,
            "current-phase": self.current_phase,
            "current-phase-completion-percentage": self.phase.percentage,
            **{f"{name}-phase": self.phases[name].shown() for name in (BUILD, APPLY, ABORT)},
        }


def written(strategy: Strategy) -> bytes:
    """Return the strategy as it is kept on disk."""
    return json.dumps(
        strategy, default=lambda part: {name: getattr(part, name) for name in part.__slots__}
    ).encode()


def restored(kept: bytes) -> Strategy:
    """Return the strategy that :func:`written` made ``kept`` of."""
    fields = json.loads(kept)
    phases = {
        name: Phase(**phase | {"stages": [_stage(stage) for stage in phase["stages"]]})
        for name, phase in fields["phases"].items()
    }
    return Strategy(**fields | {"phases": phases})


def _stage(kept: dict[str, Any]) -> Stage:
    return Stage(**kept | {"steps": [Step(**step) for step in kept["steps"]]})

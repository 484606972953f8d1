"""The VIM's firmware strategy of one system: what may be asked of it, and how it goes on (section 5.5)."""

from __future__ import annotations

import logging
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.emulator.clock import Event
from harness.emulator.distributed_cloud.vim_steps import Outcome, Steps, abort_steps, period
from harness.emulator.distributed_cloud.vim_strategy import (
    ABORT,
    ABORTED,
    ABORTING,
    APPLY,
    AT_WORK,
    BUILD,
    FAILED,
    IN_PROGRESS,
    SUCCESS,
    TIMED_OUT,
    WAIT,
    Phase,
    Stage,
    Strategy,
    restored,
    written,
)
from harness.emulator.starlingx.answers import Refused

if TYPE_CHECKING:
    from harness.emulator.starlingx.system import System

_LOG = logging.getLogger(__name__)
_ENTITY: Final = "orchestration=fw-update"
#: Alarm -> severity and text. That 900.303 stands until the strategy is deleted is inferred.
_ALARMS: Final = {
    "900.301": ("major", "Firmware Update auto-apply in progress"),
    "900.302": ("major", "Firmware Update auto-apply aborting"),
    "900.303": ("critical", "Firmware Update auto-apply failed"),
}
_PARALLEL: Final = range(2, 6)
_CHOICES: Final = {
    "controller-apply-type": ("serial", "parallel", "ignore"),
    "storage-apply-type": ("serial", "parallel", "ignore"),
    "worker-apply-type": ("serial", "parallel", "ignore"),
    "default-instance-action": ("migrate", "stop-start"),
    "alarm-restrictions": ("strict", "relaxed"),
}
#: What LP 1929251 leaves in the log.
_TRACEBACK: Final = "AttributeError: 'FwUpdateHostsStep' object has no attribute '_wait_time'"


class VimRefused(Refused):
    """The VIM refuses a request. ``status``: of HTTP."""

    def body(self) -> dict[str, Any]:
        """Return the body of the answer (inferred: the bare form of WSME)."""
        return {"debuginfo": None, "faultcode": self.fault, "faultstring": self.text}


class Vim:
    """The VIM of one system. Every method returns at once; what was begun goes on as lab time passes.

    A strategy that is building, applying or aborting draws lab time. Methods are safe to call from any
    thread, callbacks of the lab clock included. ``path``: where the strategy is kept; one that is there
    already is taken up again, and its step has its whole time anew.
    """

    def __init__(self, system: System, path: Path) -> None:
        self._system = system
        self._path = path
        self._lock = system.lock
        self._event: Event | None = None
        self._deadline = 0.0
        self._alarmed: str | None = ""  # not known before the first
        #: The lines of its log.
        self.log: list[str] = []
        self._steps = Steps(system, self._say)
        self._strategy = restored(path.read_bytes()) if path.exists() else None
        self._taken_up = self._strategy is not None
        if self._strategy is not None and self._strategy.phase.inprogress and self._strategy.stage.inprogress:
            self._wait(self._strategy)

    def create(
        self,
        *,
        controller_apply_type: str = "ignore",
        storage_apply_type: str = "ignore",
        worker_apply_type: str = "serial",
        max_parallel_workers: int = 2,
        default_instance_action: str = "stop-start",
        alarm_restrictions: str = "strict",
    ) -> dict[str, Any]:
        """Begin to build a strategy, and return it as :meth:`strategy` does (state `building`).

        :raises VimRefused: 409, there is one already; 400, an option is wrong.
        """
        given = (
            controller_apply_type,
            storage_apply_type,
            worker_apply_type,
            default_instance_action,
            alarm_restrictions,
        )
        for (key, choices), value in zip(_CHOICES.items(), given, strict=True):
            if value not in choices:
                raise VimRefused(400, f"Invalid input for field/attribute {key}. Value: '{value}'.")
        if max_parallel_workers not in _PARALLEL:
            raise VimRefused(400, "Invalid value for max-parallel-worker-hosts")
        with self._lock:
            if self._strategy is not None:
                raise VimRefused(409, "strategy already exists of type:fw-update")
            self._taken_up = False
            made = self._strategy = Strategy(
                str(uuid.uuid4()),
                controller_apply_type,
                storage_apply_type,
                worker_apply_type,
                max_parallel_workers,
                default_instance_action,
                alarm_restrictions,
            )
            if worker_apply_type == "ignore":
                reason = "Worker apply type is 'ignore' ; must be 'serial' or 'parallel'"
                self._fail_build(made, reason)
            else:
                made.phases[BUILD].stages.append(self._steps.query_stage())
                self._begin_phase(made, BUILD)
            return self._kept(made)

    def apply(self, stage_id: int | None = None) -> dict[str, Any]:
        """Begin to carry out the strategy, and return it.

        ``stage_id``: only this stage, which must be the next one.
        :raises VimRefused: 404, there is none; 500, it cannot be applied.
        """
        with self._lock:
            strategy = self._there()
            phase = strategy.phases[APPLY]
            resting = strategy.state == "applying" and not strategy.stage.inprogress
            if strategy.state != "ready-to-apply" and not resting:
                raise VimRefused(500, "apply already completed", "Server")
            if stage_id is not None and stage_id != phase.current:
                raise VimRefused(500, f"invalid stage id {stage_id} for the apply", "Server")
            stop = len(phase.stages) if stage_id is None else stage_id + 1
            strategy.state = "applying"
            if resting:
                phase.stop = stop
                self._begin_stage(strategy)
            else:
                self._begin_phase(strategy, APPLY, stop)
            return self._kept(strategy)

    def abort(self, stage_id: int | None = None) -> dict[str, Any]:
        """Begin no further step of it, undo what can be undone, and return it.

        :raises VimRefused: 404, there is none; 400, it is not being applied.
        """
        with self._lock:
            strategy = self._there()
            phase = strategy.phases[APPLY]
            if strategy.state != "applying":
                raise VimRefused(400, "apply not inprogress")
            if stage_id is not None and (stage_id != phase.current or not strategy.stage.inprogress):
                raise VimRefused(400, f"apply not inprogress for stage id {stage_id}")
            working = strategy.stage.inprogress
            self._plan_abort(strategy)
            phase.result = ABORTING
            if working:
                strategy.stage.result = ABORTING
            else:
                self._finish_phase(strategy, ABORTED, "")
            return self._kept(strategy)

    def delete(self, *, force: bool = False) -> None:
        """Delete the strategy. :raises VimRefused: 404, there is none; 409, it is at work."""
        with self._lock:
            strategy = self._there()
            if strategy.state in AT_WORK and not force:
                raise VimRefused(409, "")
            self._rest()
            self._strategy = None
            self._path.unlink(missing_ok=True)
            self._alarm(None)

    def strategy(self) -> dict[str, Any] | None:
        """Return the strategy as the API shows it, or None.

        Keys: uuid, name, `state` (building, build-failed, build-timeout, ready-to-apply, applying, applied,
        aborting, aborted, abort-failed, abort-timeout), current-phase, current-phase-completion-percentage,
        and build-phase, apply-phase, abort-phase, each with `result`, `reason`, `inprogress`, stages and
        their steps. A strategy whose apply phase failed is aborted: `state` tells no more of the failure.
        """
        with self._lock:
            return None if self._strategy is None else self._strategy.shown()

    def close(self) -> None:
        """End the service; the next one takes up what is on disk."""
        with self._lock:
            self._rest()

    # What follows is called with the lock held.

    def _there(self) -> Strategy:
        if self._strategy is None:
            raise VimRefused(404, "")
        return self._strategy

    def _kept(self, strategy: Strategy) -> dict[str, Any]:
        self._keep(strategy)
        return strategy.shown()

    def _keep(self, strategy: Strategy) -> None:
        """Write the strategy down, and have its alarm stand."""
        fresh = self._path.with_suffix(".new")
        fresh.write_bytes(written(strategy))
        fresh.replace(self._path)
        failed = strategy.phases[APPLY].result in (FAILED, TIMED_OUT)
        by_state = {"applying": "900.301", "aborting": "900.302"}
        self._alarm(by_state.get(strategy.state, "900.303" if failed else None))

    def _alarm(self, wanted: str | None) -> None:
        """Have this alarm stand, and no other of the VIM's."""
        if wanted == self._alarmed:
            return
        self._alarmed = wanted
        for alarm_id, (severity, text) in _ALARMS.items():
            if alarm_id == wanted:
                self._system.alarms.set(alarm_id, _ENTITY, severity, text)
            else:
                self._system.alarms.clear(alarm_id, _ENTITY)

    def _say(self, line: str) -> None:
        self.log.append(line)
        _LOG.info("%s: %s", self._system.name, line)

    def _moment(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self._system.clock.now()))

    # -- beginning ------------------------------------------------------------------------------

    def _begin_phase(self, strategy: Strategy, name: str, stop: int | None = None) -> None:
        phase = strategy.phases[name]
        strategy.current_phase = name
        phase.inprogress, phase.result, phase.began = True, IN_PROGRESS, self._moment()
        phase.stop = len(phase.stages) if stop is None else stop
        if phase.stages:
            self._begin_stage(strategy)
        else:
            self._finish_phase(strategy, SUCCESS, "")

    def _begin_stage(self, strategy: Strategy) -> None:
        stage = strategy.stage
        stage.inprogress, stage.result, stage.began = True, IN_PROGRESS, self._moment()
        self._begin_step(strategy)

    def _begin_step(self, strategy: Strategy) -> None:
        step = strategy.step
        step.began = self._moment()
        step.result, step.reason = self._steps.kind(strategy, step.name).begin(step)
        if step.result == WAIT:
            self._wait(strategy)
        else:
            self._finish_step(strategy, (step.result, step.reason))

    # -- waiting --------------------------------------------------------------------------------

    def _wait(self, strategy: Strategy) -> None:
        """Look at the current step after its period, and time it out after its timeout."""
        self._deadline = self._system.clock.now() + strategy.step.timeout
        self._look_later(strategy)

    def _look_later(self, strategy: Strategy) -> None:
        clock = self._system.clock
        when = min(clock.now() + period(strategy.step), self._deadline)
        made: list[Event] = []
        made.append(clock.at(when, lambda: self._look(made)))
        self._event = made[0]

    def _rest(self) -> None:
        if self._event is not None:
            self._event.cancel()
            self._event = None

    def _look(self, made: list[Event]) -> None:
        """Look at the current step, unless its event was taken back meanwhile."""
        with self._lock:
            strategy = self._strategy
            if strategy is None or not made or made[0] is not self._event:
                return
            self._event = None
            step, done = strategy.step, len(strategy.step.done)
            outcome = self._outcome(strategy)
            if outcome[0] == WAIT and self._system.clock.now() >= self._deadline:
                outcome = TIMED_OUT, f"{step.name} timed out"
            if outcome[0] == WAIT:
                self._look_later(strategy)
            else:
                self._finish_step(strategy, outcome)
            if outcome[0] != WAIT or len(step.done) != done:  # most looks change nothing
                self._keep(strategy)

    def _outcome(self, strategy: Strategy) -> Outcome:
        step = strategy.step
        broken = self._taken_up and self._system.defects.on("vim-restart-traceback")
        if broken and step.name == "fw-update-hosts":
            self._say(_TRACEBACK)
            return WAIT, ""
        return self._steps.kind(strategy, step.name).look(step)

    # -- finishing ------------------------------------------------------------------------------

    def _finish_step(self, strategy: Strategy, outcome: Outcome) -> None:
        step, stage = strategy.step, strategy.stage
        step.result, step.reason = outcome
        step.ended = self._moment()
        self._taken_up = False
        if stage.result == ABORTING:
            self._finish_stage(strategy, ABORTED, "")
        elif step.result != SUCCESS:
            self._finish_stage(strategy, step.result, step.reason)
        else:
            stage.current += 1
            if stage.current < len(stage.steps):
                self._begin_step(strategy)
            else:
                self._finish_stage(strategy, SUCCESS, "")

    def _finish_stage(self, strategy: Strategy, result: str, reason: str) -> None:
        phase, stage = strategy.phase, strategy.stage
        stage.inprogress, stage.result, stage.reason, stage.ended = False, result, reason, self._moment()
        if result != SUCCESS:
            self._finish_phase(strategy, result, reason)
            return
        phase.current += 1
        if phase.current == len(phase.stages):
            self._finish_phase(strategy, SUCCESS, "")
        elif phase.current < phase.stop:
            self._begin_stage(strategy)

    def _finish_phase(self, strategy: Strategy, result: str, reason: str) -> None:
        phase = strategy.phase
        phase.inprogress, phase.result, phase.reason, phase.ended = False, result, reason, self._moment()
        if phase.name == BUILD:
            self._built(strategy)
        elif phase.name == APPLY and result == SUCCESS:
            strategy.state = "applied"
        elif phase.name == APPLY:
            if result != ABORTED:
                self._plan_abort(strategy)
            self._begin_phase(strategy, ABORT)
        else:
            ends = {SUCCESS: "aborted", FAILED: "abort-failed", TIMED_OUT: "abort-timeout"}
            strategy.state = ends[result]

    def _plan_abort(self, strategy: Strategy) -> None:
        """Have the abort phase undo what was begun, the last stage first."""
        strategy.state = "aborting"
        phase = strategy.phases[APPLY]
        undone = [(stage.name, abort_steps(stage)) for stage in reversed(phase.stages[: phase.current + 1])]
        stages = [Stage(name, steps) for name, steps in undone if steps]
        strategy.phases[ABORT] = Phase(ABORT, stages)

    def _built(self, strategy: Strategy) -> None:
        result = strategy.phase.result
        if result == TIMED_OUT:
            strategy.state = "build-timeout"
        elif result != SUCCESS:
            strategy.state = "build-failed"
        elif not strategy.update:
            self._fail_build(strategy, "no firmware update required")
        else:
            strategy.phases[APPLY].stages = self._steps.update_stages(strategy)
            strategy.state = "ready-to-apply"

    def _fail_build(self, strategy: Strategy, reason: str) -> None:
        strategy.state = "build-failed"
        strategy.phase.result, strategy.phase.reason = FAILED, reason

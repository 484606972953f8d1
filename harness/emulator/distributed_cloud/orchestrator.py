"""dcmanager's orchestration: the one strategy, its steps, and what carries them on (section 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from harness.emulator.distributed_cloud.firmware_audit import IN_SYNC, OUT_OF_SYNC, UNKNOWN
from harness.emulator.distributed_cloud.profile import CloudProfile
from harness.emulator.distributed_cloud.regions import Region, RegionError
from harness.emulator.distributed_cloud.store import (
    DEFAULT_PARALLEL,
    MANAGED,
    ONLINE,
    UNMANAGED,
    Store,
)
from harness.emulator.distributed_cloud.subcloud_steps import COMPLETE, IMPORTING, SubcloudSteps, Waits
from harness.emulator.distributed_cloud.timers import Timers
from harness.emulator.starlingx.database import Row
from harness.emulator.starlingx.defects import Defects

INITIAL: Final = "initial"
APPLYING: Final = "applying"
ABORT_REQUESTED: Final = "abort requested"
ABORTING: Final = "aborting"
ABORTED: Final = "aborted"
FAILED: Final = "failed"
DELETING: Final = "deleting"
_ENDED: Final = (COMPLETE, ABORTED, FAILED)
#: Numbers of a step's stage: created, started, processed; the command says Create, Apply, Complete.
_CREATED, _STARTED, _PROCESSED = 1, 2, 3
_LONGEST_DETAILS: Final = 255
_BUSY: Final = ("building", "applying", "aborting")


class BadRequest(Exception):
    """What dcmanager does not do; its API says so with 422."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Bad strategy request: {text}")


@dataclass(eq=False, slots=True)
class _Worker:
    """What carries on the step of one subcloud, in one of its states."""

    state: str
    waits: Waits


class Orchestrator:
    """Carries strategies out. All but the requests is done by dcmanager's own service, ``timers``.

    ``steps``: makes what is done with a subcloud. ``over``: called when a strategy has come to its end.
    """

    def __init__(
        self,
        store: Store,
        defects: Defects,
        profile: CloudProfile,
        timers: Timers,
        regions: Mapping[str, Region],
        steps: Callable[[Row], SubcloudSteps],
        over: Callable[[], None],
    ) -> None:
        self._store = store
        self._defects = defects
        self._profile = profile
        self._timers = timers
        self._regions = regions
        self._steps = steps
        self._over = over
        self._workers: dict[int, _Worker] = {}
        self._woken = False

    # -- requests -------------------------------------------------------------------------------

    def create(self, request: Mapping[str, Any]) -> Row:
        """Make a strategy of the subclouds that need one. :raises BadRequest: it must not be."""
        store = self._store
        kind, name = str(request["type"]), request.get("cloud_name")
        there = store.strategy()
        if there is not None:
            raise BadRequest(f"Strategy of type: '{there['type']}' already exists")
        group = store.group(str(request["subcloud_group"])) if request.get("subcloud_group") else None
        how, parallel = request.get("subcloud-apply-type"), request.get("max-parallel-subclouds")
        if group is not None:
            how, parallel = group["update_apply_type"], group["max_parallel_subclouds"]
        chosen = self._chosen(name, group)
        firmware = store.firmware()
        if name and firmware[chosen[0]["id"]] == IN_SYNC:
            raise BadRequest(f"Subcloud {name} does not require firmware update")
        ready = [
            row
            for row in chosen
            if row["management_state"] == MANAGED and row["availability_status"] == ONLINE
        ]
        if any(firmware[row["id"]] == UNKNOWN for row in ready):
            raise BadRequest("firmware sync status is unknown for one or more subclouds")
        due = [row for row in ready if firmware[row["id"]] == OUT_OF_SYNC]
        if not due:
            raise BadRequest("Strategy has no steps to apply")
        made = store.rows.add(
            "sw_update_strategy",
            type=kind,
            subcloud_apply_type=how,
            max_parallel_subclouds=1 if how == "serial" else int(parallel or DEFAULT_PARALLEL),
            stop_on_failure=request.get("stop-on-failure") == "true",
            state=INITIAL,
        )
        for row in due:
            store.rows.add("strategy_steps", subcloud_id=row["id"], stage=_CREATED, state=INITIAL, details="")
        return made

    def _chosen(self, name: str | None, group: Row | None) -> list[Row]:
        if name:
            row = self._store.subcloud(name)
            if row is None:
                raise BadRequest(f"Subcloud {name} does not exist")
            return [row]
        return [row for row in self._store.subclouds() if group is None or row["group_id"] == group["id"]]

    def apply(self, strategy: Row) -> None:
        """Begin a strategy. :raises BadRequest: its state is another."""
        self._leave(strategy, (INITIAL,), "applied", APPLYING)

    def abort(self, strategy: Row) -> None:
        """Begin no further subcloud. :raises BadRequest: its state is another."""
        self._leave(strategy, (APPLYING,), "aborted", ABORT_REQUESTED)

    def delete(self, strategy: Row) -> None:
        """Delete a strategy. :raises BadRequest: its state is another."""
        self._leave(strategy, (INITIAL, *_ENDED), "deleted", DELETING)

    def _leave(self, strategy: Row, states: tuple[str, ...], verb: str, state: str) -> None:
        if strategy["state"] not in states:
            raise BadRequest(f"Strategy in state {strategy['state']} cannot be {verb}")
        self._set_strategy(strategy, state)
        self.wake()

    # -- its service ----------------------------------------------------------------------------

    def wake(self) -> None:
        """Have the strategy looked at, at the next of the regular looks; the idle ones are left out."""
        if not self._woken:
            self._woken = True
            self._timers.after(self._profile.orchestrator_seconds, self._look)

    def resume(self) -> None:
        """Go on with what the database holds: dcmanager has begun anew."""
        if not self._profile.resumes_after_restart:
            for step in self._store.steps():
                if step["state"] not in (INITIAL, *_ENDED):
                    self._fail(step, f"{step['state']}: dcmanager was restarted")
        if self._store.strategy() is not None:
            self.wake()

    def rest(self) -> None:
        """Forget every worker: dcmanager has ended."""
        self._workers.clear()
        self._woken = False

    def _look(self) -> None:
        self._woken = False
        strategy = self._store.strategy()
        if strategy is None:
            return
        if strategy["state"] == ABORT_REQUESTED:
            for step in self._store.steps():
                if step["state"] == INITIAL:
                    self._set_step(step, state=ABORTED, details="")
            self._set_strategy(strategy, ABORTING)
            self.wake()
        elif strategy["state"] == DELETING:
            self._remove()
        elif strategy["state"] in (APPLYING, ABORTING):
            self._go_on(strategy)

    def _go_on(self, strategy: Row) -> None:
        steps = self._store.steps()
        for step in steps:
            if step["state"] in _ENDED:
                self._workers.pop(step["subcloud_id"], None)
                if step["stage"] != _PROCESSED:
                    self._store.rows.change("strategy_steps", step["id"], stage=_PROCESSED)
        failed = any(step["state"] == FAILED for step in steps)
        stop = failed and bool(strategy["stop_on_failure"])
        if all(step["state"] in _ENDED for step in steps) or (stop and not self._at_work(steps)):
            aborted = any(step["state"] == ABORTED for step in steps)
            self._set_strategy(strategy, FAILED if failed else ABORTED if aborted else COMPLETE)
            self._over()
            return
        for step in steps:
            if step["state"] == INITIAL:
                if not stop and len(self._workers) < strategy["max_parallel_subclouds"]:
                    self._begin(step)
            elif step["state"] not in _ENDED:
                self._work(step["subcloud_id"], step["state"])

    def _at_work(self, steps: list[Row]) -> bool:
        return any(step["state"] not in (INITIAL, *_ENDED) for step in steps)

    def _begin(self, step: Row) -> None:
        subcloud = self._store.rows.one("subclouds", id=step["subcloud_id"])
        assert subcloud is not None
        if subcloud["management_state"] == UNMANAGED:
            self._fail(step, f"Subcloud {subcloud['name']} is unmanaged.")
            self.wake()
            return
        self._set_step(step, stage=_STARTED, state=IMPORTING)
        self._work(step["subcloud_id"], IMPORTING)

    def _work(self, subcloud_id: int, state: str) -> None:
        """Have a worker at ``state`` of a subcloud's step, unless one is."""
        there = self._workers.get(subcloud_id)
        if there is not None and there.state == state:
            return
        subcloud = self._store.rows.one("subclouds", id=subcloud_id)
        assert subcloud is not None
        worker = self._workers[subcloud_id] = _Worker(state, self._steps(subcloud).run(state))
        self._resume(subcloud_id, worker)

    def _resume(self, subcloud_id: int, worker: _Worker) -> None:
        step = self._store.step(subcloud_id)
        if step is None or self._workers.get(subcloud_id) is not worker:
            return
        try:
            seconds = next(worker.waits)
        except StopIteration as done:
            self._set_step(step, state=str(done.value), details="")
            self.wake()
        except Exception as error:  # noqa: BLE001 -- whatever it was, the step has failed with it
            self._fail(step, f"{worker.state}: {error}")
            self.wake()
        else:
            self._timers.after(seconds, partial(self._resume, subcloud_id, worker))

    def _remove(self) -> None:
        """Delete the strategy, and the VIM's of every subcloud that had a step."""
        for step in self._store.steps():
            subcloud = self._store.rows.one("subclouds", id=step["subcloud_id"])
            if subcloud is not None and not self._defects.on("leftover-vim-strategy"):
                self._remove_from(self._regions[subcloud["name"]])
            self._store.rows.remove("strategy_steps", step["id"])
        strategy = self._store.strategy()
        if strategy is not None:
            self._store.rows.remove("sw_update_strategy", strategy["id"])
        self._workers.clear()

    @staticmethod
    def _remove_from(region: Region) -> None:
        try:
            strategy = region.strategy()
            if strategy is not None and strategy["state"] not in _BUSY:
                region.delete_strategy()
        except RegionError:
            pass  # dcmanager notes it in its log and goes on

    # -- rows -----------------------------------------------------------------------------------

    def _set_strategy(self, strategy: Row, state: str) -> None:
        self._store.rows.change("sw_update_strategy", strategy["id"], state=state)

    def _set_step(self, step: Row, **values: Any) -> None:
        if values.get("state") == IMPORTING:
            values["started_at"] = self._store.moment()
        elif values.get("state") in _ENDED:
            values["finished_at"] = self._store.moment()
        self._store.rows.change("strategy_steps", step["id"], **values)

    def _fail(self, step: Row, details: str) -> None:
        if len(details) > _LONGEST_DETAILS:
            details = details[: _LONGEST_DETAILS - 2] + ".."
        self._set_step(step, state=FAILED, details=details)
        subcloud = self._store.rows.one("subclouds", id=step["subcloud_id"])
        if subcloud is not None:
            self._store.rows.change("subclouds", subcloud["id"], error_description=details)

"""What the steps of the VIM's firmware strategy do to a system, and when each is over (section 5.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.emulator.distributed_cloud.vim_strategy import FAILED, SUCCESS, WAIT, Stage, Step, Strategy
from harness.emulator.starlingx.answers import Refused
from harness.emulator.starlingx.applying import COMPLETED, IN_PROGRESS, NOTHING, PENDING
from harness.emulator.starlingx.conductor import ABORTED
from harness.emulator.starlingx.database import Row
from harness.emulator.starlingx.identity import Caller

if TYPE_CHECKING:
    from harness.emulator.starlingx.system import System

#: Alarms that keep nobody from updating firmware (section 5.5).
IGNORED_ALARMS: Final = ("700.004", "280.002", "900.006", "900.301", "200.001", "100.119", "900.701")
#: Step -> its timeout and the time from one look at it to the next, in seconds. Stated: those of the
#: update of hosts; the others are what the public documents and sources of the VIM have.
_TIMES: Final = {
    "query-alarms": (60, 1.0),
    "query-fw-update-host": (60, 1.0),
    "fw-update-hosts": (3600, 60.0),
    "fw-update-abort-hosts": (600, 10.0),
    "swact-hosts": (900, 120.0),
    "lock-hosts": (900, 16.0),  # a single controller is given at least 15 s
    "unlock-hosts": (1800, 10.0),
}
STABILIZE: Final = "system-stabilize"
#: How long the system is left alone after a lock, and after an unlock.
_AFTER_LOCK: Final = 15
_AFTER_UNLOCK: Final = 60
_CALLER: Final = Caller("vim", "services", ("admin",))

#: How a step stands, and why.
Outcome = tuple[str, str]
_WAITING: Final = (WAIT, "")
_DONE: Final = (SUCCESS, "")


@dataclass(frozen=True, slots=True)
class Kind:
    """How a step is begun, and how it stands at each look at it."""

    begin: Callable[[Step], Outcome]
    look: Callable[[Step], Outcome]


def period(step: Step) -> float:
    """Return the lab seconds from one look at a step to the next."""
    return float(step.timeout) if step.name == STABILIZE else _TIMES[step.name][1]


def abort_steps(stage: Stage) -> list[Step]:
    """Return the steps that undo what was begun of a stage, the last first."""
    found: list[Step] = []
    for step in reversed(stage.steps[: stage.current + 1]):
        if step.name == "fw-update-hosts":
            left = {name: uuid for name, uuid in step.hosts.items() if name not in step.done}
            found.append(_step("fw-update-abort-hosts", left))
        elif step.name == "lock-hosts":
            found.append(_step("unlock-hosts", step.hosts))
    return found


def _step(name: str, hosts: dict[str, str] | None = None) -> Step:
    return Step(name, _TIMES[name][0], dict(hosts or {}))


class Steps:
    """The steps of one system's strategy. ``say``: takes the lines of the VIM's log."""

    def __init__(self, system: System, say: Callable[[str], None]) -> None:
        self._system = system
        self._database = system.database
        self._say = say

    # -- stages ---------------------------------------------------------------------------------

    def query_stage(self) -> Stage:
        """Return the stage that builds a strategy: alarms, and each unlocked and enabled worker."""
        workers = [
            host
            for host in self._database.all("i_host")
            if "worker" in host["subfunctions"] and _up(host["administrative"], host["operational"])
        ]
        queries = [_step("query-fw-update-host", _named([host])) for host in workers]
        return Stage("fw-update-hosts-query", [_step("query-alarms"), *queries])

    def update_stages(self, strategy: Strategy) -> list[Stage]:
        """Return the stages that update the hosts of a built strategy: controllers one by one, first."""
        hosts = [host for host in self._database.all("i_host") if host["hostname"] in strategy.update]
        groups = [[host] for host in hosts if host["personality"] == "controller"]
        workers = [host for host in hosts if host["personality"] != "controller"]
        size = strategy.max_parallel_workers if strategy.worker_apply_type == "parallel" else 1
        groups += [workers[start : start + size] for start in range(0, len(workers), size)]
        return [self._update_stage(group) for group in groups]

    def _update_stage(self, group: Sequence[Row]) -> Stage:
        hosts = _named(group)
        swact = group[0]["personality"] == "controller" and not self._single
        return Stage(
            "fw-update-worker-hosts",
            [
                _step("query-alarms"),
                _step("fw-update-hosts", hosts),
                *([_step("swact-hosts", hosts)] if swact else []),
                _step("lock-hosts", hosts),
                Step(STABILIZE, _AFTER_LOCK),
                _step("unlock-hosts", hosts),
                Step(STABILIZE, _AFTER_UNLOCK),
            ],
        )

    @property
    def _single(self) -> bool:
        """Whether there is one controller: it does not go disabled when it is locked, and cannot swact."""
        return len(self._database.all("i_host", personality="controller")) == 1

    # -- steps ----------------------------------------------------------------------------------

    def kind(self, strategy: Strategy, name: str) -> Kind:
        """Return what the steps of this name do."""
        kinds = {
            "query-alarms": Kind(_wait, lambda step: self._query_alarms(strategy)),
            "query-fw-update-host": Kind(_wait, lambda step: self._query_host(strategy, step)),
            "fw-update-hosts": Kind(self._update, self._look_at_update),
            "fw-update-abort-hosts": Kind(self._abort_update, lambda step: _DONE),
            "swact-hosts": Kind(self._swact, lambda step: _DONE),
            "lock-hosts": Kind(self._lock, self._locked),
            "unlock-hosts": Kind(self._unlock, self._unlocked),
            STABILIZE: Kind(self._settle, self._settled),
        }
        return kinds[name]

    def _query_alarms(self, strategy: Strategy) -> Outcome:
        relaxed = strategy.alarm_restrictions == "relaxed"
        present = [
            alarm["alarm_id"]
            for alarm in self._database.all("alarms")
            if alarm["alarm_id"] not in IGNORED_ALARMS and not (relaxed and not alarm["mgmt_affecting"])
        ]
        return (FAILED, f"alarms {present} from platform are present") if present else _DONE

    def _query_host(self, strategy: Strategy, step: Step) -> Outcome:
        for host in self._hosts(step):
            if host["device_image_update"] == PENDING:
                strategy.update.append(host["hostname"])
        return _DONE

    def _update(self, step: Step) -> Outcome:
        return self._ask(step, "update_host", "fw image update failed")

    def _abort_update(self, step: Step) -> Outcome:
        return self._ask(step, "abort_host", "device image update abort failed")

    def _ask(self, step: Step, route: str, failure: str) -> Outcome:
        """Send sysinv's API one request for each host, as the VIM does over HTTP."""
        from harness.emulator.starlingx.sysinv import Request, Sysinv

        for uuid in step.hosts.values():
            try:
                getattr(Sysinv(self._system), route)(Request(_CALLER, ""), uuid)
            except Refused as refusal:
                self._say(refusal.text)
                return FAILED, failure
        return _WAITING

    def _look_at_update(self, step: Step) -> Outcome:
        """Ask for each host that is not done yet what sysinv says of its update."""
        for host in self._hosts(step):
            name, status = host["hostname"], host["device_image_update"]
            if name in step.done or status == IN_PROGRESS:
                continue
            if status is None and self._system.defects.on("vim-ignores-null"):
                continue
            if status == PENDING and self._system.defects.on("vim-hangs-on-pending"):
                continue
            step.done[name] = status in (COMPLETED, NOTHING, None)
            if not step.done[name]:
                self._say(name + _FAILURES.get(status, f" firmware update failed ; unknown state [{status}]"))
        if len(step.done) < len(step.hosts):
            return _WAITING
        failed = [name for name in step.hosts if not step.done[name]]
        return (
            (FAILED, "Firmware update failed ; " + "".join(f"{name} " for name in failed))
            if failed
            else _DONE
        )

    def _swact(self, step: Step) -> Outcome:
        active = self._system.activity.active
        hosts = [host for host in self._hosts(step) if active and host["hostname"] == active.hostname]
        return self._act(hosts, "swact")

    def _lock(self, step: Step) -> Outcome:
        hosts = [host for host in self._hosts(step) if host["administrative"] != "locked"]
        return self._act(hosts, "lock")

    def _unlock(self, step: Step) -> Outcome:
        hosts = [host for host in self._hosts(step) if host["administrative"] != "unlocked"]
        return self._act(hosts, "unlock")

    def _act(self, hosts: Sequence[Row], action: str) -> Outcome:
        from harness.emulator.starlingx.sysinv import Request, Sysinv

        body = [{"op": "replace", "path": "/action", "value": action}]
        for host in hosts:
            try:
                Sysinv(self._system).change_host(Request(_CALLER, "", body=body), host["uuid"])
            except Refused as refusal:
                self._say(refusal.text)
                return FAILED, f"host {action} failed"
        return _WAITING

    def _locked(self, step: Step) -> Outcome:
        good = all(
            host["administrative"] == "locked" and (self._single or host["operational"] == "disabled")
            for host in self._hosts(step)
        )
        return _DONE if good else _WAITING

    def _unlocked(self, step: Step) -> Outcome:
        good = all(_up(host["administrative"], host["operational"]) for host in self._hosts(step))
        return _DONE if good else _WAITING

    def _settle(self, step: Step) -> Outcome:
        step.before = self._states()
        return _WAITING

    def _settled(self, step: Step) -> Outcome:
        """A host that is not what it was when the wait began fails it (seen at its end; inferred)."""
        now = self._states()
        changed = [name for name, state in step.before.items() if now.get(name) != state]
        return (FAILED, f"host {changed[0]} changed state unexpectedly") if changed else _DONE

    def _states(self) -> dict[str, str]:
        hosts = self._database.all("i_host")
        return {host["hostname"]: f"{host['administrative']}-{host['operational']}" for host in hosts}

    def _hosts(self, step: Step) -> list[Row]:
        return [host for host in self._database.all("i_host") if host["hostname"] in step.hosts]


_FAILURES: Final = {
    PENDING: " firmware update failed ; needs retry",
    ABORTED: " firmware update aborted while in progress",
}


def _wait(step: Step) -> Outcome:
    return _WAITING


def _up(administrative: str, operational: str) -> bool:
    return (administrative, operational) == ("unlocked", "enabled")


def _named(hosts: Sequence[Row]) -> dict[str, str]:
    return {host["hostname"]: host["uuid"] for host in hosts}

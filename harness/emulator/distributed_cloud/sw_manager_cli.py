"""The command `sw-manager`, as far as firmware strategies go: what it asks of the VIM, and how it prints.

Its output is that of the sample; what the sample does not show is as the public client has it. Newer clients
have two lines more (current-stage, current-step), which no document shows.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from harness.emulator.distributed_cloud.cli_parser import Parser, parser_of
from harness.emulator.programs.base import Invocation, ProgramExit
from harness.emulator.starlingx.cli_client import Client, CommandError

_PATH: Final = ("api", "orchestration", "fw-update", "strategy")
_ENV: Final = {
    "auth_url": "Authentication URI",
    "project_name": "Project name",
    "project_domain_name": "Project domain name",
    "username": "Username",
    "password": "User password",
    "user_domain_name": "User domain name",
    "region_name": "Openstack region name",
    "interface": "Openstack interface",
}
_COLUMN: Final = 42


def run_sw_manager(run: Invocation, release: str) -> int:
    """Run the command; return its exit code."""
    try:
        given = _parser(run).parse_args(run.argv[1:])
    except ProgramExit as end:
        return end.status
    env = dict(run.env)
    for name, words in _ENV.items():
        variable = f"OS_{name.upper()}"
        env[variable] = getattr(given, f"os_{name}") or env.get(variable, "")
        if not env[variable]:
            run.out(f"{words} not given\n")
            return 0
    env["OS_ENDPOINT_TYPE"] = env["OS_INTERFACE"]
    try:
        run.out(given.act(_Vim(env, run.out), given))
    except CommandError as error:
        run.out(f"{error}\n")
        return 1
    return 0


def _parser(run: Invocation) -> Parser:
    parser = parser_of(run, "sw-manager")
    parser.add_argument("--debug", action="store_true")
    for name in _ENV:
        parser.add_argument(f"--os-{name.replace('_', '-')}")
    areas = parser.add_subparsers(title="Commands", metavar="", required=True)
    area = areas.add_parser("fw-update-strategy", help="Firmware Update Strategy")
    commands = area.add_subparsers(title="Firmware Update Commands", metavar="", required=True)
    create = commands.add_parser("create", help="Create a strategy")
    for option, choices in (
        ("--controller-apply-type", ["ignore"]),
        ("--storage-apply-type", ["ignore"]),
        ("--worker-apply-type", ["serial", "parallel", "ignore"]),
        ("--instance-action", ["stop-start", "migrate"]),
        ("--alarm-restrictions", ["strict", "relaxed"]),
    ):
        create.add_argument(option, default=choices[0], choices=choices, help=f"defaults to {choices[0]}")
    create.add_argument("--max-parallel-worker-hosts", type=int, choices=list(range(2, 6)))
    delete = commands.add_parser("delete", help="Delete a strategy")
    delete.add_argument("--force", action="store_true", help=argparse.SUPPRESS)
    apply = commands.add_parser("apply", help="Apply a strategy")
    abort = commands.add_parser("abort", help="Abort a strategy")
    show = commands.add_parser("show", help="Show a strategy")
    for command, verb in ((apply, "apply"), (abort, "abort")):
        command.add_argument("--stage-id", help=f"stage identifier to {verb}")
    show.add_argument("--details", action="store_true", help="show strategy details")
    show.add_argument("--active", action="store_true", help="show currently active strategy step")
    acts: dict[Parser, Callable[[_Vim, argparse.Namespace], str]] = {
        create: _create, delete: _delete, apply: _apply, abort: _abort, show: _show,
    }  # fmt: skip
    for command, act in acts.items():
        command.set_defaults(act=act)
    return parser


class _Vim:
    """The VIM's API as the command uses it."""

    def __init__(self, env: Mapping[str, str], out: Callable[[str], None]) -> None:
        self._client = Client(env, "nfv")
        self._out = out

    def ask(self, method: str, *path: str, body: Any = None) -> dict[str, Any] | None:
        """Return the body of the answer; None where there is nothing, or what was wrong has been told."""
        status, answer = self._client.answer(method, *_PATH, *path, body=body)
        if status < 400:
            return dict(json.loads(answer)) if answer else {}
        if status == 404:
            return None
        if status == 409:
            raise CommandError("Operation failed: conflict detected")
        if status == 403:
            raise CommandError("Authorization failed")
        reason = str(json.loads(answer).get("faultstring") or "").rstrip(".")
        self._out(f"Operation failed: {reason}\n")
        return None

    def strategy(self, method: str, *path: str, body: Any = None) -> dict[str, Any] | None:
        """Return the strategy that the answer has."""
        answer = self.ask(method, *path, body=body)
        return answer["strategy"] if answer else None


def _create(vim: _Vim, given: argparse.Namespace) -> str:
    body = {
        "default-instance-action": given.instance_action,
        "controller-apply-type": given.controller_apply_type,
        "storage-apply-type": given.storage_apply_type,
        "worker-apply-type": given.worker_apply_type,
        "alarm-restrictions": given.alarm_restrictions,
    }
    if given.max_parallel_worker_hosts is not None:
        body["max-parallel-worker-hosts"] = given.max_parallel_worker_hosts
    made = vim.strategy("POST", body=body)
    if made is None:
        raise CommandError("Strategy creation failed")
    return _shown(made)


def _delete(vim: _Vim, given: argparse.Namespace) -> str:
    if vim.ask("DELETE", body={"force": given.force}) is None:
        raise CommandError("Nothing to delete")
    return "Strategy deleted\n"


def _apply(vim: _Vim, given: argparse.Namespace) -> str:
    there = vim.strategy("GET")
    if there is None:
        raise CommandError("No strategy available. Nothing to apply.")
    if there["state"] == "applying":
        raise CommandError("Strategy already applied.")
    if there["state"] != "ready-to-apply":
        raise CommandError(f"Strategy cannot be applied. {there['state']} is not a valid state.")
    body = {"action": "apply-all"}
    if given.stage_id is not None:
        body = {"action": "apply-stage", "stage-id": given.stage_id}
    applied = vim.strategy("POST", "actions", body=body)
    if applied is None:
        stage = "" if given.stage_id is None else f"stage {given.stage_id} "
        raise CommandError(f"Strategy {stage}apply failed")
    return _shown(applied)


def _abort(vim: _Vim, given: argparse.Namespace) -> str:
    aborted = vim.strategy("POST", "actions", body={"action": "abort-stage", "stage-id": given.stage_id})
    if aborted is None:
        stage = "" if given.stage_id is None else f"stage {given.stage_id} "
        raise CommandError(f"Strategy {stage}abort failed")
    return _shown(aborted)


def _show(vim: _Vim, given: argparse.Namespace) -> str:
    there = vim.strategy("GET")
    if there is None:
        return "No strategy available\n"
    return _shown(there, details=given.details, active=given.active)


# -- what is printed ----------------------------------------------------------------------------


def _shown(strategy: Mapping[str, Any], *, details: bool = False, active: bool = False) -> str:
    parallel = strategy["worker-apply-type"] == "parallel"
    lines = [
        _line(2, "strategy-uuid", strategy["uuid"]),
        *_lines(2, strategy, ("controller-apply-type", "storage-apply-type", "worker-apply-type")),
        *(_lines(2, strategy, ("max-parallel-worker-hosts",)) if parallel else ()),
        *_lines(2, strategy, ("default-instance-action", "alarm-restrictions", "current-phase")),
        _line(2, "current-phase-completion", f"{strategy['current-phase-completion-percentage']}%"),
        _line(2, "state", strategy["state"]),
    ]
    phases = {name: strategy[f"{name}-phase"] for name in ("build", "apply", "abort")}
    if details or active:
        for phase in phases.values():
            if phase["total-stages"] and (details or phase["inprogress"]):
                lines += _phase(phase, active=active)
    else:
        lines += _result(phases, strategy["current-phase"])
    return "Strategy Firmware Update Strategy:\n" + "".join(f"{line}\n" for line in lines)


def _result(phases: Mapping[str, Mapping[str, Any]], current: str) -> list[str]:
    """Return how the current phase stands; of an abort also what it aborts."""
    phase = phases[current]
    lines = []
    if phase["inprogress"]:
        lines.append(_line(2, "inprogress", "true"))
    for name in ("apply", "abort") if current == "abort" else (current,):
        if name != current or current == "abort" or not phase["inprogress"]:
            unknown = name == "abort" and phase["inprogress"]
            lines.append(_line(2, f"{name}-result", "" if unknown else phases[name]["result"]))
            lines.append(_line(2, f"{name}-reason", "" if unknown else phases[name]["reason"]))
    return lines


def _phase(phase: Mapping[str, Any], *, active: bool) -> list[str]:
    lines = [f"  {phase['phase-name']}-phase:"]
    lines += _lines(4, phase, ("total-stages", "current-stage", "stop-at-stage"))
    lines.append(_line(4, "timeout", f"{phase['timeout']} seconds"))
    lines.append(_line(4, "completion-percentage", f"{phase['completion-percentage']}%"))
    lines += _times(4, phase)
    lines.append("    stages:")
    for stage in phase["stages"]:
        if active and not stage["inprogress"]:
            continue
        lines += _lines(8, stage, ("stage-id", "stage-name", "total-steps", "current-step"))
        lines.append(_line(8, "timeout", f"{stage['timeout']} seconds"))
        lines += _times(8, stage)
        lines.append("        steps:")
        for step in stage["steps"]:
            if not active or step["result"] not in ("initial", "success"):
                lines += [*_step(step), ""]
        lines.append("")
    return lines


def _times(indent: int, part: Mapping[str, Any]) -> list[str]:
    begun = _lines(indent, part, ("start-date-time",))
    if part["inprogress"]:
        return [*begun, _line(indent, "inprogress", "true")]
    return begun + _lines(indent, part, ("end-date-time", "result", "reason"))


def _step(step: Mapping[str, Any]) -> list[str]:
    names = ("entity-type", "entity-names", "entity-uuids")
    return [
        *_lines(12, step, ("step-id", "step-name")),
        *_lines(12, step, [name for name in names if step[name]]),
        _line(12, "timeout", f"{step['timeout']} seconds"),
        *_lines(12, step, [name for name in ("start-date-time", "end-date-time") if step[name]]),
        *_lines(12, step, ("result", "reason")),
    ]


def _lines(indent: int, part: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    return [_line(indent, name, part[name]) for name in names]


def _line(indent: int, name: str, value: Any) -> str:
    return " " * indent + f"{name}:".ljust(_COLUMN - indent) + str(value)

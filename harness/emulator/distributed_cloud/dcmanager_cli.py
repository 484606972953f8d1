"""The command `dcmanager` of a system controller: requests, tables and errors of section 5.4.

It has the commands about subclouds, firmware strategies and steps. Columns, words of its complaints and exit
codes that the fact sheet does not state are those of the public client. Inferred: what it says of a command
that it does not know. Of the forms, csv and yaml are not there; (un)manage sends JSON, not a form.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Final

from harness.emulator.distributed_cloud.cli_output import FORMATS, listed, shown
from harness.emulator.distributed_cloud.cli_parser import Parser, parser_of
from harness.emulator.programs.base import Invocation, ProgramExit
from harness.emulator.starlingx.cli_client import Client, CommandError

_TYPE: Final = {"type": "firmware"}
_STAGES: Final = {1: "Create", 2: "Apply", 3: "Complete"}
_NO_URL: Final = (
    "You must provide an auth url via either --os-auth-url or env[OS_AUTH_URL] or specify an auth_system "
    "which defines a default url with --os-auth-system or env[OS_AUTH_SYSTEM]"
)
_GLOBAL: Final = {
    "--os-auth-url": "OS_AUTH_URL",
    "--os-username": "OS_USERNAME",
    "--os-password": "OS_PASSWORD",
    "--os-project-name": "OS_PROJECT_NAME",
    "--os-endpoint-type": "OS_ENDPOINT_TYPE",
    "--os-region-name": "OS_REGION_NAME",
}
#: Column -> key of the answer.
Columns = Mapping[str, str]
_STRATEGY: Final[Columns] = {
    "strategy type": "type", "subcloud apply type": "subcloud-apply-type",
    "max parallel subclouds": "max-parallel-subclouds", "stop on failure": "stop-on-failure",
    "state": "state", "created_at": "created-at", "updated_at": "updated-at",
}  # fmt: skip
_STEP: Final[Columns] = {
    "cloud": "cloud", "stage": "stage", "state": "state", "details": "details", "started_at": "started-at",
    "finished_at": "finished-at",
}  # fmt: skip
_STEP_DETAIL: Final = {**_STEP, "created_at": "created-at", "updated_at": "updated-at"}
_SUBCLOUD: Final[Columns] = {
    "id": "id", "name": "name", "management": "management-state", "availability": "availability-status",
    "deploy status": "deploy-status", "sync": "sync_status", "backup status": "backup-status",
    "prestage status": "prestage-status",
}  # fmt: skip
_SUBCLOUD_DETAIL: Final[Columns] = {
    "id": "id", "name": "name", "description": "description", "location": "location",
    "software_version": "software-version", "management": "management-state",
    "availability": "availability-status", "deploy_status": "deploy-status",
    "management_subnet": "management-subnet", "management_start_ip": "management-start-ip",
    "management_end_ip": "management-end-ip", "management_gateway_ip": "management-gateway-ip",
    "systemcontroller_gateway_ip": "systemcontroller-gateway-ip", "group_id": "group_id",
    "peer_group_id": "peer_group_id", "created_at": "created-at", "updated_at": "updated-at",
    "backup_status": "backup-status", "backup_datetime": "backup-datetime",
    "prestage_status": "prestage-status", "prestage_versions": "prestage-versions",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Dcmanager:
    """dcmanager's API as the command uses it."""

    client: Client
    out: Callable[[str], None]

    def ask(self, method: str, *path: str, query: Mapping[str, str] | None = None, body: Any = None) -> Any:
        """Return the body of the answer. :raises CommandError: with the text of its page."""
        status, answer = self.client.answer(
            method, *path, query=query, body=body, accept="*/*", agent="python-requests/2.28.1"
        )
        if status == 200:
            return json.loads(answer)
        raise CommandError(_text(answer))


class _Body(HTMLParser):
    """Collects the text in the body of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.text: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            self.text = ""

    def handle_data(self, data: str) -> None:
        if self.text is not None:
            self.text += data


def _text(page: bytes) -> str:
    """Return the text of an error's page behind its first line; what is no page as Python shows it."""
    body = _Body()
    body.feed(page.decode("utf-8", "replace"))
    lines = (body.text or "").strip().split("\n")[1:]
    return " ".join(line.strip() for line in lines) if lines else repr(page)


def run_dcmanager(run: Invocation, release: str) -> int:
    """Run the command; return its exit code."""
    env = {name: value for name, value in run.env.items() if name != "OS_REGION_NAME"}
    env.setdefault("OS_ENDPOINT_TYPE", "internalURL")
    words = run.argv[1:]
    while words and words[0].startswith("--os-"):
        name, equals, value = words.pop(0).partition("=")
        if name in _GLOBAL and (equals or words):
            env[_GLOBAL[name]] = value if equals else words.pop(0)
    name = " ".join(words[:2])
    command = _COMMANDS.get(name)
    try:
        if (told := _help_asked(run, words)) is not None:
            run.out(told)
            return 0
        if not env.get("OS_AUTH_URL"):
            raise CommandError(_NO_URL)
        if not env.get("OS_PASSWORD"):
            raise CommandError("You must provide a password via --os-password env[OS_PASSWORD]")
        client = _log_in(env)
        if command is None:
            run.err(f"ERROR (app) Unknown command {words}\n")
            return 2
        given = _parser(run, name, command).parse_args(words[2:])
        run.out(command.act(_Dcmanager(client, run.out), given))
    except ProgramExit as end:
        return end.status
    except CommandError as error:
        run.err(f"ERROR (app) {error}\n")
        return 1
    return 0


def _log_in(env: Mapping[str, str]) -> Client:
    try:
        return Client(env, "dcmanager")
    except CommandError as error:
        if str(error) != "Invalid Identity credentials.":
            raise
        raise CommandError("The request you have made requires authentication. (HTTP 401)") from error


# -- what the commands do -----------------------------------------------------------------------


def _create(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    _check_group(given)
    body = {
        "subcloud-apply-type": given.subcloud_apply_type,
        "max-parallel-subclouds": given.max_parallel_subclouds,
        "stop-on-failure": "true" if given.stop_on_failure else None,
        "cloud_name": given.cloud_name,
        "subcloud_group": given.group,
    }
    body = {name: value for name, value in body.items() if value is not None} | _TYPE
    return _one(_STRATEGY, cloud.ask("POST", "sw-update-strategy", "", body=body), given)


def _check_group(given: argparse.Namespace) -> None:
    if not given.group:
        return
    if given.cloud_name:
        raise CommandError("The cloud_name and group options are mutually exclusive.")
    if given.subcloud_apply_type:
        raise CommandError("The --subcloud-apply-type is not supported when --group option is applied.")
    if given.max_parallel_subclouds:
        raise CommandError(
            "The --max-parallel-subclouds options is not supported when --group option is applied."
        )


def _show(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    return _one(_STRATEGY, cloud.ask("GET", "sw-update-strategy", query=_TYPE), given)


def _delete(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    return _one(_STRATEGY, cloud.ask("DELETE", "sw-update-strategy", query=_TYPE), given)


def _act(cloud: _Dcmanager, given: argparse.Namespace, action: str) -> str:
    answer = cloud.ask("POST", "sw-update-strategy", "actions", query=_TYPE, body={"action": action})
    return _one(_STRATEGY, answer, given)


def _apply(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    return _act(cloud, given, "apply")


def _abort(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    return _act(cloud, given, "abort")


def _steps(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    return _list(
        _STEP, map(_staged, cloud.ask("GET", "sw-update-strategy", "steps")["strategy-steps"]), given
    )


def _step(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    answer = cloud.ask("GET", "sw-update-strategy", "steps", given.cloud_name)
    return _one(_STEP_DETAIL, _staged(answer), given)


def _staged(step: Mapping[str, Any]) -> dict[str, Any]:
    return {**step, "stage": _STAGES.get(step["stage"], step["stage"])}


def _subclouds(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    found = cloud.ask("GET", "subclouds", "")["subclouds"]
    hidden = () if given.all else ("secondary", "secondary-failed")
    basic = not (given.columns or given.detail)
    columns = _SUBCLOUD if basic else _with_sync(_SUBCLOUD_DETAIL)
    return _list(columns, (entry for entry in found if entry["deploy-status"] not in hidden), given)


def _with_sync(columns: Columns) -> Columns:
    """Return the columns with the one of the sync status behind that of the deployment."""
    names = list(columns)
    at = names.index("deploy_status") + 1
    return {name: columns.get(name, "sync_status") for name in (*names[:at], "sync", *names[at:])}


def _subcloud(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    more = ("detail",) if given.detail else ()
    return _subcloud_table(cloud.ask("GET", "subclouds", given.subcloud, *more), given, region=True)


def _manage(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    return _managed(cloud, given, "managed", "manage")


def _unmanage(cloud: _Dcmanager, given: argparse.Namespace) -> str:
    return _managed(cloud, given, "unmanaged", "unmanage")


def _managed(cloud: _Dcmanager, given: argparse.Namespace, state: str, verb: str) -> str:
    try:
        answer = cloud.ask("PATCH", "subclouds", given.subcloud, body={"management-state": state})
    except CommandError as error:
        cloud.out(f"{error}\n")
        raise CommandError(f"Unable to {verb} subcloud {given.subcloud}") from error
    return _subcloud_table(answer, given, region=False)


def _subcloud_table(found: Mapping[str, Any], given: argparse.Namespace, *, region: bool) -> str:
    """Show one subcloud: a line more for each endpoint, and for what is known of it besides."""
    columns, answer = dict(_SUBCLOUD_DETAIL), dict(found)
    for entry in found["endpoint_sync_status"]:
        name = f"{entry['endpoint_type']}_sync_status"
        columns[name], answer[name] = name, entry["sync_status"]
    for name, unknown in (("oam_floating_ip", "unavailable"), ("deploy_config_sync_status", "unknown")):
        if found.get(name, unknown) != unknown:
            columns[name] = name
    if region:
        columns["region_name"] = "region-name"
    return _one(columns, answer, given)


# -- forms --------------------------------------------------------------------------------------


def _one(columns: Columns, answer: Mapping[str, Any], given: argparse.Namespace) -> str:
    names = _picked(columns, given)
    return shown(names, [answer.get(columns[name]) for name in names], given.formatter)


def _list(columns: Columns, answers: Any, given: argparse.Namespace) -> str:
    names = _picked(columns, given)
    rows = [[answer.get(columns[name]) for name in names] for answer in answers]
    return listed(names, rows or [["<none>"] * len(names)], given.formatter)


def _picked(columns: Columns, given: argparse.Namespace) -> Sequence[str]:
    wanted = given.columns or list(columns)
    names = [name for name in columns if name in wanted]
    if not names:
        raise CommandError(
            f"No recognized column names in {given.columns}. Recognized columns are {tuple(columns)}."
        )
    return names


# -- words --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Command:
    """One command: what it does, and the arguments that it has besides those of its form."""

    act: Callable[[_Dcmanager, argparse.Namespace], str]
    arguments: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = ()


_ONE_SUBCLOUD: Final[tuple[tuple[str, ...], dict[str, Any]]] = (("subcloud",), {})
_DETAIL: Final = (("-d", "--detail"), {"action": "store_true"})
_COMMANDS: Final = {
    "fw-update-strategy create": _Command(
        _create,
        (
            (("--subcloud-apply-type",), {"choices": ["parallel", "serial"]}),
            (("--max-parallel-subclouds",), {"type": int}),
            (("--stop-on-failure",), {"action": "store_true"}),
            (("--group",), {}),
            (("cloud_name",), {"nargs": "?"}),
        ),
    ),
    "fw-update-strategy show": _Command(_show),
    "fw-update-strategy apply": _Command(_apply),
    "fw-update-strategy abort": _Command(_abort),
    "fw-update-strategy delete": _Command(_delete),
    "strategy-step list": _Command(_steps),
    "strategy-step show": _Command(_step, ((("cloud_name",), {}),)),
    "subcloud list": _Command(_subclouds, ((("--all",), {"action": "store_true"}), _DETAIL)),
    "subcloud show": _Command(_subcloud, (_ONE_SUBCLOUD, _DETAIL)),
    "subcloud manage": _Command(_manage, (_ONE_SUBCLOUD,)),
    "subcloud unmanage": _Command(_unmanage, (_ONE_SUBCLOUD,)),
}


def _help_asked(run: Invocation, words: Sequence[str]) -> str | None:
    """Return the help or the version that is asked for, for which nobody has to log in; None: neither is.

    :raises CommandError: help is asked for about what is no command.
    """
    if words[:1] == ["--version"]:
        return "dcmanager 1.0\n"
    asked = list(words)
    if asked[:1] == ["help"]:
        asked = [*asked[1:], "--help"]
    if not any(word in ("-h", "--help") for word in (asked or ["-h"])):
        return None
    name = " ".join(asked[:2])
    if name in _COMMANDS:
        return _parser(run, name, _COMMANDS[name]).format_help()
    if asked and not asked[0].startswith("-"):
        raise CommandError(f"'{' '.join(asked[:-1])}' is not a dcmanager command. See 'dcmanager --help'.")
    commands = "".join(f"  {command}\n" for command in sorted((*_COMMANDS, "help")))
    return f"usage: dcmanager [--version] [-h] <command> ...\n\nCommands:\n{commands}"


def _parser(run: Invocation, name: str, command: _Command) -> Parser:
    parser = parser_of(run, f"dcmanager {name}")
    for flags, options in command.arguments:
        parser.add_argument(*flags, **options)
    output = parser.add_argument_group("output formatters")
    output.add_argument("-f", "--format", dest="formatter", choices=FORMATS, default="table")
    output.add_argument("-c", "--column", dest="columns", action="append", default=[], metavar="COLUMN")
    return parser

"""The commands `system` and `fm` of a controller: their options, exit codes and traps (section 2.7)."""

from __future__ import annotations

import getopt
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.emulator.programs.base import Invocation
from harness.emulator.starlingx.cli_alarms import ALARM_COMMANDS
from harness.emulator.starlingx.cli_client import Client, CommandError
from harness.emulator.starlingx.cli_help import VERSION, NoSuchCommand, help_asked, usage_of
from harness.emulator.starlingx.cli_hosts import HOST_COMMANDS
from harness.emulator.starlingx.cli_images import IMAGE_COMMANDS
from harness.emulator.starlingx.cli_services import SERVICE_COMMANDS
from harness.emulator.starlingx.cli_session import FORMATS, Command, Given, Session

_GLOBAL: Final = {
    "--os-username": "OS_USERNAME",
    "--os-password": "OS_PASSWORD",
    "--os-auth-url": "OS_AUTH_URL",
    "--os-region-name": "OS_REGION_NAME",
    "--os-project-name": "OS_PROJECT_NAME",
    "--os-user-domain-name": "OS_USER_DOMAIN_NAME",
    "--os-project-domain-name": "OS_PROJECT_DOMAIN_NAME",
    "--os-endpoint-type": "OS_ENDPOINT_TYPE",
}
#: Of a terminal that does not say how wide it is.
_COLUMNS: Final = 80
#: The releases of 2026 keep tokens in the kernel's keyring, and may ask before they interrupt a service.
_LATEST: Final = ("head", "corrected")
_KEYCTL: Final = "/usr/bin/keyctl"
_NO_CACHE: Final = "CGTSCLIENT_NO_CACHE"
#: Besides what deletes or removes something.
_IMPACTING: Final = (
    "host-swact",
    "host-lock",
    "host-power-off",
    "host-reboot",
    "host-reinstall",
    "host-reset",
)
_CONFIRM_SECONDS: Final = 10.0
_WARNING: Final = (
    "WARNING: This is a high-risk operation that may cause a service interruption or remove critical "
    "resources\n"
    "Do you want to continue? (yes/No): "
)


@dataclass(frozen=True, slots=True)
class _Client:
    """One of the commands. ``service``: of the catalogue, that it asks; ``cached``: it keeps its token."""

    name: str
    service: str
    commands: Mapping[str, Command]
    cached: bool


_SYSTEM: Final = _Client("system", "platform", IMAGE_COMMANDS | HOST_COMMANDS | SERVICE_COMMANDS, True)
_FM: Final = _Client("fm", "faultmanagement", ALARM_COMMANDS, False)


class _UsageError(Exception):
    """The words of the command line are none that it knows."""


def run_system(run: Invocation, release: str, *, confirm_seconds: float = _CONFIRM_SECONDS) -> int:
    """Run `system` as a release has it; return its exit code.

    ``confirm_seconds``: how long it waits for an answer. They are real ones: it is a person who answers.
    """
    return _run(run, _SYSTEM, release, confirm_seconds)


def run_fm(run: Invocation, release: str) -> int:
    """Run `fm` as a release has it; return its exit code."""
    return _run(run, _FM, release, _CONFIRM_SECONDS)


def _run(run: Invocation, client: _Client, release: str, confirm_seconds: float) -> int:
    latest = release in _LATEST
    env, words = dict(run.env), run.argv[1:]
    try:
        words = _globals(words, env, cached=client.cached and latest)
        if words[:1] == ["--version"]:
            run.out(f"{VERSION}\n")
            return 0
        if (told := help_asked(client.name, words, client.commands)) is not None:
            run.out(told)
            return 0
        command = client.commands.get(words[0])
        if command is None:
            raise _UsageError(f"argument <subcommand>: invalid choice: '{words[0]}'")
        impacting = latest and client.cached and _is_impacting(words[0])
        given = _given(command, words[1:], impacting=impacting, earlier=not latest)
    except _UsageError as error:
        run.err(usage_of(client.name))
        run.err(f"{client.name}: error: {error}\n")
        return 2
    except NoSuchCommand as error:
        run.err(f"{error}\n")
        return 1
    if impacting and env.get("CLI_CONFIRMATIONS") == "enabled" and not given.has("--yes"):
        refusal = _refusal(run, confirm_seconds)
        if refusal is not None:
            return refusal
    if client.cached and latest and not env.get(_NO_CACHE) and not run.vfs.exists(_KEYCTL):
        return 0  # an IOError ends it, whatever was asked, and in silence
    options = {name: values for name, values in given.options.items() if name not in ("--nowrap", "--yes")}
    try:
        session = Session(
            run,
            Client(env, client.service),
            release,
            None if given.has("--nowrap") else _width(env),
            broken_lists=_broken_lists(run, release),
        )
        run.out(command.act(session, Given(given.words, options)))
    except CommandError as error:
        run.err(f"{error}\n")
        return 1
    return 0


def _globals(words: Sequence[str], env: dict[str, str], *, cached: bool) -> list[str]:
    """Put the options before the command's name where they belong, into ``env``; return the other words.

    Those begin with the option where it asks for help or for the version.
    """
    left = list(words)
    while left and left[0].startswith("-") and left[0] not in ("-h", "--help", "--version"):
        name, equals, value = left.pop(0).partition("=")
        if name in ("--debug", "-v", "--verbose"):
            continue
        if name == "--no-cache" and cached and not equals:
            env[_NO_CACHE] = "1"
        elif name in _GLOBAL and (equals or left):
            env[_GLOBAL[name]] = value if equals else left.pop(0)
        else:
            raise _UsageError(f"unrecognized arguments: {name}")
    return left


def _given(command: Command, words: Sequence[str], *, impacting: bool, earlier: bool) -> Given:
    long = [
        *command.options,
        *(command.earlier if earlier else ()),
        "nowrap",
        *(("yes",) if impacting else ()),
    ]
    short = command.short + (command.earlier_short if earlier else "")
    try:
        pairs, rest = getopt.gnu_getopt(list(words), short, long)
    except getopt.GetoptError as error:
        raise _UsageError(str(error)) from error
    if len(rest) < command.least:
        raise _UsageError("too few arguments")
    options: dict[str, list[str]] = {}
    for name, value in pairs:
        options.setdefault(name, []).append(value)
    given = Given(rest, options)
    if (form := given.last("--format")) is not None and form not in FORMATS:
        raise _UsageError(
            f"argument --format: invalid choice: '{form}' (choose from 'table', 'yaml', 'value')"
        )
    return given


def _width(env: Mapping[str, str]) -> int:
    columns = env.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() else _COLUMNS


def _is_impacting(name: str) -> bool:
    return "delete" in name or "remove" in name or name in _IMPACTING


def _refusal(run: Invocation, seconds: float) -> int | None:
    """Ask to confirm; return the exit code where nobody does, else None."""
    run.out(_WARNING)
    run.streams.stdout.flush()
    answer = bytearray()
    answered = threading.Event()

    def read() -> None:
        while (byte := run.streams.stdin.read(1)) not in (b"", b"\n"):
            answer.extend(byte)
        if byte:
            answer.extend(byte)
        answered.set()

    with run.host.clock.waiting():
        threading.Thread(target=read, name="confirmation", daemon=True).start()
        in_time = answered.wait(seconds)
    if not in_time:
        run.out("\nNo response received within the time limit.\n")
    elif not answer:
        run.err("EOF when reading a line\n")
    elif answer.decode("utf-8", "replace").rstrip("\n").lower() == "yes":
        return None
    else:
        run.out("Operation cancelled by the user\n")
    return 1


def _broken_lists(run: Invocation, release: str) -> bool:
    """Whether the host has the table library that is pinned, and is not the system that it was pinned for."""
    if release not in _LATEST or not run.vfs.glob("/usr/lib/python3/dist-packages/prettytable-0.*"):
        return False
    try:
        return b"VERSION_CODENAME=bullseye" not in run.vfs.read("/etc/os-release").splitlines()
    except OSError:
        return True

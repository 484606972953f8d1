"""How a system says no: its error bodies, JSON in JSON, and the texts of its commands, as typed errors."""

from __future__ import annotations

import json
import re
from typing import Final

from harness.errors import (
    ControlPlaneError,
    HarnessError,
    InfrastructureError,
    LoginRefusedError,
    NoSuchRecordError,
    NotActiveError,
    NotOfferedError,
)
from harness.hosts.commands import OPENRC

#: The texts by which sysinv and its command say that they do not know what was named (sections 2.1 to 2.7).
_NO_SUCH: Final = re.compile(
    r"could not be found|does not exist|No device label (?:entry )?found for|(?:host|devices?) not found"
    r"|PCI devices? not found|(?:[Ss]ubcloud|[Ss]trategy|strategy step)\b[^:]*(?:: '[\w-]+')? not found"
)
#: A bad request of dcmanager's that names what there is not is refused, and no question for that.
_REFUSED: Final = re.compile(r"Unable to (?:create|apply|abort|delete) strategy")
#: The file of the login, where it is not the active controller's, or where there is none (section 2.7).
_NOT_ACTIVE: Final = re.compile(
    rf"can only be loaded from the active controller|{re.escape(OPENRC)}: No such file or directory"
)
#: The library that draws the tables is too old (trap 3 of section 2.7).
_OLD_TABLES: Final = "_stringify_row() takes"
_TAG: Final = re.compile(r"<[^>]*>")
_LONGEST: Final = 400


def fault_text(body: str) -> tuple[str, bool]:
    """Return the text of an error's body, and whether the API itself wrote it.

    It is JSON in JSON (``error_message``), the bare form (``error``) of Keystone and the framework, or what
    dcmanager's makes of it: ``description``, or ``message``, where it follows an explanation of the status.
    """
    try:
        answer = json.loads(body)
        if "error_message" in answer:
            inner = answer["error_message"]
            inner = json.loads(inner) if isinstance(inner, str) else inner
            return str(inner["faultstring"]).strip(), True
        if "title" in answer:
            text = answer.get("description") or "".join(str(answer.get("message", "")).split("\n")[1:])
            return " ".join(text.split())[:_LONGEST] or str(answer["title"]), bool(text.strip())
        return str(answer["error"]["message"]).strip(), False
    except (ValueError, KeyError, TypeError):
        return " ".join(_TAG.sub(" ", body[:4000]).split())[:_LONGEST], False


def answered_error(name: str, what: str, status: int, body: str, *, names: bool) -> HarnessError:
    """Return the error that an answer of ``status`` to ``what`` is.

    :param name: the controller's. :param names: whether ``what`` names something by its uuid or name.
    """
    text, own = fault_text(body)
    if status in (404, 405) and not own:
        return NotOfferedError(
            f"{name} has no such route: it answered {status} to {what}.",
            hint="Its release may be older than this part of the API.",
        )
    if names and own and (status == 404 or _NO_SUCH.search(text)):
        return NoSuchRecordError(f"{name}: {text}", hint="See what there is: images, labels, hosts, devices.")
    if status == 403:
        return ControlPlaneError(
            f"{name} does not permit {what}: {text}", hint="The user needs the role admin or configurator."
        )
    if status in (502, 503, 504):
        return InfrastructureError(f"{name} answered {status} to {what}: {text}")
    return ControlPlaneError(f"{name} refuses {what} ({status}): {text}")


def command_error(name: str, host: str, what: str, code: int, said: str) -> HarnessError:
    """Return the error that a command which ended with ``code`` on ``host`` is.

    ``said``: what it, and the file of the login, printed on stderr.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    text = (lines or ["it said nothing"])[-1][:_LONGEST]
    if any(_NOT_ACTIVE.search(line) for line in lines):
        return NotActiveError(
            f"`{what}` of {name} has no login on {host}: {text}.",
            hint=f"Is it the active controller? Only there does {OPENRC} give the password.",
        )
    if code == 127:
        return NotOfferedError(
            f"{name} has no command `{what.split()[0]}`: {text}",
            hint="Is it the host of an active controller?",
        )
    if code == 2 and (
        "invalid choice" in text or "unrecognized arguments" in text or "not recognized" in text
    ):
        return NotOfferedError(
            f"The release of {name} has no such command: {text}", hint="Use the API, or a later release."
        )
    if "Invalid Identity credentials" in text:
        return LoginRefusedError(
            f"`{what}` of {name} was not let in: {text}",
            hint="See /etc/platform/openrc of the controller; a few wrong logins lock the account.",
        )
    if "You must provide" in text:
        return InfrastructureError(
            f"`{what}` of {name} has no login: {text}",
            hint="Is /etc/platform/openrc there, and may the user read it? Is it the active controller?",
        )
    if _OLD_TABLES in text:
        return InfrastructureError(
            f"`{what}` cannot draw its tables on {host}: {text}",
            hint="Its Python needs prettytable of version 3 or later; or ask the API.",
        )
    if _NO_SUCH.search(text) and not _REFUSED.search(text):
        return NoSuchRecordError(f"{name}: {text}", hint="See what there is: images, labels, hosts, devices.")
    return ControlPlaneError(f"`{what}` of {name} failed ({code}): {text}")

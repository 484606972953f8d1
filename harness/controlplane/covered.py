"""What a permit for a change may cover: the one command, or the one request, that asks for that change."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from harness.controlplane.changes import Change
from harness.controlplane.cloud_protocol import StrategyChange
from harness.errors import RefusedError
from harness.hosts.commands import OPENRC, plain_words

#: Act -> the command of `system` that asks for it.
COMMANDS: Final[Mapping[str, str]] = {
    "image-upload": "device-image-upload",
    "image-apply": "device-image-apply",
    "image-remove": "device-image-remove",
    "image-delete": "device-image-delete",
    "label-assign": "host-device-label-assign",
    "label-remove": "host-device-label-remove",
    "device-modify": "host-device-modify",
    "host-update": "host-device-image-update",
    "host-abort": "host-device-image-update-abort",
    "host-lock": "host-lock",
    "host-unlock": "host-unlock",
    "host-reboot": "host-reboot",
}
_STRATEGY: Final = "strategy-"
_ONE: Final = "[^/?#]+"
#: Act -> the request of an API that asks for it: method, form of the path, and of the body.
_REQUESTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "image-apply": ("PATCH", r"/device_images/(?P<target>[^/?#]+)\?action=apply", r".*"),
    "image-remove": ("PATCH", r"/device_images/(?P<target>[^/?#]+)\?action=remove", r".*"),
    "image-delete": ("DELETE", r"/device_images/(?P<target>[^/?#]+)", "null"),
    "label-assign": ("POST", r"/device_labels\?overwrite=(?:True|False)", r".*"),
    "label-remove": ("DELETE", rf"/device_labels/{_ONE}", "null"),
    "device-modify": ("PATCH", rf"/pci_devices/{_ONE}", r'.*"/enabled".*'),
    "host-update": ("POST", rf"/ihosts/{_ONE}/device_image_update", "null"),
    "host-abort": ("POST", rf"/ihosts/{_ONE}/device_image_update_abort", "null"),
    "host-lock": ("PATCH", rf"/ihosts/{_ONE}", r'.*"value": "(?:force-)?lock".*'),
    "host-unlock": ("PATCH", rf"/ihosts/{_ONE}", r'.*"value": "(?:force-)?unlock".*'),
    "host-reboot": ("PATCH", rf"/ihosts/{_ONE}", r'.*"value": "(?:force-)?reboot".*'),
    "strategy-create": ("POST", "/sw-update-strategy/", r".*"),
    "strategy-delete": ("DELETE", r"/sw-update-strategy\?type=firmware", "null"),
    "strategy-apply": ("POST", r"/sw-update-strategy/actions\?type=firmware", r'\{"action": "apply"\}'),
    "strategy-abort": ("POST", r"/sw-update-strategy/actions\?type=firmware", r'\{"action": "abort"\}'),
}
#: Where the API takes an image.
IMAGES: Final = "/device_images"
#: Where an image is put on a controller for its command.
UPLOADED: Final = re.compile(r"/tmp/hil-[0-9a-f-]+\.bin")
_SCRIPT: Final = re.compile(
    rf'(?:\[ "\$\(sha256sum <(?P<file>{UPLOADED.pattern})\)" = "(?P<digest>[0-9a-f]{{64}})  -" \] '
    rf"\|\| exit [0-9]+; )?source {re.escape(OPENRC)} >&2; CLI_CONFIRMATIONS=disabled (?P<line>[^\n]+)"
)
_REGION: Final = "--os-region-name"


def check_covered(change: Change | StrategyChange, words: Sequence[str]) -> None:
    """Return if ``words`` are a command, or a request (method, path, body), that asks for ``change`` alone.

    :raises RefusedError: they ask for something else, or for more.
    """
    said = plain_words(words)
    if said[:1] == ["bash"]:
        covered = _is_command(change, said)
    elif said[:1] == ["rm"]:
        mine = change.act == "image-upload" and len(said) == 3
        covered = mine and said[1] == "-f" and UPLOADED.fullmatch(said[2]) is not None
    else:
        covered = _is_request(change, said)
    if not covered:
        raise RefusedError(
            f"The permit for {change.act} does not cover {' '.join(said)[:160]!r}; nothing was changed."
        )


def _is_command(change: Change | StrategyChange, said: list[str]) -> bool:
    script = _SCRIPT.fullmatch(said[2]) if len(said) == 3 and said[1] == "-c" else None
    if script is None:
        return False
    try:
        line = shlex.split(script["line"])
    except ValueError:  # a quotation that is not closed
        return False
    if shlex.join(line) != script["line"]:
        return False  # the shell would see more in it than words
    if isinstance(change, StrategyChange):
        return line[:3] == ["dcmanager", "fw-update-strategy", change.act.removeprefix(_STRATEGY)]
    rest = line[3:] if line[1:2] == [_REGION] else line[1:]
    if line[0] != "system" or rest[:1] != [COMMANDS[change.act]]:
        return False
    if change.image is not None:
        digest = hashlib.sha256(change.image.content).hexdigest()
        return script["digest"] == digest and rest[1:2] == [script["file"]]
    return script["file"] is None and change.target in rest[1:]


def _is_request(change: Change | StrategyChange, said: list[str]) -> bool:
    if len(said) != 3 or change.act not in _REQUESTS:
        return False
    method, path, body = _REQUESTS[change.act]
    found = re.fullmatch(path, said[1])
    if said[0] != method or found is None or re.fullmatch(body, said[2]) is None:
        return False
    try:
        json.loads(said[2])
    except ValueError:
        return False
    target = found.groupdict().get("target")
    return target is None or (isinstance(change, Change) and target == quote(change.target, safe=""))

"""The exclusive hold on a card: a lock on the card's own host that dies with the process that holds it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from harness.errors import InfrastructureError
from harness.hosts.protocol import CommandResult, Host

#: How `flock` says that someone else holds the lock; no tool of the cards uses this exit code.
BUSY = 75
LOCK_FOLDER = "/run/lock"

_SHELL_COMPLAINT = re.compile(r"^(?:\S*/)?(?:flock|sh|dash|bash|env): .+$", re.MULTILINE)


def lock_path(identity: str, folder: str = LOCK_FOLDER) -> str:
    """Return the lock file of the card ``identity`` (its MAC, or its address where it has none)."""
    return f"{folder}/hil-{re.sub('[^0-9a-zA-Z.]', '-', identity.lower())}.lock"


def held(argv: Sequence[str], identity: str, folder: str = LOCK_FOLDER) -> list[str]:
    """Return the command that runs ``argv`` while it holds the card, or ends with :data:`BUSY`.

    `flock` becomes the command itself (``-F``), so that the lock ends when the command does, however
    that happens, and a signal to the process reaches the command.
    """
    return ["flock", "-F", "-n", "-E", str(BUSY), lock_path(identity, folder), *argv]


def check_begun(host: Host, result: CommandResult, card: str, address: str) -> None:
    """Return if the command of :func:`held` was run at all.

    :param card: the card's name, for messages. :param address: the PCI address that a holder has in
        its command line.
    :raises InfrastructureError: another process holds the card, or the command could not be started.
    """
    if result.exit_code == BUSY:
        raise InfrastructureError(
            f"{card} is in use: {holder(host, address)} holds it on {host.name}; nothing was changed.",
            hint="Wait for it to end. Two updaters on one card are never allowed.",
        )
    complaint = _SHELL_COMPLAINT.search(result.stderr)
    # `flock` ends with 64..71 of its own, the shell with 126 and 127; either way the tool never ran.
    if complaint and (result.exit_code in (126, 127) or complaint[0].split(":")[0].endswith("flock")):
        raise InfrastructureError(
            f"The tool for {card} could not be started on {host.name}: {complaint[0].strip()}.",
            hint="Is it installed there? `tools` in the inventory says where it is, if not in PATH.",
        )


def holder(host: Host, address: str) -> str:
    """Return who works on the card at ``address``, for people; never fails."""
    try:
        found = host.run(["pgrep", "-a", "-f", address], deadline=5.0)
    except InfrastructureError:
        return "another process"
    for line in found.stdout.splitlines():
        pid, _, command = line.partition(" ")
        words = command.split()
        if (
            pid.isdigit()
            and words
            and not {"pgrep", "flock"} & {word.rsplit("/", 1)[-1] for word in words[:3]}
        ):
            return f"process {pid} ({shlex.join(words)[:160]})"
    return "another process"

"""The exclusive hold on a card: a lock on the card's own host that dies with the process that holds it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from harness.errors import InfrastructureError, RefusedError
from harness.hosts.protocol import CommandResult, Host

#: How `flock` says that someone else holds the lock; no tool of the cards uses this exit code.
BUSY = 75
LOCK_FOLDER = "/run/lock"

_SHELL_COMPLAINT = re.compile(r"^(?:\S*/)?(?:flock|sh|dash|bash|env): .+$", re.MULTILINE)
_LOCK_WORD = re.compile(r"/\S*/hil-[0-9A-Za-z.-]+\.lock")


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
    :raises RefusedError: another process holds the card. :raises InfrastructureError: the command could not
        be started.
    """
    if result.exit_code == BUSY:
        lock = _LOCK_WORD.search(" ".join(result.argv))
        who = holder(host, lock[0] if lock else "", address)
        raise RefusedError(
            f"{card} is in use: {who} holds it on {host.name}; nothing was changed.",
            hint="Wait for it to end. Two updaters on one card are never allowed.",
        )
    complaint = _SHELL_COMPLAINT.search(result.stderr)
    # `flock` ends with 64..71 of its own, the shell with 126 and 127; either way the tool never ran.
    if complaint and (result.exit_code in (126, 127) or complaint[0].split(":")[0].endswith("flock")):
        raise InfrastructureError(
            f"The tool for {card} could not be started on {host.name}: {complaint[0].strip()}.",
            hint="Is it installed there? `tools` in the inventory says where it is, if not in PATH.",
        )


def holder(host: Host, lock: str, address: str) -> str:
    """Return who holds ``lock``, or at least who works on the card at ``address``; never fails."""
    try:
        pid = _lock_owner(host, lock)
        if pid is not None:
            words = host.read(f"/proc/{pid}/cmdline", deadline=5.0).decode(errors="replace").split("\0")
            return f"process {pid} ({shlex.join(filter(None, words))[:160]})"
        found = host.run(["pgrep", "-a", "-f", address], deadline=5.0)
    except (InfrastructureError, OSError):
        return "another process"
    for line in found.stdout.splitlines():
        number, _, command = line.partition(" ")
        names = {word.rsplit("/", 1)[-1] for word in command.split()[:3]}
        if number.isdigit() and names and not names & {"pgrep", "flock"}:
            return f"process {number} ({command[:160]})"
    return "another process"


def held_by(host: Host, identity: str, folder: str = LOCK_FOLDER) -> int | None:
    """Return the process that holds the card ``identity`` on ``host``; None where none does, or none is seen.

    :raises InfrastructureError: the host cannot be asked.
    """
    return _lock_owner(host, lock_path(identity, folder))


def _lock_owner(host: Host, lock: str) -> int | None:
    """Return the process that the kernel has as owner of ``lock``; None where that cannot be told."""
    inode = host.run(["stat", "-c", "%i", lock], deadline=5.0).stdout.strip()
    table = host.run(["cat", "/proc/locks"], deadline=5.0).stdout
    row = re.compile(rf"\d+: FLOCK +ADVISORY +WRITE +([1-9]\d*) +[0-9a-f]+:[0-9a-f]+:{inode} .*")
    owners = (
        [match[1] for match in map(row.fullmatch, table.splitlines()) if match] if inode.isdigit() else []
    )
    return int(owners[0]) if len(owners) == 1 else None

"""Checks of a host that cards are flashed on: its account, programs, space, clock; asked in one exchange."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from harness.errors import InfrastructureError
from harness.health.checks import Check, bad, failed, ok, warn
from harness.health.host_programs import program_checks, programs_question
from harness.hosts.protocol import Asked, CommandResult
from harness.hosts.protocol import Host as Reached
from harness.inventory.model import Host

#: The largest image that a card takes, header included (n3000.md 4.3); room for it twice is plenty.
LARGEST_IMAGE: Final = 0x3800000
#: Seconds. What hosts log is put in order by their clocks; and those that are minutes apart refuse each
#: other's tokens and certificates.
SKEW: Final = 5.0
_NUMBER: Final = re.compile(r"[0-9]{1,15}")
_KERNEL: Final = "/proc/sys/kernel/osrelease"


@dataclass(frozen=True, slots=True)
class Moment:
    """When a host was asked: seconds since the epoch by this machine's clock, before and after."""

    began: float
    ended: float


def host_questions(entry: Host) -> list[Asked]:
    """Return what is asked of a host; each only reads."""
    commands = [
        ["cat", _KERNEL],
        ["id", "-u"],
        ["date", "-u", "+%s"],
        ["df", "-P", "-k", entry.upload_dir],
        programs_question(entry),
        # The drivers of hosts know the path of a tool by its name.
        ["fpgasupdate", "--version"],
    ]
    return [Asked(tuple(command)) for command in commands]


def tool_version(results: Sequence[CommandResult]) -> str | None:
    """Return what the flashing tool says of itself; None where it is not on the host, or does not say."""
    said = results[5]
    lines = [line.strip() for line in said.text.splitlines() if line.strip()]
    return lines[-1] if said.exit_code == 0 and lines else None


def host_checks(
    entry: Host, host: Reached, results: Sequence[CommandResult], moment: Moment
) -> Iterator[Check]:
    """Yield what is found of a host from the answers to :func:`host_questions`.

    :param host: asked once more where the vendor's tools are not on the host itself, and where sudo is to let
        the login do what needs root.
    :raises InfrastructureError: it does not answer that.
    """
    kernel, account, clock, space, which, _ = results
    yield ok("kernel", kernel.stdout.strip() or "it does not say its release")
    yield _account(entry, host, account)
    if entry.emulated is None:  # the clock of an emulated lab is its own
        yield clock_check(clock, moment)
    if entry.cards:
        yield from program_checks(entry, host, which, tool_version(results))
        yield space_check(entry.upload_dir, space)


def _account(entry: Host, host: Reached, said: CommandResult) -> Check:
    """Return who is logged in; where sudo is to make that root, it is asked for what only root may read."""
    number = said.stdout.strip()
    if number == "0":
        return ok("account", "root")
    user = f"{entry.ssh.user if entry.ssh else 'the user'} (uid {number or 'unknown'})"
    if entry.ssh is not None and entry.ssh.sudo is not None:
        try:
            host.run(["dmesg"])
        except InfrastructureError as error:
            return failed("account", error)
        return ok("account", f"{user}, and sudo for what needs root")
    if not entry.cards:
        return ok("account", f"{user}, not root")
    return warn(
        "account",
        f"{user} is not root, and the vendor's tools write to files of root's",
        "Give the host's `ssh` `sudo: true` in the inventory, or log in as root.",
    )


def clock_check(said: CommandResult, moment: Moment) -> Check:
    """Return how far a host's clock is from this machine's, as far as the exchange shows it."""
    text = said.stdout.strip()
    if _NUMBER.fullmatch(text) is None:
        return warn("clock", f"it does not say its time: {said.text.strip()[:80]!r}", "See: date -u +%s")
    # The host's second began at `at`, and was read between `began` and `ended`.
    at = int(text)
    ahead, behind = at - moment.ended, moment.began - (at + 1)
    if max(ahead, behind) <= SKEW:
        return ok("clock", "as this machine's")
    finding = f"{max(ahead, behind):.0f} s {'ahead of' if ahead > behind else 'behind'} this machine's clock"
    return warn("clock", finding, "Set it on the host: chronyc makestep; or set this machine's.")


def space_check(folder: str, said: CommandResult) -> Check:
    """Return whether an image of any size finds room in the folder for images."""
    words = said.stdout.rstrip().rsplit("\n", 1)[-1].split()
    if said.exit_code != 0 or len(words) < 6 or _NUMBER.fullmatch(words[3]) is None:
        why = said.stderr.strip().rpartition("\n")[2][-200:] or "`df` said nothing"
        return bad(
            "upload_dir", f"{folder}: {why}", "Make it, or name another: `upload_dir` in the inventory."
        )
    free = int(words[3]) * 1024
    finding = f"{folder} has {free >> 20} MiB free"
    hint = "Make room on the host, or name another folder: `upload_dir` in the inventory."
    if free < LARGEST_IMAGE:
        return bad("upload_dir", f"{finding}; an image takes up to {LARGEST_IMAGE >> 20} MiB", hint)
    return warn("upload_dir", finding, hint) if free < 2 * LARGEST_IMAGE else ok("upload_dir", finding)

"""The programs that the card driver needs on a host: what is missing, what it is for, what to install."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.cards.eras import find_place
from harness.health.checks import Check, Grade, bad, ok
from harness.hosts.protocol import CommandResult
from harness.hosts.protocol import Host as Reached
from harness.inventory.model import Host

#: The exit code of a shell for a program that is not there.
_MISSING: Final = 127


@dataclass(frozen=True, slots=True)
class _Need:
    """``without``: what cannot be done, or read, where the program is missing; ``package`` has it.

    ``grade``: bad where no card may be touched without it.
    """

    program: str
    package: str
    grade: Grade
    without: str


_VENDORS: Final = (
    _Need("fpgasupdate", "OPAE", Grade.BAD, "no image can be flashed"),
    _Need("rsu", "OPAE", Grade.BAD, "no card can be reset, so that no flashed image begins to run"),
    _Need(
        "fpgainfo",
        "OPAE",
        Grade.WARN,
        "what it reports of a card cannot be asked: steps and scenarios that do end INFRA; flashing goes on",
    ),
)
#: What is run beside the vendor's tools; the packages are Debian's.
_OTHERS: Final = (
    _Need("grep", "grep", Grade.BAD, "nothing of a card can be read"),
    _Need("flock", "util-linux", Grade.BAD, "no card can be held, so that nothing is flashed or reset"),
    _Need("sha256sum", "coreutils", Grade.BAD, "an image there cannot be verified, so that none is flashed"),
    _Need(
        "pgrep",
        "procps",
        Grade.WARN,
        "a process that works on a card is not seen, and who holds one cannot be told",
    ),
    _Need(
        "dmesg",
        "util-linux",
        Grade.WARN,
        "what the kernel logs of an update cannot be read: its claims and error codes are unknown",
    ),
)


def programs_question(entry: Host) -> list[str]:
    """Return the command that asks which of the programs are there; it prints the path of each that is."""
    return ["which", *(_named(entry, need) for need in (*_VENDORS, *_OTHERS))]


def program_checks(entry: Host, host: Reached, which: CommandResult, version: str | None) -> Iterator[Check]:
    """Yield what is missing on a host: of the vendor's tools, and of other programs.

    :param host: asked once more where the flashing tool is not on the host itself.
    :param which: the answer to :func:`programs_question`.
    :param version: what the flashing tool says of itself; None: nothing.
    :raises InfrastructureError: it does not answer that.
    """
    if which.exit_code == _MISSING:
        finding = f"`which` is missing on {entry.name}: no other program can be looked for"
        yield bad("programs", finding, f"Install debianutils on {entry.name}.")
        return
    found = {line.strip() for line in which.stdout.splitlines()}
    there = found | {posixpath.basename(path) for path in found}

    def missing(needs: tuple[_Need, ...]) -> list[_Need]:
        return [need for need in needs if _named(entry, need) not in there]

    if others := missing(_OTHERS):
        packages = " ".join(dict.fromkeys(need.package for need in others))
        yield _without("programs", entry, others, f"Install on {entry.name}: {packages}")
    vendors = missing(_VENDORS)
    if any(need.program == "fpgasupdate" for need in vendors):
        place = find_place(host, entry.tools.model_dump())
        if place.era != "host":
            yield ok("tools", f"by {place.era}, from the image {place.image}")
            return
    if vendors:
        hint = f"Install OPAE on {entry.name}, or name the path: `tools` of the host in the inventory."
        yield _without("tools", entry, vendors, hint)
    else:
        yield ok("tools", version or "fpgasupdate, rsu and fpgainfo; their version is not told")


def _without(name: str, entry: Host, missing: list[_Need], hint: str) -> Check:
    """Return one check for all that is missing, as bad as the worst of it."""
    told = "; ".join(f"{_named(entry, need)} is missing on {entry.name}: {need.without}" for need in missing)
    grade = Grade.BAD if any(need.grade is Grade.BAD for need in missing) else Grade.WARN
    return Check(name, grade, told, hint)


def _named(entry: Host, need: _Need) -> str:
    return str(entry.tools.model_dump().get(need.program, need.program))

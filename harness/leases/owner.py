"""Who has a lease: a process that can be looked for, or a person."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has a lease.

    ``name``: the run, or the person. ``pid``: 0 for a person. ``started``: when its process began, in ticks
    of the machine. ``place``: boot and process namespace of the machine, in which these two mean something.
    """

    name: str
    machine: str
    pid: int = 0
    started: str = ""
    place: str = ""

    @property
    def gone(self) -> bool:
        """Whether it is certain that the owner's process has ended: it was one of this machine and boot."""
        return bool(self.pid) and bool(self.place) and self.place == _place() and not self._lives()

    def _lives(self) -> bool:
        return self.started == _started(self.pid)

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid} on {self.machine})" if self.pid else self.name


@dataclass(frozen=True, slots=True)
class RunKey:
    """What tells a run from all others, to all of its processes.

    ``name``: that of the folder which they share; of a process that is all of its run: one of its own.
    """

    name: str
    machine: str


def run_of(folder: str, owner: Owner) -> RunKey:
    """Return the run of which ``owner`` is a process; ``folder`` is empty where it is all of the run."""
    return RunKey(folder or f"{owner.pid}-{secrets.token_hex(16)}", owner.machine)


def this_process(run: str) -> Owner:
    """Return this process as an owner, for the run of that name."""
    pid = os.getpid()
    return Owner(run, socket.gethostname(), pid, _started(pid), _place())


def this_person() -> Owner:
    """Return who is logged in as an owner: ``user@machine``."""
    machine = socket.gethostname()
    return Owner(f"{getpass.getuser()}@{machine}", machine)


def _place() -> str:
    """Return what a process id is of; empty where the machine does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return when a process began, in ticks since the boot; empty where there is none, or it has ended."""
    with suppress(OSError):
        # proc(5): the name in brackets may hold anything; the state follows it, the start is the 22nd field.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    return ""

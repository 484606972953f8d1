"""What every host offers, however it is reached: run, read, list, readlink, put."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.hosts.permits import Permit


@dataclass(frozen=True, slots=True)
class Asked:
    """A command line and, where it is not a declared read-only one, its permit.

    ``guard``: the commands after it are run only if it succeeds.
    """

    argv: Sequence[str]
    permit: Permit | None = None
    guard: bool = False


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command on a host ended.

    ``exit_code`` is -1 where a signal ended it, or the link broke: ``lost`` tells these apart. After a
    lost link the command may be going on.
    """

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    lost: bool = False

    @property
    def text(self) -> str:
        """Standard output followed by standard error, for evidence."""
        return self.stdout + self.stderr


def last_seen(out: bytes | bytearray, err: bytes | bytearray) -> str:
    """Return the last line that a command printed on each of its streams, for a message."""
    lines = [stream.decode(errors="replace").rstrip().splitlines()[-1:] for stream in (out, err)]
    shown = [repr(line[-200:]) for last in lines for line in last]
    return " and ".join(shown) or "nothing"


class Host(Protocol):
    """A machine with cards in it.

    Every call has a deadline in seconds and raises :class:`harness.errors.DeadlineError` past it,
    :class:`harness.errors.InfrastructureError` when the machine cannot be reached, and
    :class:`harness.errors.RefusedError` for anything that needs a permit and has none.
    """

    @property
    def name(self) -> str:
        """The host's name in the inventory."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        permit: Permit | None = None,
        deadline: float = 30.0,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """Run ``argv`` (words; glob characters in a word are expanded by the remote shell).

        ``on_output`` is given standard output as it arrives, decoded, in the caller's thread.
        A non-zero exit code is a result, not an error.
        """
        ...

    def run_all(self, commands: Sequence[Asked], *, deadline: float = 30.0) -> list[CommandResult]:
        """Run commands one after the other, in one exchange with the machine; each as :meth:`run` does.

        Those after a guard that failed are not run, and have no result. A permit that covers a script
        (``sh``) has no place among them: it may end the shell that runs the others.

        :raises LinkLostError: not all of them came to their end.
        """
        ...

    def read(self, path: str, *, deadline: float = 30.0) -> bytes:
        """Return the content of ``path``. :raises OSError: with the remote errno where it is known."""
        ...

    def fetch(self, url: str, *, deadline: float = 120.0) -> bytes:
        """Return the image at ``url`` of a controller, as this machine gets it.

        :raises OSError: it does not get it; the text says why.
        """
        ...

    def list(self, path: str, *, deadline: float = 30.0) -> list[str]:
        """Return the names in the directory ``path``, sorted."""
        ...

    def readlink(self, path: str, *, deadline: float = 30.0) -> str:
        """Return the canonical path that ``path`` resolves to (``readlink -f``)."""
        ...

    def put(self, source: bytes | Path, path: str, *, permit: Permit, deadline: float = 600.0) -> None:
        """Write ``source`` to ``path``; the permit names the path and the SHA-256 of the bytes."""
        ...

    def wait_until_reachable(self, *, deadline: float = 300.0) -> None:
        """Return when the machine takes a login, as after a reboot. :raises DeadlineError: it does not."""
        ...

    def close(self) -> None:
        """Release the connection; may be called twice."""
        ...

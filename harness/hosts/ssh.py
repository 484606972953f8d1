"""A host reached over SSH: what is asked of it, asked again where the link breaks, and when it is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from harness.errors import DeadlineError, InfrastructureError, LinkLostError, UnreachableError
from harness.hosts.access import Access
from harness.hosts.batch import Batch
from harness.hosts.commands import permitted_line, read_only_line
from harness.hosts.link import CONNECT_DEADLINE, Link
from harness.hosts.permits import Permit, genuine
from harness.hosts.protocol import Asked, CommandResult
from harness.hosts.refusals import Told, tells_nobody, told
from harness.hosts.remote_errors import os_error
from harness.hosts.sources import opened
from harness.hosts.sudo import needs_root
from harness.hosts.uploads import Uploads

T = TypeVar("T")


class SshHost:
    """A machine behind SSH. Its host key is checked; safe to use from several threads.

    :param name: the host's name in the inventory, for messages and permits.
    :param access: where it is and how to log in.
    :param tools: program name -> path on the host, where a program is not in the host's PATH.
    :param refused: is told of refusals.
    """

    def __init__(
        self,
        name: str,
        access: Access,
        *,
        tools: Mapping[str, str] | None = None,
        refused: Told = tells_nobody,
    ) -> None:
        self._name = name
        self.refused = refused
        self._tools = dict(tools or {})
        self._link = Link(name, access)
        self._uploads = Uploads(self._link, self._space)

    @property
    def name(self) -> str:
        """The host's name in the inventory."""
        return self._name

    @told
    def run(
        self,
        argv: Sequence[str],
        *,
        permit: Permit | None = None,
        deadline: float = 30.0,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """Run ``argv``; see :meth:`harness.hosts.protocol.Host.run`.

        A read-only command is asked again over a new connection when the link breaks; one that needs a
        permit never is: it ends with exit code -1 and what it had printed.
        """
        if permit is None:
            line = read_only_line(argv, self._tools)
            root = needs_root([Asked(argv)])
            return self._again(lambda: self._result(argv, line, deadline, on_output, root=root))
        permit = genuine(permit)
        permit.check_command(self._name, argv)
        permit.spend()
        # What is run is what the permit says, not what the caller holds.
        return self._result(
            permit.argv,
            permitted_line(permit.argv),
            deadline,
            on_output,
            root=needs_root([Asked(permit.argv, permit)]),
            lost_is_result=True,
        )

    @told
    def run_all(self, commands: Sequence[Asked], *, deadline: float = 30.0) -> list[CommandResult]:
        """Run commands in one exchange; see :meth:`harness.hosts.protocol.Host.run_all`.

        They are asked again over a new connection when the link breaks, unless one needs a permit.
        """
        batch = Batch(self._name, commands, self._tools)
        root = needs_root(commands)

        def ask() -> list[CommandResult]:
            began = time.monotonic()
            ran = self._link.ask(batch.line, deadline, root=root, repeatable=batch.only_reads)
            seconds = time.monotonic() - began
            out, err = ran.out.decode(errors="replace"), ran.err.decode(errors="replace")
            results = batch.results(out, err, seconds)
            if not batch.complete(results):
                raise self._link.broken(batch.line, ran)
            return results

        batch.spend()
        return self._again(ask) if batch.only_reads else ask()

    @told
    def read(self, path: str, *, deadline: float = 30.0) -> bytes:
        """Return the content of ``path``. :raises OSError: with the errno of the remote `cat`."""
        return self._ask(["cat", path], path, deadline)

    @told
    def fetch(self, url: str, *, deadline: float = 120.0) -> bytes:
        """Return the image at ``url`` of a controller. :raises OSError: with what `curl` said."""
        return self._ask(["curl", "-s", "-S", "-f", url], url, deadline)

    @told
    def list(self, path: str, *, deadline: float = 30.0) -> list[str]:
        """Return the names in the directory ``path``, sorted. :raises OSError: it cannot be listed."""
        return sorted(self._ask(["ls", "-1", path], path, deadline).decode(errors="replace").splitlines())

    @told
    def readlink(self, path: str, *, deadline: float = 30.0) -> str:
        """Return the canonical path that ``path`` resolves to. :raises OSError: it leads nowhere."""
        return self._ask(["readlink", "-f", path], path, deadline).decode(errors="replace").rstrip("\n")

    @told
    def put(self, source: bytes | Path, path: str, *, permit: Permit, deadline: float = 600.0) -> None:
        """Write ``source`` to ``path``; a file that this call began and could not finish is removed.

        :raises RefusedError: the permit is not for these bytes at this path.
        :raises InfrastructureError: the host could not take them, such as for a full disk.
        """
        with opened(source) as (handle, size, sha256):
            permit = genuine(permit)
            permit.check_write(self._name, path, sha256)
            permit.spend()
            self._uploads.put(handle, size, sha256, permit.path, time.monotonic() + deadline)

    def wait_until_reachable(self, *, deadline: float = 300.0) -> None:
        """Return when the host takes a login again, as after a reboot.

        :raises DeadlineError: it does not within ``deadline`` seconds; the message has the last reason.
        """
        end = time.monotonic() + deadline
        pause = 0.05
        while True:
            try:
                seconds = min(CONNECT_DEADLINE, max(0.1, end - time.monotonic()))
                self._link.transport(seconds, waiting=True)
            except UnreachableError as error:
                if time.monotonic() + pause > end:
                    raise DeadlineError(
                        f"Waited {deadline:g} s for {self._name} to take a login; last: {error.message}",
                        hint="Look at the host's console; it may not have booted.",
                    ) from None
                # Nothing tells when a machine has booted; asking is the only condition there is.
                time.sleep(pause)
                pause = min(2 * pause, 2.0)
            else:
                return

    def close(self) -> None:
        """Release the connection; may be called twice."""
        self._uploads.close()
        self._link.close()

    # -- steps ----------------------------------------------------------------------------------------

    def _again(self, ask: Callable[[], T]) -> T:
        """Ask something idempotent, and again (twice at most) when the link breaks meanwhile.

        Where the host is gone then, as in a reboot, the error tells both.
        """
        lost: list[LinkLostError] = []

        def tried() -> T:
            try:
                return ask()
            except LinkLostError as error:
                lost.append(error)
                raise
            except UnreachableError as error:
                if lost:
                    text = f"{lost[0].message} It was asked again: {error.message}"
                    raise UnreachableError(text, hint=error.hint) from None
                raise

        retrying = Retrying(
            retry=retry_if_exception_type(LinkLostError),
            stop=stop_after_attempt(3),
            wait=wait_exponential(multiplier=0.05, max=1.0),
            reraise=True,
        )
        return retrying(tried)

    def _result(
        self,
        argv: Sequence[str],
        line: str,
        deadline: float,
        on_output: Callable[[str], None] | None,
        *,
        root: bool = False,
        lost_is_result: bool = False,
    ) -> CommandResult:
        began = time.monotonic()
        if on_output is None and not lost_is_result:
            ran = self._link.ask(line, deadline, root=root)
        else:
            ran = self._link.execute(line, deadline, on_output, root=root)
        if ran.lost and not lost_is_result:
            raise self._link.broken(line, ran)
        return CommandResult(
            argv=tuple(argv),
            exit_code=ran.exit_code,
            lost=ran.lost,
            stdout=ran.out.decode(errors="replace"),
            stderr=ran.err.decode(errors="replace"),
            seconds=time.monotonic() - began,
        )

    def _ask(self, argv: Sequence[str], path: str, deadline: float) -> bytes:
        line = read_only_line(argv, self._tools, literal=True)

        def ask() -> tuple[int, bytes, bytes]:
            ran = self._link.ask(line, deadline)
            if ran.lost:
                raise self._link.broken(line, ran)
            return ran.exit_code, ran.out, ran.err

        code, out, err = self._again(ask)
        if code != 0:
            raise os_error(path, err.decode(errors="replace"))
        return out

    def _space(self, folder: str, size: int) -> str:
        """Say that a file system is too small where it is: SFTP itself says no more than 'Failure'."""
        with suppress(InfrastructureError):
            result = self.run(["df", "-P", "-k", folder], deadline=5.0)
            words = result.stdout.rstrip().rsplit("\n", 1)[-1].split()
            if result.exit_code == 0 and len(words) >= 6 and words[3].isdigit():
                free = int(words[3]) * 1024
                if free < size:
                    return f"; the disk is full: {free} bytes are free there"
        return ""

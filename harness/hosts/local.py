"""The harness's own machine as a host: the same operations without a network."""

from __future__ import annotations

import codecs
import hashlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.errors import DeadlineError, InfrastructureError, RefusedError
from harness.hosts.commands import permitted_line, read_only_line
from harness.hosts.permits import Permit, genuine
from harness.hosts.protocol import Asked, CommandResult, last_seen
from harness.hosts.refusals import Told, tells_nobody, told
from harness.hosts.remote_errors import os_error
from harness.hosts.sources import opened

_CHUNK = 1 << 16


class LocalHost:
    """This machine. Commands run under ``/bin/sh``, in a process group that a deadline ends as a whole.

    :param name: the host's name in the inventory.
    :param tools: program name -> path, where a program is not in PATH. :param refused: is told of refusals.
    """

    def __init__(
        self,
        name: str = "localhost",
        *,
        tools: Mapping[str, str] | None = None,
        refused: Told = tells_nobody,
    ) -> None:
        self._name = name
        self.refused = refused
        self._tools = dict(tools or {})

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
        """Run ``argv``; see :meth:`harness.hosts.protocol.Host.run`."""
        if permit is None:
            line = read_only_line(argv, self._tools)
        else:
            permit = genuine(permit)
            permit.check_command(self._name, argv)
            permit.spend()
            # What is run is what the permit says, not what the caller holds.
            line = permitted_line(permit.argv)
        began = time.monotonic()
        code, out, err = self._execute(line, deadline, on_output)
        return CommandResult(
            argv=tuple(argv),
            exit_code=code if code >= 0 else -1,
            stdout=out.decode(errors="replace"),
            stderr=err.decode(errors="replace"),
            seconds=time.monotonic() - began,
        )

    def run_all(self, commands: Sequence[Asked], *, deadline: float = 30.0) -> list[CommandResult]:
        """Run commands one after the other; see :meth:`harness.hosts.protocol.Host.run_all`."""
        end = time.monotonic() + deadline
        results: list[CommandResult] = []
        for asked in commands:
            left = max(0.0, end - time.monotonic())
            results.append(self.run(asked.argv, permit=asked.permit, deadline=left))
            if asked.guard and results[-1].exit_code != 0:
                break
        return results

    @told
    def read(self, path: str, *, deadline: float = 30.0) -> bytes:
        """Return the content of ``path``. :raises OSError: as the kernel says.

        :raises RefusedError: it may be a device, as with every other host.
        """
        read_only_line(["cat", path], literal=True)
        return Path(path).read_bytes()

    @told
    def fetch(self, url: str, *, deadline: float = 120.0) -> bytes:
        """Return the image at ``url`` of a controller. :raises OSError: with what `curl` said."""
        line = read_only_line(["curl", "-s", "-S", "-f", url], self._tools, literal=True)
        code, out, err = self._execute(line, deadline, None)
        if code != 0:
            raise os_error(url, err.decode(errors="replace"))
        return out

    @told
    def list(self, path: str, *, deadline: float = 30.0) -> list[str]:
        """Return the names in the directory ``path``, sorted. :raises OSError: as the kernel says."""
        return sorted(entry.name for entry in Path(path).iterdir())

    @told
    def readlink(self, path: str, *, deadline: float = 30.0) -> str:
        """Return the canonical path that ``path`` resolves to. :raises OSError: it leads nowhere."""
        return str(Path(path).resolve(strict=True))

    @told
    def put(self, source: bytes | Path, path: str, *, permit: Permit, deadline: float = 600.0) -> None:
        """Write ``source`` to ``path``; a file that this call began and could not finish is removed."""
        with opened(source) as (handle, size, sha256):
            permit = genuine(permit)
            permit.check_write(self._name, path, sha256)
            permit.spend()
            target = Path(permit.path)
            existed = target.exists()
            digest = hashlib.sha256()
            try:
                with target.open("wb") as written:
                    while chunk := handle.read(_CHUNK):
                        digest.update(chunk)
                        written.write(chunk)
                if digest.hexdigest() != permit.sha256:
                    raise RefusedError(
                        f"What went to {path} on {self._name} changed while it was read; it was removed."
                    )
            except (OSError, RefusedError) as error:
                if not existed:
                    target.unlink(missing_ok=True)
                if isinstance(error, RefusedError):
                    raise
                raise InfrastructureError(
                    f"{size} bytes could not be written to {path} on {self._name}: {error.strerror}.",
                    hint=f"Is there space in {target.parent}, and may you write there?",
                ) from None

    def _execute(
        self, line: str, deadline: float, on_output: Callable[[str], None] | None
    ) -> tuple[int, bytes, bytes]:
        """Run a line that was let pass. A machine in memory takes the place of this one here, in tests."""
        return _executed(line, deadline, on_output)

    def wait_until_reachable(self, *, deadline: float = 300.0) -> None:
        """Return at once: this machine is here."""

    def close(self) -> None:
        """Nothing is held."""


def _executed(
    line: str, deadline: float, on_output: Callable[[str], None] | None
) -> tuple[int, bytes, bytes]:
    """Run ``line``; return its exit code, or less than 0 for a signal, and what it printed."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = _streams(process, line, time.monotonic() + deadline, deadline, on_output)
    finally:
        _end(process)
    return process.returncode, bytes(out), bytes(err)


def _streams(
    process: subprocess.Popen[bytes],
    line: str,
    end: float,
    deadline: float,
    on_output: Callable[[str], None] | None,
) -> tuple[bytearray, bytearray]:
    """Take both streams as they come. :raises DeadlineError: the command is not over at ``end``."""
    if process.stdout is None or process.stderr is None:
        raise ValueError("the process was started without pipes")
    out, err = bytearray(), bytearray()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, out)
        selector.register(process.stderr, selectors.EVENT_READ, err)
        while selector.get_map():
            ready = selector.select(max(0.0, end - time.monotonic()))
            if not ready:
                raise DeadlineError(
                    f"Waited {deadline:g} s for `{line[:120]}` to end; "
                    f"the last that was seen of it: {last_seen(out, err)}."
                )
            for key, _ in ready:
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                key.data.extend(data)
                if key.data is out and on_output is not None and (text := decoder.decode(data)):
                    on_output(text)
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, end - time.monotonic()))
    return out, err


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing behind: end what still runs of the command, and reap it."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()

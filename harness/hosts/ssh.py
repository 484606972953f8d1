"""A host reached over SSH: one connection, opened when it is first needed and reused by every call."""

from __future__ import annotations

import codecs
import hashlib
import io
import posixpath
import select
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import paramiko
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from harness.errors import DeadlineError, InfrastructureError, LinkLostError, RefusedError, UnreachableError
from harness.hosts.access import Access
from harness.hosts.batch import Batch
from harness.hosts.commands import permitted_line, read_only_line
from harness.hosts.connection import open_connection
from harness.hosts.permits import Permit, genuine
from harness.hosts.protocol import Asked, CommandResult, last_seen
from harness.hosts.remote_errors import os_error
from harness.hosts.sources import opened

T = TypeVar("T")

_CONNECT_DEADLINE = 15.0
_CHUNK = 1 << 16
_SFTP_CHUNK = 32768


class SshHost:
    """A machine behind SSH. Its host key is checked; safe to use from several threads.

    :param name: the host's name in the inventory, for messages and permits.
    :param access: where it is and how to log in.
    :param tools: program name -> path on the host, where a program is not in the host's PATH.
    """

    def __init__(self, name: str, access: Access, *, tools: Mapping[str, str] | None = None) -> None:
        self._name = name
        self._access = access
        self._tools = dict(tools or {})
        self._client: paramiko.SSHClient | None = None
        self._resting: paramiko.SFTPClient | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The host's name in the inventory."""
        return self._name

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
            return self._again(lambda: self._result(argv, line, deadline, on_output))
        permit = genuine(permit)
        permit.check_command(self._name, argv)
        permit.spend()
        # What is run is what the permit says, not what the caller holds.
        return self._result(
            permit.argv, permitted_line(permit.argv), deadline, on_output, lost_is_result=True
        )

    def run_all(self, commands: Sequence[Asked], *, deadline: float = 30.0) -> list[CommandResult]:
        """Run commands in one exchange; see :meth:`harness.hosts.protocol.Host.run_all`.

        They are asked again over a new connection when the link breaks, unless one needs a permit.
        """
        batch = Batch(self._name, commands, self._tools)

        def ask() -> list[CommandResult]:
            began = time.monotonic()
            _, out, err, _ = self._execute(batch.line, deadline, None)
            seconds = time.monotonic() - began
            results = batch.results(out.decode(errors="replace"), err.decode(errors="replace"), seconds)
            if not batch.complete(results):
                raise self._broken(batch.line, out, err)
            return results

        batch.spend()
        return self._again(ask) if batch.only_reads else ask()

    def read(self, path: str, *, deadline: float = 30.0) -> bytes:
        """Return the content of ``path``. :raises OSError: with the errno of the remote `cat`."""
        return self._ask(["cat", path], path, deadline)

    def fetch(self, url: str, *, deadline: float = 120.0) -> bytes:
        """Return the image at ``url`` of a controller. :raises OSError: with what `curl` said."""
        return self._ask(["curl", "-s", "-S", "-f", url], url, deadline)

    def list(self, path: str, *, deadline: float = 30.0) -> list[str]:
        """Return the names in the directory ``path``, sorted. :raises OSError: it cannot be listed."""
        return sorted(self._ask(["ls", "-1", path], path, deadline).decode(errors="replace").splitlines())

    def readlink(self, path: str, *, deadline: float = 30.0) -> str:
        """Return the canonical path that ``path`` resolves to. :raises OSError: it leads nowhere."""
        return self._ask(["readlink", "-f", path], path, deadline).decode(errors="replace").rstrip("\n")

    def put(self, source: bytes | Path, path: str, *, permit: Permit, deadline: float = 600.0) -> None:
        """Write ``source`` to ``path``; a file that this call began and could not finish is removed.

        :raises RefusedError: the permit is not for these bytes at this path.
        :raises InfrastructureError: the host could not take them, such as for a full disk.
        """
        with opened(source) as (handle, size, sha256):
            permit = genuine(permit)
            permit.check_write(self._name, path, sha256)
            permit.spend()
            self._put(handle, size, sha256, permit.path, time.monotonic() + deadline)

    def wait_until_reachable(self, *, deadline: float = 300.0) -> None:
        """Return when the host takes a login again, as after a reboot.

        :raises DeadlineError: it does not within ``deadline`` seconds; the message has the last reason.
        """
        end = time.monotonic() + deadline
        pause = 0.05
        while True:
            try:
                self._transport(min(_CONNECT_DEADLINE, max(0.1, end - time.monotonic())))
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
        with self._lock:
            client, self._client = self._client, None
            self._resting = None
        if client is not None:
            client.close()

    # -- connection -----------------------------------------------------------------------------------

    def _transport(self, deadline: float) -> paramiko.Transport:
        with self._lock:
            transport = self._client.get_transport() if self._client else None
            if transport is not None and transport.is_active():
                return transport
            if self._client is not None:
                self._client.close()
            self._client = open_connection(self._name, self._access, min(deadline, _CONNECT_DEADLINE))
            transport = self._client.get_transport()
        if transport is None:
            raise LinkLostError(f"The link to {self._name} broke as soon as it was open.")
        return transport

    def _again(self, ask: Callable[[], T]) -> T:
        """Ask something idempotent, and again (twice at most) when the link breaks meanwhile."""
        retrying = Retrying(
            retry=retry_if_exception_type(LinkLostError),
            stop=stop_after_attempt(3),
            wait=wait_exponential(multiplier=0.05, max=1.0),
            reraise=True,
        )
        return retrying(ask)

    def _session(self, line: str, deadline: float) -> paramiko.Channel:
        try:
            channel = self._transport(deadline).open_session(timeout=deadline)
            channel.settimeout(deadline)
            channel.exec_command(line)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise LinkLostError(
                f"The link to {self._name} broke before {_shown(line)} was known to run: "
                f"{error or type(error).__name__}."
            ) from None
        return channel

    # -- commands -------------------------------------------------------------------------------------

    def _result(
        self,
        argv: Sequence[str],
        line: str,
        deadline: float,
        on_output: Callable[[str], None] | None,
        *,
        lost_is_result: bool = False,
    ) -> CommandResult:
        began = time.monotonic()
        code, out, err, lost = self._execute(line, deadline, on_output)
        if lost and not lost_is_result:
            raise self._broken(line, out, err)
        return CommandResult(
            argv=tuple(argv),
            exit_code=code,
            lost=lost,
            stdout=out.decode(errors="replace"),
            stderr=err.decode(errors="replace"),
            seconds=time.monotonic() - began,
        )

    def _ask(self, argv: Sequence[str], path: str, deadline: float) -> bytes:
        line = read_only_line(argv, self._tools, literal=True)

        def ask() -> tuple[int, bytes, bytes]:
            code, out, err, lost = self._execute(line, deadline, None)
            if lost:
                raise self._broken(line, out, err)
            return code, out, err

        code, out, err = self._again(ask)
        if code != 0:
            raise os_error(path, err.decode(errors="replace"))
        return out

    def _broken(self, line: str, out: bytes, err: bytes) -> LinkLostError:
        return LinkLostError(
            f"The link to {self._name} broke while {_shown(line)} ran; "
            f"the last that was seen of it: {last_seen(out, err)}."
        )

    def _execute(
        self, line: str, deadline: float, on_output: Callable[[str], None] | None
    ) -> tuple[int, bytes, bytes, bool]:
        """Run ``line``; return exit code, standard output, standard error, and whether the link broke."""
        end = time.monotonic() + deadline
        channel = self._session(line, deadline)
        try:
            streams = _Streams(channel, on_output)
            if not (streams.drain_until(end) and channel.status_event.wait(max(0.0, end - time.monotonic()))):
                raise DeadlineError(
                    f"Waited {deadline:g} s for {_shown(line)} on {self._name} to end; "
                    f"the last that was seen of it: {last_seen(streams.out, streams.err)}.",
                    hint="It may still be running on the host.",
                )
            code = channel.recv_exit_status() if channel.exit_status_ready() else -1
            # A host that goes down says no EOF; its transport counts as active for a moment longer.
            orderly = channel.eof_received and channel.get_transport().is_active()
            lost = code == -1 and not orderly
            return code, bytes(streams.out), bytes(streams.err), lost
        finally:
            with suppress(paramiko.SSHException, EOFError, OSError):
                channel.close()

    # -- files ----------------------------------------------------------------------------------------

    def _put(self, handle: BinaryIO, size: int, sha256: str, path: str, end: float) -> None:
        began = existed = whole = False
        sftp: paramiko.SFTPClient | None = None
        try:
            sftp = self._sftp(end)
            remote, existed = _opened_for_writing(sftp, path)
            # What is in memory cannot change any more; a file can, since its hash was taken.
            digest = None if isinstance(handle, io.BytesIO) else hashlib.sha256()
            with remote:
                began = True
                while chunk := handle.read(_SFTP_CHUNK):
                    _sftp_timeout(sftp, end)
                    # The last one waits for the answers to all: else no one would hear of a full disk.
                    remote.set_pipelined(handle.tell() < size)
                    remote.write(chunk)
                    if digest is not None:
                        digest.update(chunk)
            if digest is not None and digest.hexdigest() != sha256:
                raise RefusedError(
                    f"What went to {path} on {self._name} changed while it was read; it was removed."
                )
            # Kernel attributes show a size of their own, and they exist before anyone writes.
            arrived = size if existed else sftp.stat(path).st_size
            if arrived != size:
                raise OSError(0, f"only {arrived} of {size} bytes arrived", path)
            whole = True
        except (OSError, EOFError, paramiko.SSHException, RefusedError) as error:
            self._undo_put(sftp, path, began and not existed)
            raise self._put_error(error, size, path) from None
        except BaseException:
            self._undo_put(sftp, path, began and not existed)
            raise
        finally:
            if sftp is not None:
                self._spare_sftp(sftp, usable=whole)

    def _sftp(self, end: float) -> paramiko.SFTPClient:
        """Return an SFTP session for one caller alone: a client that threads share hangs.

        One that is at rest is used again: to open one takes as long as to write a small image.
        """
        left = max(0.1, end - time.monotonic())
        transport = self._transport(left)
        with self._lock:
            sftp, self._resting = self._resting, None
        channel = sftp.get_channel() if sftp is not None else None
        if sftp is not None and channel is not None:
            if channel.get_transport() is transport and not channel.closed:
                channel.settimeout(left)
                return sftp
            _close_sftp(sftp)
        channel = transport.open_session(timeout=left)
        channel.settimeout(left)
        channel.invoke_subsystem("sftp")
        return paramiko.SFTPClient(channel)

    def _spare_sftp(self, sftp: paramiko.SFTPClient, *, usable: bool) -> None:
        """Let a session rest for the next caller, or close it."""
        with self._lock:
            rests = usable and self._resting is None
            if rests:
                self._resting = sftp
        if not rests:
            _close_sftp(sftp)

    def _undo_put(self, sftp: paramiko.SFTPClient | None, path: str, ours: bool) -> None:
        if sftp is not None and ours:
            with suppress(paramiko.SSHException, EOFError, OSError):
                _sftp_timeout(sftp, time.monotonic() + 5.0)
                sftp.remove(path)

    def _put_error(self, error: Exception, size: int, path: str) -> Exception:
        if isinstance(error, (RefusedError, InfrastructureError)):
            return error
        if isinstance(error, TimeoutError):
            return DeadlineError(f"Waited in vain for {self._name} to take {size} bytes at {path}.")
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        folder = posixpath.dirname(path) or "."
        reason += self._space(folder, size)
        return InfrastructureError(
            f"{size} bytes could not be written to {path} on {self._name}: {reason}.",
            hint=f"Is there space in {folder} on {self._name}, and may the user write there? "
            "What had arrived was removed.",
        )

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


def _sftp_timeout(sftp: paramiko.SFTPClient, end: float) -> None:
    """Let the next answer on ``sftp`` take no longer than until ``end``."""
    channel = sftp.get_channel()
    if channel is not None:
        channel.settimeout(max(0.001, end - time.monotonic()))


class _Streams:
    """What a command prints on its two streams, taken as it comes so that neither fills its window."""

    def __init__(self, channel: paramiko.Channel, on_output: Callable[[str], None] | None) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self._channel = channel
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)

    def drain_until(self, end: float) -> bool:
        """Take output until the command ends. Return False when ``end`` (monotonic) comes first."""
        channel = self._channel
        while True:
            # Asked before taking: what arrives in between is taken by the next round.
            ended = bool(channel.eof_received or channel.closed)
            while channel.recv_ready():
                self._take(channel.recv(_CHUNK))
            while channel.recv_stderr_ready():
                self.err += channel.recv_stderr(_CHUNK)
            if ended:
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._poll.poll(left * 1000)

    def _take(self, data: bytes) -> None:
        self.out += data
        if self._on_output is not None and (text := self._decoder.decode(data)):
            self._on_output(text)


def _opened_for_writing(sftp: paramiko.SFTPClient, path: str) -> tuple[paramiko.SFTPFile, bool]:
    """Open ``path`` to be written from its beginning; also return whether it was there before."""
    with suppress(OSError):  # SFTP has one word for all refusals: what it means shows in what follows
        return sftp.open(path, "wx"), False
    existed = _exists(sftp, path)
    return sftp.open(path, "w"), existed


def _exists(sftp: paramiko.SFTPClient, path: str) -> bool:
    try:
        mode = sftp.stat(path).st_mode or 0
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise OSError(0, "it is a directory", path)
    return True


def _close_sftp(sftp: paramiko.SFTPClient) -> None:
    with suppress(paramiko.SSHException, EOFError, OSError):
        sftp.close()


def _shown(line: str) -> str:
    return f"`{line if len(line) <= 120 else line[:117] + '...'}`"

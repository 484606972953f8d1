"""Writes files to a host over SSH: by SFTP, or through a shell where the host has none or only root may."""

from __future__ import annotations

import errno
import hashlib
import io
import posixpath
import shlex
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Final

import paramiko

from harness.errors import DeadlineError, InfrastructureError, RefusedError
from harness.hosts.commands import LOCALE
from harness.hosts.link import Link

_SFTP_CHUNK: Final = 32768
#: Writes standard input to $1, which is to have the SHA-256 $2 then; what it began and did not finish is
#: removed, also when the link breaks. Ends with 74: it could not be written, 75: other bytes arrived.
_SCRIPT: Final = (
    'trap "" HUP PIPE; [ -e "$1" ]; new=$?; undo() { [ $new = 0 ] || rm -f "$1"; }; '
    'if [ -d "$1" ]; then echo "it is a directory" >&2; exit 74; fi; '
    'cat >"$1" || { undo "$1"; exit 74; }; '
    '[ -f "$1" ] || exit 0; [ "$(sha256sum <"$1")" = "$2  -" ] && exit 0; '
    'echo "$(($(wc -c <"$1"))) bytes arrived, and not those that were sent" >&2; undo "$1"; exit 75'
)


class _NoSftp(Exception):
    """The host has no SFTP, though it takes logins."""


class Uploads:
    """Writes files over ``link``. Permits are checked by whoever calls.

    :param space: says, of a folder and a size, that the disk there is too full for it; else nothing.
    """

    def __init__(self, link: Link, space: Callable[[str, int], str]) -> None:
        self._link = link
        self._space = space
        self._resting: paramiko.SFTPClient | None = None
        self._has_sftp = True
        self._lock = threading.Lock()
        link.gives_way(self._end_resting)

    def put(self, handle: BinaryIO, size: int, sha256: str, path: str, end: float) -> None:
        """Write ``handle`` to ``path`` before ``end`` (monotonic); what could not be finished is removed.

        :raises InfrastructureError: the host could not take it. :raises RefusedError: the source changed.
        """
        if self._has_sftp:
            try:
                self._by_sftp(handle, size, sha256, path, end)
                return
            except _NoSftp:
                self._has_sftp = False
            except PermissionError as error:
                if not self._link.access.needs_sudo:
                    raise self._error(error, size, path) from None
            handle.seek(0)
        self._by_shell(handle, size, sha256, path, end)

    def close(self) -> None:
        """Let go of what rests; may be called twice."""
        with self._lock:
            self._resting = None

    # -- through a shell ------------------------------------------------------------------------------

    def _by_shell(self, handle: BinaryIO, size: int, sha256: str, path: str, end: float) -> None:
        line = f"{LOCALE} exec {shlex.join(['sh', '-c', _SCRIPT, 'sh', path, sha256])}"
        for root in (False, True) if self._link.access.needs_sudo else (False,):
            handle.seek(0)
            left = max(0.1, end - time.monotonic())
            try:
                ran = self._link.execute(line, left, root=root, feed=handle)
            except DeadlineError:
                raise DeadlineError(
                    f"Waited in vain for {self._link.name} to take {size} bytes at {path}."
                ) from None
            if ran.lost:
                raise self._link.broken(f"cat >{path}", ran)
            if ran.exit_code == 0:
                return
            said = ran.err.decode(errors="replace").strip().rsplit("\n", 1)[-1]
            reason = said.rsplit(": ", 1)[-1] or f"exit code {ran.exit_code}"
            if reason != "Permission denied":
                break
        raise self._error(OSError(0, reason, path), size, path)

    # -- by SFTP --------------------------------------------------------------------------------------

    def _by_sftp(self, handle: BinaryIO, size: int, sha256: str, path: str, end: float) -> None:
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
                    f"What went to {path} on {self._link.name} changed while it was read; it was removed."
                )
            # Kernel attributes show a size of their own, and they exist before anyone writes.
            arrived = size if existed else sftp.stat(path).st_size
            if arrived != size:
                raise OSError(0, f"only {arrived} of {size} bytes arrived", path)
            whole = True
        except (OSError, EOFError, paramiko.SSHException, RefusedError) as error:
            self._undo(sftp, path, began and not existed)
            if isinstance(error, OSError) and error.errno == errno.EACCES:
                raise PermissionError(error.errno, error.strerror or str(error), path) from None
            raise self._error(error, size, path) from None
        except BaseException:
            self._undo(sftp, path, began and not existed)
            raise
        finally:
            if sftp is not None:
                self._spare(sftp, usable=whole)

    def _sftp(self, end: float) -> paramiko.SFTPClient:
        """Return an SFTP session for one caller alone: a client that threads share hangs.

        One that is at rest is used again: to open one takes as long as to write a small image.

        :raises _NoSftp: the host offers none.
        """
        left = max(0.1, end - time.monotonic())
        transport = self._link.transport(left)
        with self._lock:
            sftp, self._resting = self._resting, None
        channel = sftp.get_channel() if sftp is not None else None
        if sftp is not None and channel is not None:
            if channel.get_transport() is transport and not channel.closed:
                channel.settimeout(left)
                return sftp
            _close_sftp(sftp)
        channel = self._link.channel(left)
        channel.settimeout(left)
        try:
            channel.invoke_subsystem("sftp")
            return paramiko.SFTPClient(channel)
        except (paramiko.SSHException, EOFError):
            # Refused, or its program ended at once; with the link as it was, that is the host's word.
            if channel.get_transport().is_active():
                raise _NoSftp from None
            raise

    def _end_resting(self, seconds: float) -> bool:
        """End the session that rests, and wait so long for it to be gone; return whether there was one."""
        with self._lock:
            sftp, self._resting = self._resting, None
        channel = sftp.get_channel() if sftp is not None else None
        if sftp is None or channel is None:
            return False
        with suppress(paramiko.SSHException, EOFError, OSError):
            channel.shutdown_write()
            channel.status_event.wait(seconds)
        _close_sftp(sftp)
        return True

    def _spare(self, sftp: paramiko.SFTPClient, *, usable: bool) -> None:
        """Let a session rest for the next caller, or close it."""
        with self._lock:
            rests = usable and self._resting is None
            if rests:
                self._resting = sftp
        if not rests:
            _close_sftp(sftp)

    def _undo(self, sftp: paramiko.SFTPClient | None, path: str, ours: bool) -> None:
        if sftp is not None and ours:
            with suppress(paramiko.SSHException, EOFError, OSError):
                _sftp_timeout(sftp, time.monotonic() + 5.0)
                sftp.remove(path)

    def _error(self, error: Exception, size: int, path: str) -> Exception:
        if isinstance(error, (RefusedError, InfrastructureError)):
            return error
        name = self._link.name
        if isinstance(error, TimeoutError):
            return DeadlineError(f"Waited in vain for {name} to take {size} bytes at {path}.")
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        folder = posixpath.dirname(path) or "."
        reason += self._space(folder, size)
        return InfrastructureError(
            f"{size} bytes could not be written to {path} on {name}: {reason}.",
            hint=f"Is there space in {folder} on {name}, and may the user write there? "
            "What had arrived was removed.",
        )


def _sftp_timeout(sftp: paramiko.SFTPClient, end: float) -> None:
    """Let the next answer on ``sftp`` take no longer than until ``end``."""
    channel = sftp.get_channel()
    if channel is not None:
        channel.settimeout(max(0.001, end - time.monotonic()))


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

"""The SFTP side of an emulated host: every request goes to the host's file system."""

from __future__ import annotations

import errno
import os
from typing import Any

import paramiko
from paramiko.common import o777
from paramiko.sftp import SFTP_FAILURE, SFTP_OK, SFTP_OP_UNSUPPORTED

from harness.emulator.vfs import Handle, Status, Vfs


def _attributes(status: Status, name: str = "") -> paramiko.SFTPAttributes:
    found = paramiko.SFTPAttributes()
    found.st_mode = status.mode
    found.st_size = status.size
    found.st_uid = found.st_gid = 0
    found.st_atime = found.st_mtime = int(status.mtime)
    found.filename = name
    found.longname = ""
    if name:
        found.longname = str(found)
    return found


def _failure(problem: OSError) -> int:
    return paramiko.SFTPServer.convert_errno(problem.errno or errno.EIO)


class _File(paramiko.SFTPHandle):
    """An open file; a kernel attribute's refusals become the one word that SFTP has for them."""

    def __init__(self, flags: int, handle: Handle, status: Status) -> None:
        super().__init__(flags)
        self._file = handle
        self._status = status

    def read(self, offset: int, length: int) -> Any:
        try:
            return self._file.pread(offset, length)
        except OSError as problem:
            return _failure(problem)

    def write(self, offset: int, data: Any) -> int:
        try:
            self._file.pwrite(offset, data)
        except OSError as problem:
            return _failure(problem)
        return SFTP_OK

    def stat(self) -> paramiko.SFTPAttributes:
        node = self._file.node
        return _attributes(Status(node.kind | node.mode, node.size, node.mtime, self._status.inode))

    def chattr(self, attr: paramiko.SFTPAttributes) -> int:
        return SFTP_OK

    def close(self) -> None:
        return


class _WholeMessage(paramiko.Message):
    """A request that has no more in it than was sent.

    Paramiko reads zeros beyond the end, and so, by one wrong number, some thousand million attributes.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self._size = len(content)

    def get_bytes(self, n: int) -> bytes:
        """Return the next ``n`` bytes. :raises SFTPError: they are not there."""
        if n > self._size - self.packet.tell():
            raise paramiko.SFTPError("a request is cut off")
        return super().get_bytes(n)


class SftpServer(paramiko.SFTPServer):
    """Paramiko's server, held to what a request holds and to what OpenSSH's offers."""

    def _process(self, t: int, request_number: int, msg: paramiko.Message) -> None:
        whole = _WholeMessage(msg.get_remainder())
        super()._process(t, request_number, whole)  # type: ignore[misc] # not in its stubs

    def _check_file(self, request_number: int, msg: paramiko.Message) -> None:
        # Paramiko's own would read on for ever where a client asks for more than the file has.
        self._send_status(request_number, SFTP_OP_UNSUPPORTED)  # type: ignore[attr-defined] # not in its stubs


class HostSftp(paramiko.SFTPServerInterface):
    """Serves one session's requests from ``files``."""

    def __init__(self, server: paramiko.ServerInterface, files: Vfs, home: str) -> None:
        super().__init__(server)
        self._files = files
        self._home = home

    def canonicalize(self, path: str) -> str:
        """Return ``path`` as an absolute one, counted from the user's home."""
        return os.path.normpath(f"{self._home}/{path}" if not path.startswith("/") else path)

    def list_folder(self, path: str) -> Any:
        """Return what is in the directory ``path``."""
        try:
            names = self._files.listdir(path)
            return [
                _attributes(self._files.status(f"{path.rstrip('/')}/{name}", follow=False), name)
                for name in names
            ]
        except OSError as problem:
            return _failure(problem)

    def stat(self, path: str) -> Any:
        """Return what ``path`` leads to."""
        return self._status(path, follow=True)

    def lstat(self, path: str) -> Any:
        """Return what ``path`` itself is."""
        return self._status(path, follow=False)

    def _status(self, path: str, *, follow: bool) -> Any:
        try:
            return _attributes(self._files.status(path, follow=follow))
        except OSError as problem:
            return _failure(problem)

    def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> Any:
        """Open a file."""
        access = flags & os.O_ACCMODE
        try:
            handle = self._files.open(
                path,
                read=access in (os.O_RDONLY, os.O_RDWR),
                write=access != os.O_RDONLY,
                create=bool(flags & os.O_CREAT),
                truncate=bool(flags & os.O_TRUNC),
                append=bool(flags & os.O_APPEND),
                exclusive=bool(flags & os.O_EXCL),
            )
            return _File(flags, handle, self._files.status(path))
        except OSError as problem:
            return _failure(problem)

    def remove(self, path: str) -> int:
        """Remove a file."""
        return self._change(lambda: self._files.unlink(path))

    def rename(self, oldpath: str, newpath: str) -> int:
        """Give a file a name that is free."""
        if self._files.exists(newpath):  # SFTP v3: the target must not exist; posix_rename may replace it
            return SFTP_FAILURE
        return self._change(lambda: self._files.rename(oldpath, newpath))

    def posix_rename(self, oldpath: str, newpath: str) -> int:
        """Give a file a name, in place of what has it."""
        return self._change(lambda: self._files.rename(oldpath, newpath))

    def mkdir(self, path: str, attr: paramiko.SFTPAttributes) -> int:
        """Make a directory."""
        return self._change(lambda: self._files.mkdir(path))

    def rmdir(self, path: str) -> int:
        """Remove an empty directory."""
        return self._change(lambda: self._files.rmdir(path))

    def chattr(self, path: str, attr: paramiko.SFTPAttributes) -> int:
        """Set permission bits."""

        def change() -> None:
            node = self._files.node(path)
            if attr.st_mode is not None:
                node.mode = attr.st_mode & o777

        return self._change(change)

    def readlink(self, path: str) -> Any:
        """Return where a link leads."""
        try:
            return self._files.readlink(path)
        except OSError as problem:
            return _failure(problem)

    @staticmethod
    def _change(act: Any) -> int:
        try:
            act()
        except OSError as problem:
            return _failure(problem)
        return SFTP_OK

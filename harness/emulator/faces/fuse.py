"""The FUSE face: answers the kernel's requests for a mounted file system from an emulated host's files.

It speaks the kernel's own protocol over an open ``/dev/fuse``, so that no library, and no process between
the kernel and the host, is needed. Nothing is cached on the kernel's side: an attribute that changed is read
as it is now, and a card that moved is found where it is now. Device nodes are shown as plain files; a real
node would lead to this machine's drivers.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from harness.emulator.faces import fuse_messages as fuse
from harness.emulator.faces.fuse_messages import Opcode
from harness.emulator.faces.view import View
from harness.emulator.host import EmulatedHost
from harness.emulator.process import Process
from harness.emulator.vfs import Attribute, Handle, Link, Node, Regular, error

_PAGE: Final = 4096  # kernfs takes no more of one write, whatever its length
#: Longer than a page, so that a longer write is seen to be one and can be cut as kernfs cuts it.
_MAX_WRITE: Final = 2 * _PAGE
_BUFFER: Final = _MAX_WRITE + _PAGE
_ROOT: Final = 1
_MOST_IDLE: Final = 2  # threads that wait for a request
_POLL_SECONDS: Final = 0.02  # of real time, for a lock: it is given up by another thread, not by lab time


@dataclass(frozen=True, slots=True)
class _Request:
    """One request: what it is about, and what follows its header."""

    unique: int
    node: int
    pid: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _File:
    """An open file, as the kernel knows it by number."""

    handle: Handle
    append: bool


class FuseFace:
    """Serves ``host`` over the descriptor ``device`` of ``/dev/fuse``, which it takes over, until unmounted.

    ``stand_ins``: see :class:`View`. Locks that a program of the mount takes exclude the host's own
    programs, and the other way round; a lock is on the whole file.
    """

    def __init__(self, host: EmulatedHost, device: int, stand_ins: Mapping[str, str]) -> None:
        self._host = host
        self._device = device
        self._view = View(host.vfs, stand_ins)
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {"/": _ROOT}
        self._paths = ["", "/"]
        self._files: dict[int, _File] = {}
        self._listings: dict[int, list[tuple[str, int]]] = {}
        self._next_handle = 1
        self._owners: dict[int, Process] = {}
        self._interrupted: set[int] = set()
        self._idle = 0
        self._threads = 0
        self._handlers: dict[int, Callable[[_Request], bytes | None]] = {
            Opcode.LOOKUP: self._lookup,
            Opcode.GETATTR: self._getattr,
            Opcode.SETATTR: self._setattr,
            Opcode.READLINK: self._readlink,
            Opcode.MKDIR: self._mkdir,
            Opcode.UNLINK: self._unlink,
            Opcode.RMDIR: self._rmdir,
            Opcode.RENAME: lambda request: self._rename(request, fuse.RENAME_IN.size),
            Opcode.RENAME2: lambda request: self._rename(request, fuse.RENAME2_IN.size),
            Opcode.OPEN: self._open,
            Opcode.CREATE: self._create,
            Opcode.READ: self._read,
            Opcode.WRITE: self._write,
            Opcode.FLUSH: self._flush,
            Opcode.RELEASE: self._release,
            Opcode.FSYNC: lambda request: b"",
            Opcode.OPENDIR: self._opendir,
            Opcode.READDIR: self._readdir,
            Opcode.RELEASEDIR: self._releasedir,
            Opcode.FSYNCDIR: lambda request: b"",
            Opcode.STATFS: lambda request: fuse.STATFS_OUT.pack(0, 0, 0, 0, 0, _PAGE, 255, _PAGE, 0),
            Opcode.GETLK: self._getlk,
            Opcode.SETLK: lambda request: self._setlk(request, wait=False),
            Opcode.SETLKW: lambda request: self._setlk(request, wait=True),
            Opcode.INTERRUPT: self._interrupt,
            Opcode.INIT: self._init,
            Opcode.DESTROY: lambda request: b"",
            Opcode.FORGET: lambda request: None,  # a path keeps its number for as long as the mount lives
            Opcode.BATCH_FORGET: lambda request: None,
            **dict.fromkeys((Opcode.MKNOD, Opcode.SYMLINK, Opcode.LINK), _not_permitted),
        }

    def start(self) -> None:
        """Answer from now on, in threads of its own."""
        with self._lock:
            self._add_thread()

    # -- threads --------------------------------------------------------------------------------

    def _add_thread(self) -> None:
        self._idle += 1
        self._threads += 1
        threading.Thread(target=self._work, name="fuse", daemon=True).start()

    def _work(self) -> None:
        """Take requests, one at a time. Another thread waits meanwhile, as answering one may take long."""
        while (message := self._next()) is not None:
            with self._lock:
                self._idle -= 1
                if self._idle == 0:
                    self._add_thread()
            self._answer(message)
            with self._lock:
                if self._idle >= _MOST_IDLE:
                    break
                self._idle += 1
        with self._lock:
            self._threads -= 1
            last = self._threads == 0
        if last:
            self._end()

    def _next(self) -> bytes | None:
        """Return the next request; None when there is nothing mounted any more."""
        while True:
            try:
                return os.read(self._device, _BUFFER)
            except OSError as problem:
                # ENOENT: who asked was killed before the request was taken.
                if problem.errno not in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                    return None

    def _end(self) -> None:
        os.close(self._device)
        for process in self._owners.values():
            while process.on_exit:
                process.on_exit.pop()()

    def _answer(self, message: bytes) -> None:
        _, opcode, unique, node, _, _, pid, _, _ = fuse.REQUEST.unpack_from(message)
        handler = self._handlers.get(opcode)
        number, payload = 0, b""
        if handler is None:
            number = errno.ENOSYS
        else:
            try:
                found = handler(_Request(unique, node, pid, message[fuse.REQUEST.size :]))
                if found is None:
                    return
                payload = found
            except OSError as problem:
                number = problem.errno or errno.EIO
            except Exception:  # noqa: BLE001 -- a bug here must not leave the program that asked waiting for ever
                traceback.print_exc(file=sys.stderr)
                number = errno.EIO
        with contextlib.suppress(OSError):  # who asked, or the mount, is gone
            os.write(self._device, fuse.REPLY.pack(fuse.REPLY.size + len(payload), -number, unique) + payload)

    def _init(self, request: _Request) -> bytes:
        _, minor, read_ahead, offered = fuse.INIT_IN.unpack_from(request.body)
        wanted = (
            fuse.POSIX_LOCKS | fuse.ATOMIC_O_TRUNC | fuse.BIG_WRITES | fuse.FLOCK_LOCKS | fuse.PARALLEL_DIROPS
        )
        ours = fuse.VERSION[1]
        return fuse.INIT_OUT.pack(
            fuse.VERSION[0], min(minor, ours), read_ahead, offered & wanted, 0, 0, _MAX_WRITE, 1, 0, 0, 0
        )

    # -- names and attributes -------------------------------------------------------------------

    def _path(self, node: int) -> str:
        return self._paths[node]

    def _below(self, node: int, name: bytes) -> str:
        return f"{self._paths[node].rstrip('/')}/{os.fsdecode(name.rstrip(bytes(1)))}"

    def _number(self, path: str) -> int:
        with self._lock:
            number = self._numbers.setdefault(path, len(self._paths))
            if number == len(self._paths):
                self._paths.append(path)
            return number

    def _attributes(self, node: Node, number: int) -> bytes:
        kind = stat.S_IFREG if node.kind == stat.S_IFCHR else node.kind
        links = 2 if kind == stat.S_IFDIR else 1
        seconds, part = divmod(node.mtime, 1)
        moment, nanoseconds = int(seconds), int(part * 1e9)
        return fuse.ATTRIBUTES.pack(
            *(number, node.size, -(-node.size // 512), moment, moment, moment),
            *(nanoseconds, nanoseconds, nanoseconds, kind | node.mode, links, 0, 0, 0, _PAGE, 0),
        )

    def _entry(self, path: str) -> bytes:
        node, number = self._view.node(path), self._number(path)
        return fuse.ENTRY_HEAD.pack(number, 0, 0, 0, 0, 0) + self._attributes(node, number)

    def _lookup(self, request: _Request) -> bytes:
        return self._entry(self._below(request.node, request.body))

    def _getattr(self, request: _Request) -> bytes:
        flags, _, number = fuse.GETATTR_IN.unpack_from(request.body)
        file = self._files.get(number) if flags & fuse.BY_HANDLE else None
        return self._status(request.node, file.handle.node if file else None)

    def _status(self, number: int, node: Node | None = None) -> bytes:
        """Return the attributes of the node with that number; of ``node``, where it is open."""
        node = node or self._view.node(self._path(number))
        return fuse.ATTRIBUTES_HEAD.pack(0, 0, 0) + self._attributes(node, number)

    def _setattr(self, request: _Request) -> bytes:
        valid, _, _, size, *_, mode, _, _, _, _ = fuse.SETATTR_IN.unpack_from(request.body)
        node = self._view.node(self._path(request.node))
        if valid & fuse.SET_MODE:
            node.mode = stat.S_IMODE(mode)
        if valid & fuse.SET_SIZE and isinstance(node, Regular):
            node.data = node.data[:size].ljust(size, b"\0")
        return self._status(request.node)

    def _readlink(self, request: _Request) -> bytes:
        node = self._view.node(self._path(request.node))
        if not isinstance(node, Link):
            raise error(errno.EINVAL, self._path(request.node))
        return os.fsencode(node.target)

    # -- changing directories -------------------------------------------------------------------

    def _mkdir(self, request: _Request) -> bytes:
        path = self._below(request.node, request.body[fuse.MKDIR_IN.size :])
        self._view.of(self._path(request.node)).mkdir(path)
        return self._entry(path)

    def _unlink(self, request: _Request) -> bytes:
        path = self._below(request.node, request.body)
        self._view.of(path).unlink(path)
        return b""

    def _rmdir(self, request: _Request) -> bytes:
        path = self._below(request.node, request.body)
        self._view.of(path).rmdir(path)
        return b""

    def _rename(self, request: _Request, head: int) -> bytes:
        (directory,) = fuse.RENAME_IN.unpack_from(request.body)
        old, new, *_ = request.body[head:].split(b"\0")
        self._view.rename(self._below(request.node, old), self._below(directory, new))
        return b""

    # -- files ----------------------------------------------------------------------------------

    def _opened(self, handle: Handle, flags: int) -> bytes:
        with self._lock:
            number = self._next_handle
            self._next_handle += 1
            self._files[number] = _File(handle, bool(flags & os.O_APPEND))
        return fuse.OPEN_OUT.pack(number, fuse.DIRECT_IO, 0)

    def _open(self, request: _Request) -> bytes:
        flags, _ = fuse.OPEN_IN.unpack_from(request.body)
        path = self._path(request.node)
        access = flags & os.O_ACCMODE
        handle = self._view.of(path).open(
            path,
            read=access in (os.O_RDONLY, os.O_RDWR),
            write=access in (os.O_WRONLY, os.O_RDWR),
            truncate=bool(flags & os.O_TRUNC),
            append=bool(flags & os.O_APPEND),
        )
        return self._opened(handle, flags)

    def _create(self, request: _Request) -> bytes:
        flags, mode, umask, _ = fuse.CREATE_IN.unpack_from(request.body)
        path = self._below(request.node, request.body[fuse.CREATE_IN.size :])
        handle = self._view.create(path, exclusive=bool(flags & os.O_EXCL))
        handle.node.mode = stat.S_IMODE(mode & ~umask)
        return self._entry(path) + self._opened(handle, flags)

    def _read(self, request: _Request) -> bytes:
        number, offset, size, *_ = fuse.READ_IN.unpack_from(request.body)
        return self._files[number].handle.pread(offset, size)

    def _write(self, request: _Request) -> bytes:
        number, offset, size, *_ = fuse.WRITE_IN.unpack_from(request.body)
        file = self._files[number]
        data = request.body[fuse.WRITE_IN.size : fuse.WRITE_IN.size + size]
        if isinstance(file.handle.node, Attribute):
            data = data[:_PAGE]
        if file.append:  # the kernel counts from the size, which for an attribute says nothing
            file.handle.write(data)
        else:
            file.handle.pwrite(offset, data)
        return fuse.WRITE_OUT.pack(len(data), 0)

    def _flush(self, request: _Request) -> bytes:
        number, _, _, owner = fuse.FLUSH_IN.unpack_from(request.body)
        self._unlock(number, owner)
        return b""

    def _release(self, request: _Request) -> bytes:
        number, _, flags, owner = fuse.RELEASE_IN.unpack_from(request.body)
        if flags & fuse.RELEASE_FLOCK:
            self._unlock(number, owner)
        del self._files[number]
        return b""

    # -- listing --------------------------------------------------------------------------------

    def _opendir(self, request: _Request) -> bytes:
        path = self._path(request.node)
        listing = [(".", stat.S_IFDIR), ("..", stat.S_IFDIR)]
        for name in self._view.names(path):
            kind = self._view.node(f"{path.rstrip('/')}/{name}").kind
            listing.append((name, stat.S_IFREG if kind == stat.S_IFCHR else kind))
        with self._lock:
            number = self._next_handle
            self._next_handle += 1
            self._listings[number] = listing
        return fuse.OPEN_OUT.pack(number, 0, 0)

    def _readdir(self, request: _Request) -> bytes:
        number, offset, size, *_ = fuse.READ_IN.unpack_from(request.body)
        found = bytearray()
        for index, (name, kind) in enumerate(self._listings[number][offset:], offset + 1):
            inode = (
                request.node
                if name in (".", "..")
                else self._number(self._below(request.node, name.encode()))
            )
            entry = fuse.directory_entry(inode, index, os.fsencode(name), kind)
            if len(found) + len(entry) > size:
                break
            found += entry
        return bytes(found)

    def _releasedir(self, request: _Request) -> bytes:
        number, *_ = fuse.RELEASE_IN.unpack_from(request.body)
        del self._listings[number]
        return b""

    # -- locks ----------------------------------------------------------------------------------

    def _owner(self, owner: int, pid: int) -> Process:
        """Return what stands for the owner of a lock among those who hold the host's locks."""
        with self._lock:
            if owner not in self._owners:
                self._owners[owner] = Process(pid, 1, ["(a program of a mount)"], self._host.clock)
            return self._owners[owner]

    def _unlock(self, number: int, owner: int) -> None:
        process = self._owners.get(owner)
        if process is not None:
            self._host.locks.release(self._files[number].handle.node, process)

    def _getlk(self, request: _Request) -> bytes:
        number, owner, start, end, kind, *_ = fuse.LOCK_IN.unpack_from(request.body)
        node, process = self._files[number].handle.node, self._owner(owner, request.pid)
        holder = self._host.locks.conflict(node, process, exclusive=kind == fcntl.F_WRLCK)
        if holder is None:
            return fuse.LOCK.pack(start, end, fcntl.F_UNLCK, 0)
        return fuse.LOCK.pack(start, end, fcntl.F_WRLCK, holder.pid)

    def _setlk(self, request: _Request, *, wait: bool) -> bytes:
        number, owner, _, _, kind, *_ = fuse.LOCK_IN.unpack_from(request.body)
        if kind == fcntl.F_UNLCK:
            self._unlock(number, owner)
            return b""
        node, process = self._files[number].handle.node, self._owner(owner, request.pid)
        while not self._host.locks.acquire(node, process, exclusive=kind == fcntl.F_WRLCK):
            if not wait:
                raise error(errno.EAGAIN, self._path(request.node))
            if request.unique in self._interrupted:
                self._interrupted.discard(request.unique)
                raise error(errno.EINTR, self._path(request.node))
            time.sleep(_POLL_SECONDS)
        return b""

    def _interrupt(self, request: _Request) -> None:
        """A signal came for who waits: that ends waiting for a lock, and nothing that an attribute does."""
        self._interrupted.add(*fuse.INTERRUPT_IN.unpack_from(request.body))


def _not_permitted(request: _Request) -> bytes:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))

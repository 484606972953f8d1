"""What names in the file system of an emulated host stand for, and what an open file does."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

_ATTRIBUTE_SIZE = 4096  # st_size of every sysfs attribute


def error(number: int, path: str) -> OSError:
    """Return the ``OSError`` of ``number`` for ``path``, with the text of the C library."""
    return OSError(number, os.strerror(number), path)


class Node:
    """What a name in a directory stands for. ``mode`` holds the permission bits only."""

    __slots__ = ("mode", "mtime", "removed")
    kind = 0

    def __init__(self, mode: int) -> None:
        self.mode = mode
        self.mtime = 0.0
        self.removed = False

    @property
    def size(self) -> int:
        """What ``st_size`` says."""
        return 0


class Directory(Node):
    """A directory; a ``kernel`` one (sysfs, procfs) takes no new names from user space."""

    __slots__ = ("children", "kernel")
    kind = stat.S_IFDIR

    def __init__(self, *, kernel: bool = False) -> None:
        super().__init__(0o755)
        self.children: dict[str, Node] = {}
        self.kernel = kernel

    @property
    def size(self) -> int:
        """What ``st_size`` says."""
        return 0 if self.kernel else 4096


class Disk:
    """The room that the plain files of a host share.

    :param used: counts the bytes in all of them anew. :param capacity: bytes that they may hold.
    """

    def __init__(self, used: Callable[[], int], capacity: int) -> None:
        self._count = used
        self.capacity = capacity
        #: Whether somebody else has taken all that was free; what is there can be read and written over.
        self.full = False
        #: Whether nothing on it can be changed.
        self.read_only = False
        self._used = 0

    @property
    def used(self) -> int:
        """Bytes that are not free."""
        return self.capacity if self.full else min(self._count(), self.capacity)

    def take(self, count: int, path: str) -> None:
        """Let a file grow by ``count`` bytes. :raises OSError: ENOSPC."""
        if count <= 0:
            return
        if self._used + count > self.capacity:
            self._used = self._count()  # files have gone since
        if self.full or self._used + count > self.capacity:
            raise error(errno.ENOSPC, path)
        self._used += count

    def check_writable(self, path: str) -> None:
        """:raises OSError: EROFS."""
        if self.read_only:
            raise error(errno.EROFS, path)


#: A hole in a file takes memory here; no writer of an image leaves one, and a real file system would.
_LARGEST_HOLE = 1 << 24


class Regular(Node):
    """A plain file. ``disk``: where it takes its room from once it is opened to be written."""

    __slots__ = ("data", "disk")
    kind = stat.S_IFREG

    def __init__(self, data: bytes = b"", mode: int = 0o644) -> None:
        super().__init__(mode)
        self.data = bytearray(data)
        self.disk: Disk | None = None

    @property
    def size(self) -> int:
        """What ``st_size`` says."""
        return len(self.data)


class Link(Node):
    """A symbolic link."""

    __slots__ = ("target",)
    kind = stat.S_IFLNK

    def __init__(self, target: str) -> None:
        super().__init__(0o777)
        self.target = target

    @property
    def size(self) -> int:
        """What ``st_size`` says."""
        return len(self.target)


class Attribute(Node):
    """A kernel attribute: ``show`` is its text or makes it at each read, ``store`` takes what is written.

    Either may raise ``OSError``; a missing one means that opening that way is refused (EACCES), which
    the kernel does to root as well. ``store`` is given the bytes and the offset of one write.
    """

    __slots__ = ("show", "store")
    kind = stat.S_IFREG

    def __init__(
        self,
        show: Callable[[], bytes] | bytes | None = None,
        store: Callable[[bytes, int], None] | None = None,
    ) -> None:
        super().__init__((0o444 if show is not None else 0) | (0o200 if store else 0))
        self.show = show
        self.store = store

    def text(self) -> bytes:
        """Return what a read gives. :raises OSError: what the kernel answers to it."""
        assert self.show is not None
        return self.show if isinstance(self.show, bytes) else self.show()

    def opened(self, path: str) -> Handle:
        """Return a new open file of it."""
        return Handle(self, path)

    @property
    def size(self) -> int:
        """What ``st_size`` says."""
        return _ATTRIBUTE_SIZE


class Device(Attribute):
    """A character device; ``/dev/null`` by default."""

    __slots__ = ()
    kind = stat.S_IFCHR

    def __init__(self) -> None:
        super().__init__(b"", lambda data, offset: None)
        self.mode = 0o666

    @property
    def size(self) -> int:
        """What ``st_size`` says."""
        return 0


@dataclass(frozen=True, slots=True)
class Status:
    """What ``stat`` says about a node."""

    mode: int
    size: int
    mtime: float
    inode: int


class Handle:
    """An open file. One attribute read is made when it is first read, as seq_file does."""

    __slots__ = ("_append", "_offset", "_path", "_snapshot", "node")

    def __init__(self, node: Regular | Attribute, path: str, *, append: bool = False) -> None:
        self.node = node
        self._path = path
        self._append = append
        self._offset = 0
        self._snapshot: bytes | None = None

    def pread(self, offset: int, length: int | None = None) -> bytes:
        """Return up to ``length`` bytes from ``offset``; all that follow where it is None."""
        content: bytes | bytearray
        if isinstance(self.node, Attribute):
            self._check_present()
            if self._snapshot is None or offset == 0:
                self._snapshot = self.node.text()
            content = self._snapshot
        else:
            content = self.node.data
        end = len(content) if length is None else offset + length
        if offset == 0 and end >= len(content):
            return bytes(content)
        # Not by a view: while one is there, a writer in another thread could not make the file longer.
        return bytes(content[offset:end])

    def pwrite(self, offset: int, data: bytes) -> None:
        """Write ``data`` at ``offset``; an attribute sees each write on its own."""
        if isinstance(self.node, Attribute):
            self._check_present()
            assert self.node.store is not None
            self.node.store(data, offset)
            return
        content = self.node.data
        if offset - len(content) > _LARGEST_HOLE:
            raise error(errno.ENOSPC, self._path)
        if self.node.disk is not None:
            self.node.disk.take(offset + len(data) - len(content), self._path)
        if offset > len(content):
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data

    def _check_present(self) -> None:
        """:raises OSError: ENODEV, as sysfs says for a file whose device went while it was open."""
        if self.node.removed:
            raise error(errno.ENODEV, self._path)

    def read(self, length: int | None = None) -> bytes:
        """Return the next bytes, empty at the end."""
        data = self.pread(self._offset, length)
        self._offset += len(data)
        return data

    def write(self, data: bytes) -> None:
        """Write ``data`` at the current position (at the end where opened to append)."""
        offset = self.node.size if self._append and isinstance(self.node, Regular) else self._offset
        self.pwrite(offset, data)
        self._offset = offset + len(data)


def mark_removed(node: Node) -> None:
    """Tell the open files of ``node`` and of all below it that they are gone."""
    node.removed = True
    if isinstance(node, Directory):
        for child in node.children.values():
            mark_removed(child)

"""The one file system of an emulated host: files, links and kernel attributes that react when touched.

Every face of the host (shell programs, SFTP) goes through :class:`Vfs`, and every failure is an
``OSError`` with the errno that Linux gives; no face decides anything of its own.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

from harness.emulator.patterns import has_magic, pattern_regex, unescape

_MAX_LINKS = 40  # what Linux allows before ELOOP
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


class Regular(Node):
    """A plain file."""

    __slots__ = ("data",)
    kind = stat.S_IFREG

    def __init__(self, data: bytes = b"", mode: int = 0o644) -> None:
        super().__init__(mode)
        self.data = bytearray(data)

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
        return bytes(memoryview(content)[offset:end])

    def pwrite(self, offset: int, data: bytes) -> None:
        """Write ``data`` at ``offset``; an attribute sees each write on its own."""
        if isinstance(self.node, Attribute):
            self._check_present()
            assert self.node.store is not None
            self.node.store(data, offset)
            return
        content = self.node.data
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


class Vfs:
    """A tree of nodes, addressed by absolute POSIX paths."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self.root = Directory()
        self._now = now
        self._lock = threading.RLock()
        #: Where :meth:`place` put something last: a tree is built directory by directory.
        self._built: tuple[str, Directory] | None = None

    # -- resolving ------------------------------------------------------------------------------

    def _walk(self, path: str, *, follow: bool) -> tuple[list[str], Node]:
        """Return the canonical components of ``path`` and its node."""
        pending = [part for part in path.split("/") if part][::-1]
        trail: list[tuple[str, Node]] = []
        links = 0
        while pending:
            part = pending.pop()
            current = trail[-1][1] if trail else self.root
            if not isinstance(current, Directory):
                raise error(errno.ENOTDIR, path)
            if part == ".":
                continue
            if part == "..":
                if trail:
                    trail.pop()
                continue
            node = current.children.get(part)
            if node is None:
                raise error(errno.ENOENT, path)
            if isinstance(node, Link) and (pending or follow or path.endswith("/")):
                links += 1
                if links > _MAX_LINKS:
                    raise error(errno.ELOOP, path)
                if node.target.startswith("/"):
                    trail.clear()
                pending.extend([step for step in node.target.split("/") if step][::-1])
                continue
            trail.append((part, node))
        node = trail[-1][1] if trail else self.root
        if path.endswith("/") and not isinstance(node, Directory):
            raise error(errno.ENOTDIR, path)
        return [name for name, _ in trail], node

    def node(self, path: str, *, follow: bool = True) -> Node:
        """Return the node at ``path``. :raises OSError: ENOENT, ENOTDIR or ELOOP."""
        with self._lock:
            return self._walk(path, follow=follow)[1]

    def exists(self, path: str) -> bool:
        """Return whether ``path`` leads to something."""
        try:
            self.node(path)
        except OSError:
            return False
        return True

    def realpath(self, path: str) -> str:
        """Return the canonical path of ``path``, which must exist."""
        with self._lock:
            return "/" + "/".join(self._walk(path, follow=True)[0])

    def _parent(self, path: str) -> tuple[Directory, str]:
        head, _, name = path.rstrip("/").rpartition("/")
        if not name:
            raise error(errno.EEXIST, path)
        parent = self.node(head or "/")
        if not isinstance(parent, Directory):
            raise error(errno.ENOTDIR, path)
        return parent, name

    # -- reading --------------------------------------------------------------------------------

    def status(self, path: str, *, follow: bool = True) -> Status:
        """Return what ``stat`` (``lstat`` where not ``follow``) says."""
        node = self.node(path, follow=follow)
        return Status(node.kind | node.mode, node.size, node.mtime, id(node) & 0xFFFFFFFF)

    def listdir(self, path: str) -> list[str]:
        """Return the names in ``path``, sorted. :raises OSError: ENOENT, ENOTDIR."""
        with self._lock:
            node = self.node(path)
            if not isinstance(node, Directory):
                raise error(errno.ENOTDIR, path)
            return sorted(node.children)

    def readlink(self, path: str) -> str:
        """Return the target of the link at ``path``. :raises OSError: EINVAL where it is none."""
        node = self.node(path, follow=False)
        if not isinstance(node, Link):
            raise error(errno.EINVAL, path)
        return node.target

    def open(
        self,
        path: str,
        *,
        read: bool = True,
        write: bool = False,
        create: bool = False,
        truncate: bool = False,
        append: bool = False,
        exclusive: bool = False,
    ) -> Handle:
        """Open ``path`` as ``open(2)`` does, with the same refusals."""
        with self._lock:
            try:
                node = self.node(path)
            except FileNotFoundError:
                if not create:
                    raise
                node = self._create(path)
            else:
                if exclusive:
                    raise error(errno.EEXIST, path)
            if isinstance(node, Directory):
                raise error(errno.EISDIR, path)  # for reading, Linux says so at the first read
            if isinstance(node, Attribute):
                if (read and node.show is None) or (write and node.store is None):
                    raise error(errno.EACCES, path)
                return node.opened(path)
            assert isinstance(node, Regular)
            if write:
                node.mtime = self._now()
            if write and truncate:
                node.data = bytearray()
        return Handle(node, path, append=append)

    def _create(self, path: str) -> Regular:
        if path.endswith("/"):
            raise error(errno.EISDIR, path)
        parent, name = self._parent(path)
        if parent.kernel:
            raise error(errno.EACCES, path)
        existing = parent.children.get(name)
        if isinstance(existing, Link):  # a dangling link: the file is made where it points
            target = existing.target
            base = path.rpartition("/")[0]
            return self._create(target if target.startswith("/") else f"{base}/{target}")
        node = parent.children[name] = Regular()
        return node

    def read(self, path: str) -> bytes:
        """Return the whole content of ``path``."""
        return self.open(path).read()

    def glob(self, pattern: str) -> list[str]:
        """Return the sorted paths that the absolute ``pattern`` (``\\`` quotes) matches, as a shell does."""
        found: list[tuple[str, Node]] = [("", self.root)]
        with self._lock:
            for part in pattern.split("/"):
                if part:
                    found = [match for path, node in found for match in self._matches(path, node, part)]
            paths = [path for path, _ in found]
        if pattern.endswith("/"):
            paths = [f"{path}/" for path in paths if self._is_directory(path)]
        return sorted(paths)

    def _matches(self, path: str, node: Node, part: str) -> list[tuple[str, Node]]:
        """Return what ``part`` of a pattern matches in the directory ``node`` at ``path``."""
        try:
            if isinstance(node, Link):
                node = self.node(path)
            if part in (".", ".."):
                return [(f"{path}/{part}", self.node(f"{path}/{part}"))]
        except OSError:
            return []
        if not isinstance(node, Directory):
            return []
        if not has_magic(part):
            child = node.children.get(unescape(part))
            return [] if child is None else [(f"{path}/{unescape(part)}", child)]
        matches = pattern_regex(part).fullmatch
        hidden = part.startswith(".")
        return [
            (f"{path}/{name}", child)
            for name, child in node.children.items()
            if matches(name) and (hidden or not name.startswith("."))
        ]

    def _is_directory(self, path: str) -> bool:
        try:
            return isinstance(self.node(path), Directory)
        except OSError:
            return False

    # -- changing -------------------------------------------------------------------------------

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Make ``path`` a plain file with ``data``, its directories too (for building a tree)."""
        self.place(path, Regular(data, mode))

    def place(self, path: str, node: Node, *, kernel: bool = False) -> None:
        """Put ``node`` at ``path``; missing directories are made (``kernel`` ones where so asked)."""
        head, _, name = path.rpartition("/")
        with self._lock:
            if self._built is None or self._built[0] != head:
                self._built = (head, self._made(head, kernel))
            node.mtime = self._now()
            self._built[1].children[sys.intern(name)] = node

    def _made(self, path: str, kernel: bool) -> Directory:
        """Return the directory at ``path``, made where it is missing. Links are not followed."""
        parent = self.root
        for part in path.split("/"):
            if not part:
                continue
            child = parent.children.get(part)
            if child is None:
                child = parent.children[sys.intern(part)] = Directory(kernel=kernel or parent.kernel)
            if not isinstance(child, Directory):
                raise error(errno.ENOTDIR, path)
            parent = child
        return parent

    def remove_tree(self, path: str) -> None:
        """Take away ``path`` and all below it; nothing where it is not there (for building a tree)."""
        with self._lock:
            try:
                parent, name = self._parent(path)
            except OSError:
                return
            gone = parent.children.pop(name, None)
            self._built = None
            if gone is not None:
                _mark_removed(gone)

    def mkdir(self, path: str) -> None:
        """``mkdir(2)``."""
        with self._lock:
            parent, name = self._parent(path)
            if name in parent.children:
                raise error(errno.EEXIST, path)
            if parent.kernel:
                raise error(errno.EPERM, path)
            parent.children[name] = node = Directory()
            node.mtime = self._now()

    def unlink(self, path: str) -> None:
        """``unlink(2)``: EISDIR for a directory, EPERM below a kernel directory."""
        with self._lock:
            node = self.node(path, follow=False)
            parent, name = self._parent(path)
            if isinstance(node, Directory):
                raise error(errno.EISDIR, path)
            if parent.kernel:
                raise error(errno.EPERM, path)
            del parent.children[name]
            self._built = None

    def rmdir(self, path: str) -> None:
        """``rmdir(2)``."""
        with self._lock:
            node = self.node(path, follow=False)
            parent, name = self._parent(path)
            if not isinstance(node, Directory):
                raise error(errno.ENOTDIR, path)
            if parent.kernel:
                raise error(errno.EPERM, path)
            if node.children:
                raise error(errno.ENOTEMPTY, path)
            del parent.children[name]
            self._built = None

    def rename(self, source: str, target: str) -> None:
        """``rename(2)`` of anything onto a free name or a plain file."""
        with self._lock:
            node = self.node(source, follow=False)
            old, old_name = self._parent(source)
            new, new_name = self._parent(target)
            if old.kernel or new.kernel:
                raise error(errno.EPERM, source)
            if isinstance(new.children.get(new_name), Directory):
                raise error(errno.EISDIR, target)
            del old.children[old_name]
            self._built = None
            new.children[new_name] = node


def _mark_removed(node: Node) -> None:
    """Tell the open files of ``node`` and of all below it that they are gone."""
    node.removed = True
    if isinstance(node, Directory):
        for child in node.children.values():
            _mark_removed(child)

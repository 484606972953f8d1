"""The one file system of an emulated host: files, links and kernel attributes that react when touched.

Every face of the host (shell programs, SFTP) goes through :class:`Vfs`, and every failure is an
``OSError`` with the errno that Linux gives; no face decides anything of its own.
"""

from __future__ import annotations

import errno
import sys
import threading
from collections.abc import Callable

from harness.emulator.nodes import (
    Attribute,
    Device,
    Directory,
    Disk,
    Handle,
    Link,
    Node,
    Regular,
    Status,
    error,
    mark_removed,
)
from harness.emulator.patterns import has_magic, pattern_regex, unescape

__all__ = ["Attribute", "Device", "Directory", "Handle", "Link", "Node", "Regular", "Status", "Vfs", "error"]

_MAX_LINKS = 40  # what Linux allows before ELOOP
_MOST_REMEMBERED = 1024  # paths
_LONGEST_PATH, _LONGEST_NAME = 4095, 255  # bytes, of Linux; PATH_MAX counts the end too
#: Linux knows no such limit; programs that go down a tree here do it by recursion.
_DEEPEST = 100
#: What a pattern may match: a real shell would go on until its memory ends.
_MOST_MATCHES = 10_000
#: What plain files may hold in all: a few images of the largest size.
_DISK_BYTES = 512 << 20
#: File systems in memory, which stay writable where the disk does not.
_IN_MEMORY = ("dev", "proc", "run", "sys")


class Vfs:
    """A tree of nodes, addressed by absolute POSIX paths."""

    def __init__(self, now: Callable[[], float] = lambda: 0.0) -> None:
        self.root = Directory()
        self.disk = Disk(self._used, _DISK_BYTES)
        self._now = now
        self._lock = threading.RLock()
        #: Where :meth:`place` put something last: a tree is built directory by directory.
        self._built: tuple[str, Directory] | None = None
        #: Where paths lead, and the folders of patterns, until a directory or a link changes: the same
        #: attributes are read again and again.
        self._reached: dict[str, Directory] = {}
        self._matched: dict[str, list[tuple[str, Node]]] = {}

    # -- resolving ------------------------------------------------------------------------------

    def _walk(self, path: str, *, follow: bool) -> tuple[list[str], Node]:
        """Return the canonical components of ``path`` and its node."""
        if len(path) > _LONGEST_PATH:
            raise error(errno.ENAMETOOLONG, path)
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
            if follow and (reached := self._reached.get(path)) is not None:
                return reached
            head, _, name = path.rpartition("/")
            node = self._reached[head].children.get(name) if head in self._reached else None
            if node is None or isinstance(node, Link):
                node = self._walk(path, follow=follow)[1]
                self._remember(head, self._walk(head, follow=True)[1])
            if follow:
                self._remember(path, node)
            return node

    def _remember(self, path: str, node: Node) -> None:
        if isinstance(node, Directory):
            if len(self._reached) >= _MOST_REMEMBERED:
                self._reached.clear()
            self._reached[path] = node

    def _forget(self) -> None:
        self._reached.clear()
        self._matched.clear()

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

    def _parent(self, path: str, dots: int = errno.EINVAL) -> tuple[Directory, str]:
        """Return where the name of ``path`` stands, to be made, moved or removed.

        :param dots: errno where that name is ``.`` or ``..``, which nobody can do that with.
        """
        head, _, name = path.rstrip("/").rpartition("/")
        if not name:
            raise error(errno.EEXIST, path)
        trail, parent = self._walk(head or "/", follow=True)
        if not isinstance(parent, Directory):
            raise error(errno.ENOTDIR, path)
        if name in (".", ".."):
            raise error(dots, path)
        if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME or len(trail) > _DEEPEST:
            raise error(errno.ENAMETOOLONG, path)
        if trail[:1] not in ([place] for place in _IN_MEMORY):
            self.disk.check_writable(path)
        return parent, name

    def _used(self) -> int:
        """Count the bytes in all plain files."""
        with self._lock:
            pending: list[Node] = [self.root]
            used = 0
            while pending:
                node = pending.pop()
                if isinstance(node, Directory):
                    pending.extend(node.children.values())
                elif isinstance(node, Regular):
                    used += len(node.data)
            return used

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
                self._prepare(node, path)
            if write and truncate:
                node.data = bytearray()
        return Handle(node, path, append=append)

    def _prepare(self, node: Regular, path: str) -> None:
        """Let ``node`` be written. :raises OSError: EROFS."""
        if self.disk.read_only and self.realpath(path).split("/")[1] not in _IN_MEMORY:
            raise error(errno.EROFS, path)
        node.disk = self.disk
        node.mtime = self._now()

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
        folder, _, name = pattern.rstrip("/").rpartition("/")
        with self._lock:
            folders = self._folders(folder)
            found = [match for path, node in folders for match in self._matches(path, node, name)]
            paths = [path for path, _ in (found if name else folders)]
            if len(paths) > _MOST_MATCHES:
                raise error(errno.E2BIG, pattern)
        if pattern.endswith("/"):
            paths = [f"{path}/" for path in paths if self._is_directory(path)]
        return sorted(paths)

    def _folders(self, pattern: str) -> list[tuple[str, Node]]:
        """Return what ``pattern`` matches, to look below it."""
        found = self._matched.get(pattern)
        if found is None:
            found = [("", self.root)]
            for part in pattern.split("/"):
                if part:
                    found = [match for path, node in found for match in self._matches(path, node, part)]
                if len(found) > _MOST_MATCHES:
                    raise error(errno.E2BIG, pattern)
            if len(self._matched) >= _MOST_REMEMBERED:
                self._matched.clear()
            self._matched[pattern] = found
        return found

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
            self._forget()

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
            head, _, name = path.rpartition("/")
            try:
                parent = self.node(head or "/")
            except OSError:
                return
            gone = parent.children.pop(name, None) if isinstance(parent, Directory) else None
            self._built = None
            self._forget()
            if gone is not None:
                mark_removed(gone)

    def mkdir(self, path: str) -> None:
        """``mkdir(2)``."""
        with self._lock:
            parent, name = self._parent(path, dots=errno.EEXIST)
            if name in parent.children:
                raise error(errno.EEXIST, path)
            if parent.kernel:
                raise error(errno.EPERM, path)
            parent.children[name] = node = Directory()
            node.mtime = self._now()
            self._forget()

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
            if isinstance(node, Link):
                self._forget()

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
            self._forget()

    def rename(self, source: str, target: str) -> None:
        """``rename(2)``: a free name, or the place of what can be replaced by it."""
        with self._lock:
            node = self.node(source, follow=False)
            old, old_name = self._parent(source, dots=errno.EBUSY)
            new, new_name = self._parent(target, dots=errno.EBUSY)
            if old.kernel or new.kernel:
                raise error(errno.EPERM, source)
            self._check_replaces(node, source, target, new.children.get(new_name))
            del old.children[old_name]
            self._built = None
            new.children[new_name] = node
            self._forget()

    def _check_replaces(self, node: Node, source: str, target: str, there: Node | None) -> None:
        """:raises OSError: ``node`` cannot come in the place of what is ``there``."""
        if isinstance(node, Directory):
            if node.kernel:
                raise error(errno.EBUSY, source)  # a file system of its own is mounted there
            below = self._walk(target.rstrip("/").rpartition("/")[0] or "/", follow=True)[0]
            above = self._walk(source, follow=False)[0]
            if below[: len(above)] == above:
                raise error(errno.EINVAL, target)
        if there is None:
            return
        if isinstance(there, Directory) and not isinstance(node, Directory):
            raise error(errno.EISDIR, target)
        if isinstance(node, Directory) and not isinstance(there, Directory):
            raise error(errno.ENOTDIR, target)
        if isinstance(there, Directory) and there.children and there is not node:
            raise error(errno.ENOTEMPTY, target)

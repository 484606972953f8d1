"""What a mount shows: an emulated host's files, with places among them for a few of this machine's own."""

from __future__ import annotations

import errno
from collections.abc import Mapping

from harness.emulator.vfs import Directory, Handle, Link, Node, Regular, Vfs, error


class View:
    """The files of a host and, where it has none of that name, stand-ins for what is mounted over them.

    ``stand_ins``: path -> ``file``, ``directory``, or ``link:TARGET``. Paths are canonical: the kernel has
    resolved the links in them.
    """

    def __init__(self, files: Vfs, stand_ins: Mapping[str, str]) -> None:
        self._files = files
        self._stand_ins = Vfs()
        for path, kind in stand_ins.items():
            target = kind.removeprefix("link:")
            nodes: dict[str, Node] = {"file": Regular(), "directory": Directory()}
            self._stand_ins.place(path, nodes.get(kind) or Link(target))

    def of(self, path: str) -> Vfs:
        """Return the files in which ``path`` is to be looked for."""
        if not _has(self._files, path) and _has(self._stand_ins, path):
            return self._stand_ins
        return self._files

    def node(self, path: str) -> Node:
        """Return the node at ``path`` itself. :raises OSError: ENOENT, ENOTDIR."""
        return self.of(path).node(path, follow=False)

    def names(self, path: str) -> list[str]:
        """Return what is in the directory ``path``, sorted. :raises OSError: ENOENT, ENOTDIR."""
        places = [files for files in (self._files, self._stand_ins) if _has(files, path)]
        if not places:
            raise error(errno.ENOENT, path)
        return sorted({name for files in places for name in files.listdir(path)})

    def create(self, path: str, *, exclusive: bool) -> Handle:
        """Open a plain file at ``path``, made where it is missing, to read and write."""
        files = self.of(path) if _has(self.of(path), path) else self.of(path.rpartition("/")[0])
        return files.open(path, write=True, create=True, exclusive=exclusive)

    def rename(self, source: str, target: str) -> None:
        """``rename(2)``. :raises OSError: EXDEV from the host to a stand-in or back, else as Linux."""
        files = self.of(source)
        if files is not self.of(target.rpartition("/")[0]):
            raise error(errno.EXDEV, target)
        files.rename(source, target)


def _has(files: Vfs, path: str) -> bool:
    try:
        files.node(path, follow=False)
    except OSError:
        return False
    return True

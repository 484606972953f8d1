"""The files of a recorded host: what was captured as it was, and an error that names all else."""

from __future__ import annotations

import errno
import posixpath
import stat
from collections.abc import Callable, Iterable, Mapping

from harness.emulator.vfs import Attribute, Directory, Link, Node, Vfs
from harness.recordings.model import Entry

#: What programs say of a path that the recording knows nothing of.
NOT_RECORDED = "Not in the recording"


#: The root and what is below these is listed as it is here: a face that stands in for a machine's own tree
#: has to go through them.
_OWN_LISTINGS = frozenset({"", "proc", "dev", "run"})


class NotRecorded(OSError):
    """Something was asked for that the recording does not hold; no real kernel gives this errno for files."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ENODATA, NOT_RECORDED, path)


class Partial(Directory):
    """A directory of which only some names are in the recording."""

    __slots__ = ()


class LeftOut(Attribute):
    """What was there and was not captured."""

    __slots__ = ("_kind",)

    def __init__(self, kind: int, read: Callable[[], bytes], write: Callable[[bytes, int], None]) -> None:
        super().__init__(read, write)
        self._kind = kind

    @property
    def kind(self) -> int:  # type: ignore[override] # a constant of the class elsewhere
        """The kind of file that it was."""
        return self._kind


class RecordedVfs(Vfs):
    """A file system that tells what was absent from what was not captured.

    :param note: called with ``read PATH`` or ``write PATH`` for all that is not in the recording.
    """

    def __init__(self, now: Callable[[], float], note: Callable[[str], None]) -> None:
        super().__init__(now)
        self.root = Partial(kernel=True)
        self._note = note
        self._absent: set[str] = set()
        #: Other devices in the listings of a bus or driver: not shown, and not absent either.
        self._others: set[str] = set()
        self._expanding = False

    # -- asked ----------------------------------------------------------------------------------

    def _walk(self, path: str, *, follow: bool) -> tuple[list[str], Node]:
        try:
            return super()._walk(path, follow=follow)
        except (FileNotFoundError, NotADirectoryError):
            if not self._knows(path, 40):
                raise self.not_recorded("read", path) from None
            raise

    def _knows(self, path: str, links: int) -> bool:
        """Return whether the recording tells that nothing is at ``path``, where nothing was found."""
        parts = [part for part in path.split("/") if part and part != "."]
        place = ""
        node: Node = self.root
        for number, part in enumerate(parts):
            if isinstance(node, LeftOut):
                return False
            following = f"{place}/{part}"
            try:
                canonical, found = super()._walk(following, follow=False)
            except OSError:
                if following in self._others:
                    return False
                return not isinstance(node, Partial) or following in self._absent
            if isinstance(found, Link):
                target = posixpath.join(place or "/", found.target, *parts[number + 1 :])
                return links > 0 and self._knows(posixpath.normpath(target), links - 1)
            place = "/" + "/".join(canonical) if canonical else ""
            node = found
        return True

    def not_recorded(self, what: str, path: str) -> NotRecorded:
        """Note the access and return its error."""
        if not self._expanding:
            self._note(f"{what} {path}")
        return NotRecorded(path)

    def listdir(self, path: str) -> list[str]:
        """Return the names in ``path``. :raises OSError: they are not all known, besides the usual."""
        with self._lock:
            node = self.node(path)
            if isinstance(node, (Partial, LeftOut)) and self._top(path) not in _OWN_LISTINGS:
                raise self.not_recorded("list", path)
            return super().listdir(path)

    def _top(self, path: str) -> str:
        return self.realpath(path).split("/")[1]

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that ``pattern`` matches, among those that are in the recording."""
        with self._lock:
            self._expanding = True
            try:
                return super().glob(pattern)
            finally:
                self._expanding = False

    # -- built ----------------------------------------------------------------------------------

    def install(self, path: str, node: Node) -> None:
        """Put what is not of the recording, such as a program, at ``path``."""
        self._above(path)
        self.place(path, node)

    def show(self, changes: Mapping[str, Entry | None], read: Callable[[str, Entry], bytes]) -> None:
        """Put ``changes`` over what is there; None: it goes. ``read`` makes the content of a file."""
        with self._lock:
            for path in _gone(changes):
                self.remove_tree(path)
                self._absent.discard(path)
                self._others.discard(path)
            for path in sorted(path for path, entry in changes.items() if entry is not None):
                entry = changes[path]
                assert entry is not None
                self._above(path)
                self._put(path, entry, read)

    def _above(self, path: str) -> None:
        """Make the directories above ``path`` that are not there, as those of which not all is known."""
        parts = path.split("/")
        for number in range(2, len(parts)):
            above = "/".join(parts[:number])
            try:
                super()._walk(above, follow=False)
            except OSError:
                self.place(above, Partial(kernel=True), kernel=True)

    def _put(self, path: str, entry: Entry, read: Callable[[str, Entry], bytes]) -> None:
        if entry.kind == "absent":
            self.remove_tree(path)
            self._absent.add(path)
            return
        self._absent.discard(path)
        if entry.kind == "left-out" and entry.text.startswith("link"):
            self.remove_tree(path)
            self._others.add(path)
            return
        self._others.discard(path)
        if entry.kind == "directory":
            self._complete(path)
            return
        self.place(path, self._node(path, entry, read), kernel=True)

    def _node(self, path: str, entry: Entry, read: Callable[[str, Entry], bytes]) -> Node:
        def write(data: bytes, offset: int) -> None:
            raise self.not_recorded("write", path)

        def refuse() -> bytes:
            raise self.not_recorded("read", path)

        if entry.kind == "link":
            return Link(entry.text)
        if entry.kind == "left-out":
            return LeftOut(_kind(entry.text), refuse, write)
        return Attribute(None if entry.kind == "write-only" else lambda: read(path, entry), write)

    def _complete(self, path: str) -> None:
        """Make ``path`` a directory all of whose names are known; what is in it stays."""
        try:
            _, found = super()._walk(path, follow=False)
        except OSError:
            self.place(path, Directory(kernel=True), kernel=True)
            return
        if isinstance(found, Partial):
            whole = Directory(kernel=True)
            whole.children = found.children
            self.place(path, whole, kernel=True)
        elif not isinstance(found, Directory):
            self.place(path, Directory(kernel=True), kernel=True)


def _gone(changes: Mapping[str, Entry | None]) -> Iterable[str]:
    """Return the paths that go, deepest first."""
    return sorted((path for path, entry in changes.items() if entry is None), reverse=True)


def _kind(text: str) -> int:
    if text.startswith("directory"):
        return stat.S_IFDIR
    return stat.S_IFCHR if "character device" in text else stat.S_IFREG

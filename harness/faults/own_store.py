"""A store on a file system of its own, in memory: it can be filled, and its openings can be held."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import tempfile
from pathlib import Path

from harness.errors import BlockedError, DeadlineError, InfrastructureError
from harness.faults.watchdog import Watchdog

_SECONDS = 20.0
_PIECE = bytes(1 << 16)
#: Beside the registry's `docker`, in which alone it and the truth walk look.
_FILLER = "hil-filler"
_UNDO = 'umount -l "$0"; rmdir "$0"'


class OwnStore:
    """A tmpfs at a folder of its own; it goes when this object is closed, or when the harness dies.

    :param size: bytes that fit in it.
    :raises BlockedError: that needs root, or the memory for it is not there.
    """

    def __init__(self, size: int) -> None:
        check_can_mount(size)
        self.folder = Path(tempfile.mkdtemp(prefix="hil-store-"))
        self._watchdog: Watchdog | None = None
        try:
            self._watchdog = Watchdog(["sh", "-c", _UNDO, str(self.folder)])
            _mount(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "hil-store", str(self.folder)])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> OwnStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmount it; may be called twice. End the registry first."""
        if self.folder.is_mount():
            # Lazily: a registry that still has a file open keeps the content, but not the place.
            _mount(["umount", "-l", str(self.folder)])
        if self.folder.is_dir():
            self.folder.rmdir()
        if self._watchdog is not None:
            self._watchdog.stand_down()
            self._watchdog = None


def check_can_mount(size: int) -> None:
    """Return if a file system of ``size`` bytes can be mounted in memory.

    :raises BlockedError: it cannot be; says what is missing.
    """
    if os.geteuid() != 0:
        raise BlockedError(
            "A store on a file system of its own has to be mounted, which only root may.",
            hint="Run it as root, such as by `sudo -E`.",
        )
    found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    available = int(found[1]) * 1024 if found else 0
    if size > available:
        raise BlockedError(
            f"A store of {size >> 20} MiB in memory does not fit: {available >> 20} MiB are available.",
            hint="Push smaller images, or free memory.",
        )


def is_own_store(root: Path) -> bool:
    """Return whether the store is a tmpfs mounted at just this folder."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    own = {fields[1] for fields in map(str.split, mounts) if fields[2] == "tmpfs"}
    return str(root.resolve()) in own


def fill(root: Path) -> int:
    """Fill the file system to its last page; return how many bytes went in. :func:`free` undoes it."""
    total = 0
    with (root / _FILLER).open("wb", buffering=0) as opened:
        while True:
            try:
                total += opened.write(_PIECE)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return total


def free(root: Path) -> None:
    """Take away what :func:`fill` put there."""
    (root / _FILLER).unlink(missing_ok=True)


def _mount(argv: list[str]) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise BlockedError(f"There is no {argv[0]}.", hint="It comes with the package mount.") from None
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"Waited {_SECONDS:g} s for `{' '.join(argv)}`.") from None
    if done.returncode != 0:
        said = done.stderr.strip().rpartition("\n")[2]
        problem = f"`{' '.join(argv)}` failed: {said or done.returncode}."
        if argv[0] == "mount":
            raise BlockedError(problem, hint="A container needs the capability SYS_ADMIN for it.")
        raise InfrastructureError(problem)

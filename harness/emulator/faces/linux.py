"""The system calls of Linux that Python 3.11 has no name for: namespaces and mounts."""

from __future__ import annotations

import ctypes
import os
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
_libc.unshare.argtypes = (ctypes.c_int,)


def unshare(flags: int) -> None:
    """Leave the namespaces that ``flags`` name for new ones. :raises OSError: the kernel does not let us."""
    if _libc.unshare(flags):
        raise _last_error("unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """``mount(2)``. :raises OSError: the kernel does not let us."""
    words = (source, target, kind, options)
    encoded = [os.fsencode(word) if word else None for word in words]
    if _libc.mount(encoded[0], encoded[1], encoded[2], flags, encoded[3]):
        raise _last_error(target)


def _last_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)

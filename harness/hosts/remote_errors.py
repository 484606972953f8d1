"""Kernel errors as remote tools spell them -> errno, so that `cat` over SSH fails as `open` does."""

from __future__ import annotations

import errno

_SPELLINGS: dict[str, int] = {
    "No such file or directory": errno.ENOENT,
    "Permission denied": errno.EACCES,
    "Operation not permitted": errno.EPERM,
    "Device or resource busy": errno.EBUSY,
    "Input/output error": errno.EIO,
    "Invalid argument": errno.EINVAL,
    "No such device": errno.ENODEV,
    "No such device or address": errno.ENXIO,
    "Is a directory": errno.EISDIR,
    "Not a directory": errno.ENOTDIR,
    "No space left on device": errno.ENOSPC,
    "Read-only file system": errno.EROFS,
    "Connection timed out": errno.ETIMEDOUT,
    "Too many levels of symbolic links": errno.ELOOP,
}


def os_error(path: str, complaint: str) -> OSError:
    """Return the error that a tool's ``complaint`` about ``path`` stands for.

    Where the spelling is not known the errno is EIO and the text is kept.
    """
    last = complaint.strip().rsplit("\n", 1)[-1]
    reason = last.rsplit(": ", 1)[-1]
    return OSError(_SPELLINGS.get(reason, errno.EIO), reason or "no reason given", path)

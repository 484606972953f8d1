"""The messages between the kernel and a FUSE file system, as <linux/fuse.h> (version 7.31) lays them out."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

VERSION: Final = (7, 31)

REQUEST: Final = struct.Struct(
    "=IIQQIIIHH"
)  # length, opcode, unique, node, uid, gid, pid, extension, padding
REPLY: Final = struct.Struct("=IiQ")  # length, -errno, unique


class Opcode(IntEnum):
    """What the kernel asks for."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    GETLK = 31
    SETLK = 32
    SETLKW = 33
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    RENAME2 = 45


#: What the kernel may ask of us beyond the basics.
POSIX_LOCKS: Final = 1 << 1
ATOMIC_O_TRUNC: Final = 1 << 3
BIG_WRITES: Final = 1 << 5
FLOCK_LOCKS: Final = 1 << 10
PARALLEL_DIROPS: Final = 1 << 18

DIRECT_IO: Final = 1 << 0  # of an open file: nothing of it is cached
BY_HANDLE: Final = 1 << 0
SET_MODE: Final = 1 << 0
SET_SIZE: Final = 1 << 3
RELEASE_FLOCK: Final = 1 << 1
LOCK_IS_FLOCK: Final = 1 << 0

INIT_IN: Final = struct.Struct("=IIII")  # major, minor, read-ahead, flags
INIT_OUT: Final = struct.Struct(
    "=IIIIHHIIHHI28x"
)  # ... background, congestion, max write, granularity, pages
ATTRIBUTES: Final = struct.Struct("=QQQQQQIIIIIIIIII")
ENTRY_HEAD: Final = struct.Struct("=QQQQII")  # node, generation, seconds that name and attributes hold
ATTRIBUTES_HEAD: Final = struct.Struct("=QII")  # seconds that they hold
GETATTR_IN: Final = struct.Struct("=IIQ")  # flags, -, handle
SETATTR_IN: Final = struct.Struct("=IIQQQQQQIIIIIIII")
MKDIR_IN: Final = struct.Struct("=II")  # mode, umask
RENAME_IN: Final = struct.Struct("=Q")  # directory
RENAME2_IN: Final = struct.Struct("=QII")
OPEN_IN: Final = struct.Struct("=II")  # flags of open(2)
CREATE_IN: Final = struct.Struct("=IIII")  # flags, mode, umask
OPEN_OUT: Final = struct.Struct("=QII")  # handle, flags
READ_IN: Final = struct.Struct("=QQIIQII")  # handle, offset, size
WRITE_IN: Final = struct.Struct("=QQIIQII")  # handle, offset, size
WRITE_OUT: Final = struct.Struct("=II")
RELEASE_IN: Final = struct.Struct("=QIIQ")  # handle, flags, release flags, lock owner
FLUSH_IN: Final = struct.Struct("=QIIQ")  # handle, -, -, lock owner
LOCK: Final = struct.Struct("=QQII")  # start, end, type, pid
LOCK_IN: Final = struct.Struct("=QQQQIIII")  # handle, owner, start, end, type, pid, flags
INTERRUPT_IN: Final = struct.Struct("=Q")
FORGET_IN: Final = struct.Struct("=Q")
BATCH_FORGET_IN: Final = struct.Struct("=II")
FORGET_ONE: Final = struct.Struct("=QQ")  # node, count
ENTRY_IN_DIRECTORY: Final = struct.Struct("=QQII")  # inode, offset of the next one, length of the name, type
STATFS_OUT: Final = struct.Struct("=QQQQQIIII24x")


def directory_entry(inode: int, next_offset: int, name: bytes, kind: int) -> bytes:
    """Return one entry of a directory, padded to a multiple of eight bytes. ``kind``: an S_IFMT value."""
    head = ENTRY_IN_DIRECTORY.pack(inode, next_offset, len(name), kind >> 12)
    return (head + name).ljust(-(-(len(head) + len(name)) // 8) * 8, b"\0")

"""What is to be put on a host: a file opened as what it is, or one stream with its size and hash."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from harness.errors import ConfigurationError

#: No image is larger: the staging area of a card holds 56 MiB (n3000.md 4.3).
LARGEST_IMAGE = 256 << 20


def open_file(path: Path) -> io.BufferedReader:
    """Open the file ``path`` to be read; a link is followed. Whoever calls this closes it.

    :raises ConfigurationError: it cannot be read, or is no regular file: a pipe would never end, and opening
        a device can act on it.
    """
    try:
        # Looked at first: opening is what acts. And again, for it may be another one by then.
        if stat.S_ISREG(path.stat().st_mode):
            handle = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
            if stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                return handle
            handle.close()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # a name that no file can have
        raise ConfigurationError(f"{path!r} cannot be read: {error}.") from None
    raise ConfigurationError(f"{path} cannot be read: it is no regular file.")


def image_bytes(path: Path) -> bytes:
    """Return the bytes of the image file ``path``, read once.

    :raises ConfigurationError: as :func:`open_file`; or it is larger than any image.
    """
    with open_file(path) as handle:
        if os.fstat(handle.fileno()).st_size <= LARGEST_IMAGE:
            data = handle.read(LARGEST_IMAGE + 1)  # it may grow meanwhile
            if len(data) <= LARGEST_IMAGE:
                return data
    raise ConfigurationError(
        f"{path} is no image: it is larger than {LARGEST_IMAGE >> 20} MiB.",
        hint="The staging area of a card holds 56 MiB.",
    )


def image_content(image: bytes | Path) -> bytes:
    """Return the bytes of an image that is given as such, or as the file that holds it.

    :raises ConfigurationError: it is neither, or the file cannot be read.
    """
    if type(image) is bytes:
        return image
    if isinstance(image, (bytes, bytearray, memoryview)):
        return b"".join((image,))  # the bytes that it holds, whatever it says of itself
    if not isinstance(image, Path):
        raise ConfigurationError(f"An image is bytes or a path, and not a {type(image).__name__}.")
    try:
        return image_bytes(image)
    except ConfigurationError as error:
        raise ConfigurationError(f"The image {error.message}", hint=error.hint) from None


@contextmanager
def opened(source: bytes | Path) -> Iterator[tuple[BinaryIO, int, str]]:
    """Give a stream at its beginning, its size in bytes and the SHA-256 of what it holds.

    :raises ConfigurationError: the file cannot be read.
    """
    if isinstance(source, bytes):
        yield io.BytesIO(source), len(source), hashlib.sha256(source).hexdigest()
        return
    if not isinstance(source, Path):
        raise ConfigurationError(
            f"What is put on a host is bytes or a path, and not a {type(source).__name__}."
        )
    with open_file(source) as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
        handle.seek(0)
        yield handle, os.fstat(handle.fileno()).st_size, digest

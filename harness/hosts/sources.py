"""What is to be put on a host, as one open stream with its size and hash."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from harness.errors import ConfigurationError


@contextmanager
def opened(source: bytes | Path) -> Iterator[tuple[BinaryIO, int, str]]:
    """Give a stream at its beginning, its size in bytes and the SHA-256 of what it holds.

    :raises ConfigurationError: the file cannot be read.
    """
    if isinstance(source, bytes):
        yield io.BytesIO(source), len(source), hashlib.sha256(source).hexdigest()
        return
    try:
        handle = source.open("rb")
    except OSError as error:
        raise ConfigurationError(f"{source} cannot be read: {error.strerror}.") from None
    with handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
        handle.seek(0)
        yield handle, os.fstat(handle.fileno()).st_size, digest

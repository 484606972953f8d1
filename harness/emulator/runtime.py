"""The directory of a running lab: made by the lab, gone with it; the next lab removes what a kill left."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

CONTROL_NAME: Final = "control"
#: A lab that has begun to start has its control socket long before this.
_STARTING_SECONDS = 60.0


def make_runtime(prefix: str) -> Path:
    """Return a new directory for this lab, after removing those of labs that were killed.

    Whoever starts a lab may die at any instant: so the lab makes it, which ends in order then.

    :raises OSError: it cannot be made.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _is_left(left):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=prefix))


def _is_left(directory: Path) -> bool:
    """Return whether nobody answers in ``directory`` any more, which is ours and no link."""
    try:
        status = directory.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    if not ours or abs(time.time() - status.st_mtime) < _STARTING_SECONDS:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, contextlib.suppress(TimeoutError):
        client.settimeout(1.0)
        try:
            client.connect(str(directory / CONTROL_NAME))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except OSError:
            return False  # a name that is too long, a file of another kind: none of ours
    return False

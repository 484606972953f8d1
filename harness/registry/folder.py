"""A temporary folder that goes with who made it, however that ends: a SIGKILL leaves nothing behind."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.errors import InfrastructureError

#: The end of its input is the end of who made it. What that had started ends at the same time, and may
#: still write meanwhile: so it is tried again.
_REMOVE = 'read -r _; for _ in 1 2 3; do rm -rf "$0" && exit; sleep 1; done'


class TemporaryFolder:
    """A new folder, of the name ``prefix`` and something random, among the temporary ones.

    :raises InfrastructureError: it cannot be made.
    """

    def __init__(self, prefix: str) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
        except OSError as error:
            raise InfrastructureError(
                f"No temporary folder can be made: {error.strerror} ({error.filename or 'no place'}).",
                hint="Name a place that has room in TMPDIR.",
            ) from None
        self._remover = subprocess.Popen(
            ["sh", "-c", _REMOVE, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for us
        )

    def close(self) -> None:
        """Remove it with all that is in it; may be called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._remover.kill()
        self._remover.wait()
        if self._remover.stdin is not None:
            self._remover.stdin.close()

"""Says where the index of runs is, without a database's library: most that ask do not open it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

#: The environment's word for where the index is; ``none``: there is none.
VARIABLE: Final = "HIL_STORE"
NONE: Final = "none"
FILE_NAME: Final = "index.sqlite"


def index_url(reports: Path, said: str | None = None) -> str | None:
    """Return the URL of the index: ``said``, else what HIL_STORE says, else a file below ``reports``.

    None where that is ``none``.
    """
    url = said or os.environ.get(VARIABLE)
    if not url:
        from harness.store.opening import sqlite_url

        return sqlite_url(reports / FILE_NAME)
    return None if url == NONE else url

"""A private Docker engine for tests; what is missing for one blocks a test, and the test says so."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.mounted import blocked

from harness.errors import BlockedError
from harness.registry.engines.private import PrivateEngine, find_engine


@contextmanager
def short_folder() -> Iterator[Path]:
    """Give a folder whose path is short enough for the sockets of an engine; pytest's may not be."""
    with tempfile.TemporaryDirectory(prefix="hil-", dir="/tmp") as name:
        yield Path(name)


@contextmanager
def private_engine() -> Iterator[PrivateEngine]:
    """Give a private engine that runs; it starts in a second, and nothing is left of it afterwards.

    Tests install nothing. Use it as the body of a fixture of a module or of the session:
    ``with private_engine() as engine: yield engine``.
    """
    engine = PrivateEngine()
    try:
        find_engine(install=False)
        engine.start()
        yield engine
    except BlockedError as error:
        blocked(str(error))
    finally:
        engine.close()

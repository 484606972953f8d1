"""The folders of runs: named by time, held while a process records, found again when that was killed."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness.errors import InfrastructureError
from harness.judgement.records import Record
from harness.record.history import read_history

HISTORIES = "history*.jsonl"
LATEST = "latest"
#: What ends a run: who has it was judged.
RESULTS = "results.json"
_PIECE = 1 << 20


def new_run_dir(reports: Path) -> Path:
    """Return the folder of a new run below ``reports``; it is made when something is written to it."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    names = itertools.chain([name], (f"{name}-{count}" for count in itertools.count(2)))
    # Where it cannot be looked at, nothing can be made either, which :func:`make_run_dir` tells.
    return next(folder for folder in map(reports.joinpath, names) if not os.path.lexists(folder))


def make_run_dir(run_dir: Path) -> int:
    """Make ``run_dir`` and hold it for as long as the returned descriptor is open, at most as we live.

    :raises InfrastructureError: it cannot be made.
    """
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InfrastructureError(
            f"The folder {run_dir} for the run cannot be made: {error.strerror}.",
            hint="Name a folder that can be written with --reports (pytest: --hil-reports).",
        ) from error
    with suppress(OSError):  # a file system without locks: then a killed run is not found, no more
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return descriptor


def cut_off(reports: Path) -> list[Path]:
    """Return the runs below ``reports`` that nobody records any more and that were never judged."""
    if not reports.is_dir():
        return []
    return [
        folder
        for folder in sorted(reports.iterdir())
        if not folder.is_symlink()
        and folder.is_dir()
        and not (folder / RESULTS).exists()
        and any(folder.glob(HISTORIES))
        and not is_held(folder)
    ]


def is_held(run_dir: Path) -> bool:
    """Return whether a process still records the run in ``run_dir``, as far as that can be told."""
    try:
        descriptor = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return True  # nothing can be said about it, so it is left alone
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def histories(run_dir: Path) -> list[Path]:
    """Return the histories of a run: one, or one for each of its processes."""
    return sorted(run_dir.glob(HISTORIES))


def read_run(run_dir: Path) -> Iterator[Record]:
    """Yield the records of all histories of a run, one after the other.

    :raises ConfigurationError: a line is not a record.
    """
    for path in histories(run_dir):
        yield from read_history(path)


def point_latest_at(run_dir: Path) -> None:
    """Let ``latest`` beside ``run_dir`` lead to it, unless something else of that name is there."""
    latest = run_dir.parent / LATEST
    if not latest.is_symlink() and latest.exists():
        return
    fresh = latest.with_name(f".{LATEST}-{run_dir.name}")
    with suppress(OSError):  # a convenience: a full disk, or two runs that end at once, must not end us
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(run_dir.name)
        fresh.replace(latest)


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()

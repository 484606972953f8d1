"""The SHA-256 of every piece of evidence of a statement, and the check that they are still those."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from harness.errors import ConfigurationError
from harness.record.runs import sha256_of

FILE_NAME: Final = "manifest.json"
SCHEMA: Final = "hil-evidence/1"


def write_manifest(folder: Path, files: Iterable[Path]) -> Path:
    """Write the manifest of ``files``, all of them in ``folder``; return its path."""
    entries = [
        {"path": file.relative_to(folder).as_posix(), "sha256": sha256_of(file), "size": file.stat().st_size}
        for file in sorted(files)
    ]
    path = folder / FILE_NAME
    path.write_text(json.dumps({"schema": SCHEMA, "files": entries}, indent=1) + "\n", encoding="utf-8")
    return path


def departures(folder: Path) -> list[str]:
    """Return what is not as the manifest of ``folder`` has it, one sentence each; empty where all is.

    :raises ConfigurationError: there is no manifest, or it is none of a statement.
    """
    entries = _read(folder / FILE_NAME)
    told = [found for path, expected in entries.items() if (found := _departure(folder, path, expected))]
    known = {FILE_NAME, *entries}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            told.append(f"{name}: it is a link, and no evidence")
        elif not path.is_dir() and name not in known:
            told.append(f"{name}: the manifest does not know it")
    return told


def _departure(folder: Path, path: str, expected: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        return f"{path}: it is not in the folder of the statement"
    file = folder / path
    try:
        within = (file, *file.parents[: len(pure.parts) - 1])
        if any(part.is_symlink() for part in within) or not file.is_file():
            return f"{path}: it is missing"
        found = sha256_of(file)
    except OSError as error:
        return f"{path}: it cannot be read: {error.strerror}"
    return "" if found == expected else f"{path}: its SHA-256 is {found}, and was {expected}"


def _read(path: Path) -> dict[str, str]:
    """Return path -> SHA-256 of a manifest."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ValueError(f"its schema is {data['schema']!r}, not {SCHEMA}")
        entries = {str(entry["path"]): str(entry["sha256"]) for entry in data["files"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} is no manifest of evidence: {error}.",
            hint="Name the folder that `hil report statement` wrote.",
        ) from None
    if not ({"statement.html"} <= entries.keys() and any(name.startswith("evidence/") for name in entries)):
        raise ConfigurationError(f"{path} is no manifest of evidence: it names no statement, or no evidence.")
    if len(entries) != len(data["files"]):
        raise ConfigurationError(f"{path} is no manifest of evidence: it names a file twice.")
    return entries

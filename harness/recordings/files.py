"""Recordings as files: written so that two can be compared line by line, read with every error in place."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from harness.errors import ConfigurationError, InfrastructureError
from harness.recordings.model import OtherSchema, Recording

#: No recording of a host is as large as this (bytes, unpacked): a file that is must not fill the memory.
LARGEST = 64 << 20
_LINE = 110
_GZIP = b"\x1f\x8b"
_REMADE = "Record the card again: hil record HOST/CARD"


def dumps(recording: Recording) -> str:
    """Return ``recording`` as JSON text: a path, a command's line or a sample on each line."""
    return f"{_rendered(recording.to_json(), 0)}\n"


def check_target(path: Path, *, force: bool = False) -> None:
    """Make sure that a recording can be written to ``path`` once it is made.

    :raises ConfigurationError: there is something already, and not ``force``; or no such directory.
    """
    if path.exists() and not force:
        raise ConfigurationError(
            f"{path} is there already.", hint="Give another --output, or --force to write over it."
        )
    if not os.access(path.parent, os.W_OK):
        raise ConfigurationError(f"The recording cannot be written: {path.parent} is not a writable folder.")


def write_recording(recording: Recording, path: Path) -> int:
    """Write ``recording`` to ``path``, packed where that ends with ``.gz``; return its size in bytes.

    What was there before stays until the new one is whole.

    :raises InfrastructureError: it cannot be written.
    """
    data = dumps(recording).encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    unfinished = path.with_name(f".{path.name}.new")
    try:
        try:
            unfinished.write_bytes(data)
            unfinished.replace(path)
        finally:
            with suppress(FileNotFoundError):
                unfinished.unlink()
    except OSError as error:
        raise InfrastructureError(f"The recording {path} cannot be written: {error.strerror}.") from None
    return len(data)


def read_recording(path: Path) -> Recording:
    """Return the recording in the file ``path``.

    :raises ConfigurationError: it cannot be read, is cut off, damaged, or of another schema.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ConfigurationError(f"The recording {path} cannot be read: {error.strerror}.") from None
    if data.startswith(_GZIP):
        data = _unpacked(path, data)
    if len(data) > LARGEST:
        raise ConfigurationError(f"{path} is no recording: it is larger than {LARGEST >> 20} MiB.")
    try:
        value = json.loads(data.decode(), parse_constant=_no_constant, object_pairs_hook=_without_doubles)
        return Recording.from_json(value)
    except OtherSchema as error:
        raise ConfigurationError(
            f"{path} cannot be replayed: {error}.", hint=f"Use the hil that made it. {_REMADE}"
        ) from None
    except json.JSONDecodeError as error:
        cut = " The file is cut off." if not data.rstrip().endswith(b"}") else ""
        raise ConfigurationError(
            f"{path}:{error.lineno}: it is not JSON: {error.msg}.{cut}", hint=_REMADE
        ) from None
    except RecursionError:
        raise ConfigurationError(f"{path} is no recording: it is nested without an end.") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is no recording: it is not a text in UTF-8.") from None
    except ValueError as error:
        raise ConfigurationError(f"{path} is not a whole recording: {error}.", hint=_REMADE) from None


def _unpacked(path: Path, data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            return packed.read(LARGEST + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise ConfigurationError(f"{path} cannot be unpacked: {error}.", hint=_REMADE) from None


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of a recording")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key[:200]!r} is given twice")
        found[key] = value
    return found


def _rendered(value: Any, level: int) -> str:
    """Return JSON on one line where that is short or nothing is nested in it, else an item a line."""
    flat = json.dumps(value, ensure_ascii=False)
    nested: list[str] = []
    inner = " " * (level + 1)
    if isinstance(value, Mapping):
        simple = not any(isinstance(item, (Mapping, list)) for item in value.values())
        if simple or len(flat) <= _LINE:
            return flat
        nested = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {_rendered(item, level + 1)}"
            for key, item in value.items()
        ]
        brackets = "{}"
    elif isinstance(value, list):
        if len(flat) <= _LINE and (len(value) < 2 or not _has_lines(value)):
            return flat
        nested = [f"{inner}{_rendered(item, level + 1)}" for item in value]
        brackets = "[]"
    else:
        return flat
    body = ",\n".join(nested)
    return f"{brackets[0]}\n{body}\n{' ' * level}{brackets[1]}"


def _has_lines(value: list[Any]) -> bool:
    return any(isinstance(item, str) and item.endswith("\n") for item in value)

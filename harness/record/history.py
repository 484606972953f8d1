"""Writes a run's history, one JSON line per record, before anything is judged; and reads it back."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

from harness.errors import ConfigurationError, HarnessBug, InfrastructureError
from harness.judgement.records import (
    Intent,
    Record,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    from_json,
    to_json,
)
from harness.record.clock import HARNESS_TIME
from harness.record.redaction import REDACTOR, Redactor

R = TypeVar("R", bound=Record)

#: Forced to the disk, not only handed to the kernel: an intent, so that a crash of the harness's own
#: machine cannot hide an operation that was begun, and the records that close a part of the run.
SYNCED: tuple[type[Record], ...] = (Intent, RunStarted, ScenarioEnded, RunEnded)

#: Words of the records' own grammar, which a secret that happens to be one of them must not break.
_GRAMMAR: dict[str, frozenset[str]] = {
    "kind": frozenset({"card", "registry-image", "record"}),
    "effect": frozenset({"lands", "unchanged", "factory", "returns"}),
    "how": frozenset({"returned", "raised", "timed-out", "never", "finished", "interrupted"}),
    "state": frozenset(
        {"armed", "fired", "undone", "not-reached", "finished", "interrupted"}
        | {"INFRA", "BLOCKED", "REFUSED", "NOT_APPLICABLE", "BUG"}
    ),
}


class History:
    """The append-only record of one run, in memory and on disk.

    A record is on disk (one line, one write) when :meth:`add` returns; the kinds of :data:`SYNCED`
    are also fsynced. Secrets are masked before the line is written and before it is kept in memory,
    and what is kept is what a reader of the file gets, so that both are judged alike.

    :param path: the file to write; its directory must exist, and it must not hold a history already.
    :param clock: seconds since the epoch.
    :param redactor: masks secrets; by default the process-wide one.
    :raises ConfigurationError: ``path`` already holds something.
    :raises InfrastructureError: ``path`` cannot be opened for writing.
    """

    def __init__(
        self, path: Path | str, clock: Callable[[], float] = HARNESS_TIME, redactor: Redactor = REDACTOR
    ) -> None:
        self.path = Path(path)
        self._clock = clock
        self._redactor = redactor
        self._lock = threading.RLock()
        self._records: list[Record] = []
        self._unwritten = b""
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InfrastructureError(
                f"The history {self.path} cannot be written: {error.strerror}.",
                hint="Check that the directory of the reports exists and is writable.",
            ) from error
        status = os.fstat(self._file)
        self._regular = stat.S_ISREG(status.st_mode)
        self._end = 0
        if self._regular and status.st_size:
            os.close(self._file)
            raise ConfigurationError(
                f"{self.path} already holds the history of another run.",
                hint="Give each run a file of its own; `hil judge` reads the old one.",
            )
        self._open = True

    @property
    def records(self) -> Sequence[Record]:
        """All records so far, in order, as a reader of the file gets them."""
        with self._lock:
            return tuple(self._records)

    @property
    def redactor(self) -> Redactor:
        """What masks the secrets; register more with its ``register``."""
        return self._redactor

    def add(self, record: R) -> R:
        """Write ``record`` and return it with its sequence number (from 1) and time, without secrets.

        :raises InfrastructureError: it could not be written, for example because the disk is full.
            Earlier lines stay whole. An :class:`Intent` is then not part of the history: its operation
            must not begin. Any other record tells what has happened already; it is kept in memory,
            takes part in judgement, and is written with the next one that can be.
        :raises HarnessBug: the record cannot be expressed in JSON, or the history is closed.
        """
        with self._lock:
            if not self._open:
                raise HarnessBug(f"A {record.kind} record came after the history was closed.")
            numbered = replace(record, seq=len(self._records) + 1, time=self._clock())
            kept, line = self._masked(numbered)
            pending = self._unwritten + line
            try:
                self._write(pending, sync=isinstance(record, SYNCED))
            except OSError as error:
                if not isinstance(record, Intent):
                    self._unwritten = pending
                    self._records.append(kept)
                raise self._not_written(error) from error
            self._unwritten = b""
            self._records.append(kept)
            return cast(R, kept)

    def close(self) -> None:
        """Write what is still to be written and close the file; may be called twice.

        :raises InfrastructureError: some records could not be written; they are in :attr:`records`.
        """
        with self._lock:
            if not self._open:
                return
            self._open = False
            try:
                if self._unwritten:
                    self._write(self._unwritten, sync=True)
                    self._unwritten = b""
            except OSError as error:
                raise self._not_written(error) from error
            finally:
                os.close(self._file)

    def __enter__(self) -> History:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _masked(self, record: Record) -> tuple[Record, bytes]:
        try:
            data = _mask(to_json(record), self._redactor)
            line = json.dumps(data, separators=(",", ":")).encode()
            return from_json(json.loads(line)), line + b"\n"
        except (TypeError, ValueError) as error:
            raise HarnessBug(f"A {record.kind} record cannot be written as JSON: {error}") from error

    def _write(self, data: bytes, *, sync: bool) -> None:
        """Append ``data`` whole or not at all."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
            if sync and self._regular:
                os.fsync(self._file)
        except OSError:
            # Part of a line may be there; the next one must not be glued to it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise
        self._end += len(data)

    def _not_written(self, error: OSError) -> InfrastructureError:
        waiting = self._unwritten.count(b"\n")
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        return InfrastructureError(
            f"The history {self.path} cannot be written: {error.strerror}. Its {self._end} bytes so far "
            f"are whole" + (f"; {waiting} records are kept in memory only." if waiting else "."),
            hint="Free space there, then run again."
            if full
            else "Check the disk and the directory of the reports.",
        )


def _mask(data: dict[str, Any], redactor: Redactor, *, top: bool = True) -> dict[str, Any]:
    """Mask a record's JSON form, all but its kind and the words of the records' grammar."""
    masked: dict[str, Any] = {}
    for key, value in data.items():
        if (top and key == "kind") or (isinstance(value, str) and value in _GRAMMAR.get(key, ())):
            masked[key] = value
        elif top and key in ("subject", "promise") and isinstance(value, dict):
            masked[key] = _mask(value, redactor, top=False)
        else:
            masked[key] = redactor.json(value)
    return masked


#: No record is longer, nor is a file without line ends taken into memory as a whole.
_LONGEST_LINE = 1 << 26


def read_history(path: Path | str, on_torn: Callable[[int], None] | None = None) -> Iterator[Record]:
    """Yield the records of a history file in order.

    A last line that is not whole (the writer was killed in the middle of it) is left out;
    ``on_torn`` is given its number.

    :raises ConfigurationError: there is no such file, another line is not a record, or the numbers of the
        records show that lines are missing or stand elsewhere; names the line.
    """
    path = Path(path)
    due = 1
    try:
        with path.open("rb") as file:
            numbered = enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1)
            held = next(numbered, None)
            while held is not None:
                following = next(numbered, None)
                record = _read_line(path, *held, last=following is None)
                if record is not None:
                    # A run begins to count anew: several histories may stand in one file.
                    due = 1 if isinstance(record, RunStarted) and record.seq == 1 else due
                    _check_number(path, held[0], record, due)
                    due += 1
                    yield record
                elif on_torn is not None:
                    on_torn(held[0])
                held = following
    except OSError as error:
        raise ConfigurationError(
            f"The history {path} cannot be read: {error.strerror}.",
            hint="A run leaves its history in the directory of its reports.",
        ) from error


def _check_number(path: Path, line: int, record: Record, due: int) -> None:
    if record.seq != due:
        raise ConfigurationError(
            f"{path}:{line}: the record has the number {record.seq}, and {due} was due; lines are missing, "
            "doubled, or in another order.",
            hint="What is judged must be what was recorded: use the file as the run left it.",
        )


def _read_line(path: Path, number: int, line: bytes, *, last: bool) -> Record | None:
    if len(line) == _LONGEST_LINE:
        raise ConfigurationError(
            f"{path}:{number}: a line of {_LONGEST_LINE} bytes or more is no record.",
            hint="Is this a history?",
        )
    try:
        data = _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as error:
        if last and not line.endswith(b"\n"):
            return None
        raise ConfigurationError(f"{path}:{number}: not a line of JSON: {error}.") from error
    if not isinstance(data, dict):
        raise ConfigurationError(f"{path}:{number}: a record is a JSON object, this is {line[:40]!r}")
    try:
        return from_json(data)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path}:{number}: {error}",
            hint="The file may come from another version of the harness, or not be a history.",
        ) from error


def _no_number(word: str) -> float:
    """NaN and the infinities are no JSON, and nothing that was measured."""
    raise ValueError(f"{word} is no number")


_DECODER = json.JSONDecoder(parse_constant=_no_number)

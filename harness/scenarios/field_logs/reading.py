"""Reads pasted files into events in the order of time, with notes on what had to be assumed or left out."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from harness.judgement.records import to_json
from harness.scenarios.field_logs.clocks import clock_notes
from harness.scenarios.field_logs.commands import CommandReader
from harness.scenarios.field_logs.events import Context, Event, Reader, Told
from harness.scenarios.field_logs.lines import Line, read_lines
from harness.scenarios.field_logs.moments import NO_YEAR, Stamp, stamp_of
from harness.scenarios.field_logs.prose import ProseReader
from harness.scenarios.field_logs.registries import RegistryReader
from harness.scenarios.field_logs.sysinv import SysinvReader
from harness.scenarios.field_logs.tables import TableReader
from harness.scenarios.field_logs.tools import FlashReader, InfoReader, ResetReader, VimReader

E = TypeVar("E", bound=Event)
#: Events that are kept; the same claim again is counted, and takes no more room.
MOST: Final = 20_000
#: Seconds by which a clock that is set, or the end of summer time, takes lines of a log back.
_BACK: Final = 30.0
_HOUR: Final = 3600.0
#: Reporters that say something new each time, even in the same words: what they speak of is done again.
_EACH: Final = ("fpgasupdate", "rsu", "kernel-log")
#: Lines back to which a reader may tell of.
_RECENT: Final = 500


@dataclass(frozen=True, slots=True)
class FieldLog:
    """What was read. ``events``: in the order of time. ``notes``: what was assumed or left out, in words."""

    files: tuple[str, ...]
    events: tuple[Event, ...]
    notes: tuple[str, ...] = ()

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


def read_field_logs(names: Sequence[str], skew: Mapping[str, float] | None = None) -> FieldLog:
    """Read files, ``-`` for standard input; their events are merged by time.

    Within a file, what states no time stays behind what stands before it.

    :param skew: file -> by how many seconds its clock is ahead.
    :raises ConfigurationError: a file cannot be read.
    """
    notes: list[str] = []
    keyed: list[tuple[float, int, Event]] = []
    for name in names:
        events = _Gathered(notes)
        events.read(read_lines(name, notes.append))
        keyed += _keyed(events, (skew or {}).get(name, 0.0), len(keyed))
        if ahead := (skew or {}).get(name):
            notes.append(
                f"{name}: its clock is {ahead:+g} s ahead, as it was said; times are corrected by that"
            )
    keyed.sort(key=lambda each: each[:2])
    notes += clock_notes([event for _, _, event in keyed])
    return FieldLog(tuple(names), tuple(_numbered(keyed)), tuple(dict.fromkeys(notes)))


def _numbered(keyed: Iterable[tuple[float, int, Event]]) -> Iterator[Event]:
    """Yield the events; claims have their numbers, from 1, and the time of their source."""
    number = 0
    for _, _, event in keyed:
        if isinstance(event, Told):
            number += 1
            claim = replace(event.claim, seq=number, source_time=event.time)
            event = replace(event, claim=claim)
        yield event


def readers() -> tuple[Reader, ...]:
    """Return a reader for each kind of artefact; prose comes last, as it is what nothing else is."""
    return (
        CommandReader(),
        TableReader(),
        VimReader(),
        FlashReader(),
        ResetReader(),
        InfoReader(),
        SysinvReader(),
        RegistryReader(),
        ProseReader(),
    )


@dataclass
class _Gathered:
    """The events of one file, in its order."""

    notes: list[str]
    events: list[Event] = field(default_factory=list)
    _told: dict[str, int] = field(default_factory=dict)
    _left_out: Counter[str] = field(default_factory=Counter)
    _assumed: Counter[str] = field(default_factory=Counter)
    _last: float | None = None
    #: What gathers lines tells of one of these.
    _recent: deque[Line] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def read(self, lines: Iterable[Line]) -> None:
        """Take all lines of a file."""
        context, all_readers = Context(), readers()
        line: Line | None = None
        for line in lines:
            text = line.text
            self._recent.append(line)
            for reader in all_readers:
                if reader.busy or any(hint in text for hint in reader.hints):
                    for event in reader.take(line, context):
                        self._add(event, context, stamped=not isinstance(reader, TableReader))
        if line is not None:
            for reader in all_readers:
                for event in reader.end(context):
                    self._add(event, context, stamped=not isinstance(reader, TableReader))
            self._note(line.file)

    def _add(self, event: Event, context: Context, *, stamped: bool) -> None:
        """Keep an event. ``stamped``: its line states its time, where it states one."""
        text = next((e.text for e in reversed(self._recent) if e.number == event.place.line), "")
        stamp = stamp_of(text, context.year) if stamped else None
        if stamp is not None:
            event = self._timed(event, stamp, context)
        if isinstance(event, Told) and event.claim.reporter not in _EACH:
            key = _key(event)
            if (at := self._told.get(key)) is not None:
                before = self.events[at]
                assert isinstance(before, Told)
                self.events[at] = replace(before, times=before.times + 1, last=event.place)
                return
            self._told[key] = len(self.events)
        if len(self.events) >= MOST:
            self._left_out[type(event).__name__] += 1
            self._told.pop(_key(event), None) if isinstance(event, Told) else None
            return
        self.events.append(event)

    def _timed(self, event: Event, stamp: Stamp, context: Context) -> Event:
        assumed = [
            *([] if stamp.zoned else ["zone"]),
            *([] if stamp.dated else ["year"]),
        ]
        self._assumed.update(assumed)
        if stamp.dated:
            context.year = _year(stamp)
        if self._last is not None and stamp.seconds < self._last - _BACK:
            back = self._last - stamp.seconds
            hour = abs(back - _HOUR) < 2 * _BACK and not stamp.zoned
            why = ": the end of summer time, or a clock that was set" if hour else ""
            self._assumed["back"] += 1
            if self._assumed["back"] == 1 or hour:
                self.notes.append(
                    f"{event.place}: time goes back by {back:.0f} s{why}; events are in order of time"
                )
        self._last = stamp.seconds
        return replace(event, time=stamp.seconds, assumed=tuple(assumed))

    def _note(self, file: str) -> None:
        if self._assumed["year"]:
            self.notes.append(
                f"{file}: {self._assumed['year']} times have no year; it was taken from other lines"
            )
        if self._assumed["zone"]:
            self.notes.append(f"{file}: {self._assumed['zone']} times have no zone; taken for UTC")
        for kind, count in self._left_out.items():
            self.notes.append(f"{file}: {count} more of {kind} were left out: {MOST} are kept")


def _keyed(gathered: _Gathered, ahead: float, number: int) -> Iterator[tuple[float, int, Event]]:
    """Yield each event with what it is sorted by: its time, or that of what stands before it."""
    in_order = sorted(gathered.events, key=lambda event: event.place.line)
    known = next((e.time for e in in_order if e.time is not None), None)
    now = float("-inf") if known is None else known - ahead
    for at, event in enumerate(in_order):
        if event.time is not None:
            now = event.time - ahead
            event = replace(event, time=now)
        yield now, number + at, event


def _key(event: Told) -> str:
    claim = to_json(event.claim)
    said = (claim["reporter"], claim["subject"], claim["statement"], event.hearsay, event.system)
    return json.dumps(said, sort_keys=True, default=str)


def _year(stamp: Stamp) -> int:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(stamp.seconds, UTC).year
    except (ValueError, OverflowError, OSError):
        return NO_YEAR

"""What was said and what was true in the course of a scenario, laid out along its time in real proportion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from harness.judgement.grouping import show
from harness.judgement.records import Claim, Completion, Fault, Intent, Observation, Record
from harness.judgement.values import Unknown

Sort = Literal["claim", "truth", "fault"]
#: Width of the time axis, and the room that a mark takes up, in units of the drawing.
WIDTH: Final = 880.0
_LEFT, _ROOM = 20.0, 22.0
_LANE: Final = 24.0
#: More marks than this nobody can tell apart.
_MOST: Final = 60
_TEXT: Final = 220


@dataclass(frozen=True, slots=True)
class Mark:
    """One record on the time axis. ``x``, ``y``: of its middle, ``y`` from the axis, upwards negative.

    ``at``: seconds since the first one. ``diverged``: a verdict other than MATCH rests on it.
    """

    number: int
    sort: Sort
    x: float
    y: float
    at: float
    who: str
    what: str
    seq: int
    diverged: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """One operation, from its intent to its completion."""

    x: float
    width: float
    what: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """A drawing: marks, bars, and how far it reaches above and below the axis.

    ``clock``: whose time it is; ``seconds``: how long it is; ``left_out``: marks that there was no room for.
    """

    marks: tuple[Mark, ...]
    bars: tuple[Bar, ...]
    above: float
    below: float
    seconds: float
    clock: Literal["harness time", "lab time"]
    left_out: int = 0


def timeline(records: Sequence[Record], rests_on: Iterable[int]) -> Timeline | None:
    """Lay out the records of one scenario; None where none of them has a place.

    :param rests_on: sequence numbers of the records that diverging verdicts rest on: these and all faults
        are shown, and other claims and observations as long as there is room.
    """
    wanted = frozenset(rests_on)
    told = [r for r in records if isinstance(r, (Claim, Observation, Fault))]
    if not told:
        return None
    shown = _chosen(told, wanted)
    intents = [record for record in records if isinstance(record, Intent)]
    lab = all(record.source_time is not None for record in shown)
    moments = {r.seq: _moment(r, lab) for r in records if isinstance(r, _PLACED)}
    began = min(moments.values())
    seconds = max(moments.values()) - began
    scale = (WIDTH - 2 * _LEFT) / seconds if seconds > 0 else 0.0

    def x_of(record: Record) -> float:
        return _LEFT + (moments[record.seq] - began) * scale

    marks = tuple(_marks(shown, records, x_of, moments, began, wanted))
    bars = tuple(_bars(intents, records, x_of))
    above = max((-mark.y for mark in marks if mark.y < 0), default=0.0)
    below = max((mark.y for mark in marks if mark.y > 0), default=0.0)
    clock: Literal["harness time", "lab time"] = "lab time" if lab else "harness time"
    return Timeline(marks, bars, above, below, seconds, clock, len(told) - len(shown))


_PLACED: Final = (Claim, Observation, Fault, Intent, Completion)


def _chosen(
    told: Sequence[Claim | Observation | Fault], wanted: frozenset[int]
) -> list[Claim | Observation | Fault]:
    needed = [r for r in told if r.seq in wanted or isinstance(r, Fault)][:_MOST]
    room = _MOST - len(needed)
    others = [r for r in told if r.seq not in wanted and not isinstance(r, Fault)]
    return sorted([*needed, *(others if len(others) <= room else ())], key=lambda r: r.seq)


def _moment(record: Record, lab: bool) -> float:
    return record.source_time if lab and record.source_time is not None else record.time


def _marks(
    shown: Sequence[Claim | Observation | Fault],
    records: Sequence[Record],
    x_of: Any,
    moments: Mapping[int, float],
    began: float,
    wanted: frozenset[int],
) -> Iterable[Mark]:
    """Yield the marks: observations below the axis, claims above it, faults above those."""
    lanes: dict[Sort, list[float]] = {"claim": [], "truth": [], "fault": []}
    changes = _changes(records)
    placed = []
    for record in shown:
        sort, who, what = _told(record, changes)
        placed.append((record, sort, who, what, _free(lanes[sort], x_of(record))))
    first = {"truth": _LANE, "claim": -_LANE, "fault": -_LANE * (1 + len(lanes["claim"]))}
    for number, (record, sort, who, what, lane) in enumerate(placed, 1):
        y = first[sort] + (lane if sort == "truth" else -lane) * _LANE
        at = moments[record.seq] - began
        yield Mark(number, sort, x_of(record), y, at, who, _cut(what), record.seq, record.seq in wanted)


def _free(lanes: list[float], x: float) -> int:
    """Return the first lane with room at ``x``, and take it."""
    for lane, end in enumerate(lanes):
        if x - end >= _ROOM:
            lanes[lane] = x
            return lane
    lanes.append(x)
    return len(lanes) - 1


def _bars(intents: Sequence[Intent], records: Sequence[Record], x_of: Any) -> Iterable[Bar]:
    ends = {record.intent: record for record in records if isinstance(record, Completion)}
    for intent in intents:
        x = x_of(intent)
        end = x_of(ends[intent.seq]) if intent.seq in ends else WIDTH - _LEFT
        how = ends[intent.seq].how if intent.seq in ends else "never returned"
        yield Bar(x, max(end - x, 2.0), f"{intent.operation} of {intent.subject}: {how}")


def _told(record: Claim | Observation | Fault, changes: Mapping[int, str]) -> tuple[Sort, str, str]:
    if isinstance(record, Claim):
        return "claim", record.reporter, f"{record.subject.name}: {statement_text(record.statement)}"
    if isinstance(record, Fault):
        return "fault", record.action, f"{record.state} at {record.point} {record.detail}".rstrip()
    moment = f" ({record.moment})" if record.moment else ""
    return "truth", f"{record.probe}{moment}", f"{record.subject.name}: {changes[record.seq]}"


def statement_text(statement: Mapping[str, Any]) -> str:
    """Return what a reporter stated, in one line; what it left empty is left out."""
    parts = [f"{key} {_value(key, value)}" for key, value in statement.items() if value not in ("", None)]
    return ", ".join(parts) or "nothing"


def _changes(records: Sequence[Record]) -> dict[int, str]:
    """Return what each observation shows that the one before it, by the same probe, did not."""
    last: dict[tuple[str, str], Mapping[str, Any]] = {}
    said = {}
    for record in records:
        if not isinstance(record, Observation):
            continue
        key = record.probe, record.subject.name
        before = last.get(key)
        if before is None:
            said[record.seq] = statement_text(record.values)
        else:
            changed = [
                f"{name} {_value(name, before.get(name))} -> {_value(name, value)}"
                for name, value in record.values.items()
                if before.get(name) != value
            ]
            said[record.seq] = ", ".join(changed) or "as before"
        last[key] = record.values
    return said


def _value(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return "{...}"
    return str(value) if isinstance(value, Unknown) else show(name, value)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}..."

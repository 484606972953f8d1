"""What the report's page says: a judgement, and of what diverged the evidence, as plain data."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from harness.judgement.judge import Judgement, ScenarioJudgement, scenario_records
from harness.judgement.model import OUTCOME_RANK, VERDICT_RANK, Outcome, Verdict, VerdictKind, worst_verdict
from harness.judgement.records import (
    Claim,
    Fault,
    Intent,
    Observation,
    Record,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    to_json,
)
from harness.report.page.timeline import Timeline, timeline

#: So many scenarios with a divergence are told with their evidence; of more, the rows and results.json.
SHOWN: Final = 300
#: Cells of the matrix; a browser lays out no table of millions, and nobody reads one.
CELLS: Final = 8000
#: Characters of one piece of raw evidence.
_RAW: Final = 6000


@dataclass(frozen=True, slots=True)
class Piece:
    """One record that a verdict rests on, raw. ``where``: history's line number (sequence number)."""

    title: str
    text: str
    seq: int


@dataclass(frozen=True, slots=True)
class Report:
    """One report held to the truth. ``stated``: the verdict that the scenario states for its reporter."""

    kind: str
    reporter: str
    subject: str
    claimed: str
    truth: str
    how_read: str
    stated: str
    as_stated: bool
    evidence: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One scenario that shows a divergence, or is not as stated. ``anchor``: where the page has it."""

    anchor: str
    scenario: str
    device: str
    state: str
    outcome: str
    stated_outcome: str
    reports: tuple[Report, ...]
    outcomes: tuple[str, ...]
    reasons: tuple[str, ...]
    replay: str
    timeline: Timeline | None


@dataclass(frozen=True, slots=True)
class Group:
    """One finding, and those that are the same scenario on other devices and went the same way."""

    first: Finding
    others: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario in the list of all. ``seconds``: None where the history does not say.

    ``flaky``: it went both ways in past runs.
    """

    scenario: str
    device: str
    state: str
    worst: str
    reason: str
    seconds: float | None
    anchor: str = ""
    flaky: bool = False


@dataclass(frozen=True, slots=True)
class Matrix:
    """Devices across, scenarios down; a cell has the worst of what ran there, None where nothing did.

    ``left_out``: rows that there was no room for; those that are good everywhere go first.
    """

    devices: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Row | None, ...]], ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Contents:
    """The whole page. ``tone``: ``good``, ``bad`` or ``open``."""

    headline: str
    tone: str
    told: tuple[str, ...]
    run: Mapping[str, str]
    counts: tuple[tuple[str, Mapping[str, int]], ...]
    wrong: tuple[Group, ...]
    stated: tuple[Group, ...]
    count_wrong: int
    count_stated: int
    left_out: int
    outside: tuple[Report, ...]
    rows: tuple[Row, ...]
    matrix: Matrix
    states: tuple[str, ...] = field(default=())


def contents(
    judgement: Judgement, records: Iterable[Record], run_dir: str, flaky: Collection[str] = ()
) -> Contents:
    """Return what the page of a run says.

    :param records: those that ``judgement`` was made from, once more. :param run_dir: as people name it.
    :param flaky: the scenarios that went both ways in past runs.
    """
    shows = [index for index, one in enumerate(judgement.scenarios) if _shows(one)]
    shows.sort(key=lambda index: _severity(judgement.scenarios[index]))
    kept = frozenset(islice(shows, SHOWN))
    seconds: dict[int, float] = {}
    own: dict[int, list[Record]] = {}
    for index, part in enumerate(scenario_records(records)):
        seconds[index] = part[-1].time - part[0].time
        if index in kept:
            own[index] = part
    findings = {index: _finding(judgement.scenarios[index], own.get(index, []), index) for index in kept}
    ordered = [(judgement.scenarios[index], findings[index]) for index in shows if index in kept]
    rows = tuple(
        _row(one, seconds.get(index), findings[index].anchor if index in findings else "", flaky)
        for index, one in enumerate(judgement.scenarios)
    )
    headline, tone = _headline(judgement)
    return Contents(
        headline=headline,
        tone=tone,
        told=_told(judgement),
        run=_run(judgement, run_dir, seconds.values()),
        counts=_counts(judgement),
        wrong=_alike((one, found) for one, found in ordered if not one.as_stated),
        stated=_alike((one, found) for one, found in ordered if one.as_stated),
        count_wrong=sum(1 for index in shows if not judgement.scenarios[index].as_stated),
        count_stated=sum(1 for index in shows if judgement.scenarios[index].as_stated),
        left_out=len(shows) - len(kept),
        outside=tuple(_report(v, VerdictKind.MATCH, {}) for v in judgement.outside_divergences),
        rows=rows,
        matrix=_matrix(rows),
        states=tuple(dict.fromkeys(row.state for row in rows)),
    )


def _shows(one: ScenarioJudgement) -> bool:
    bad = one.outcome in (Outcome.BREACH, Outcome.FAILED)
    return bool(one.divergences) or bad or (bool(one.reasons) and not one.as_stated)


def _severity(one: ScenarioJudgement) -> tuple[int, int, int]:
    """Worst first: what is not as stated, by its outcome, by its worst verdict."""
    worst = worst_verdict([v.kind for v in one.divergences]) if one.divergences else VerdictKind.MATCH
    return int(one.as_stated), OUTCOME_RANK.get(one.outcome or Outcome.AS_INTENDED, 0), VERDICT_RANK[worst]


def _headline(judgement: Judgement) -> tuple[str, str]:
    wrong = any(one.reasons and not one.as_stated for one in judgement.scenarios)
    if not judgement.scenarios:
        return "Nothing was judged", "open"
    if wrong or judgement.outside_divergences:
        return "Not as stated", "bad"
    if judgement.as_stated and judgement.finished:
        return "All as stated", "good"
    return ("As stated so far, but the run did not finish" if judgement.as_stated else "Not complete"), "open"


def _told(judgement: Judgement) -> tuple[str, ...]:
    counts = Counter(one.state for one in judgement.scenarios)
    return tuple(f"{count} {state}" for state, count in counts.most_common())


def _run(judgement: Judgement, run_dir: str, seconds: Iterable[float]) -> dict[str, str]:
    said = {"folder": run_dir}
    starts: Sequence[RunStarted] = judgement.runs
    if starts:
        first = starts[0]
        began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(first.time))
        said |= {"run": first.run, "lab": first.lab, "began": began}
        said |= {f"version of {name}": str(value) for name, value in first.versions.items()}
        said |= {name: _option(value) for name, value in first.options.items() if value not in (None, [], "")}
    return said | {"time in scenarios": f"{sum(seconds):.1f} s"}


def _option(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _counts(judgement: Judgement) -> tuple[tuple[str, Mapping[str, int]], ...]:
    return (
        ("operations", {kind.value: count for kind, count in judgement.count_outcomes().items()}),
        ("reports", {kind.value: count for kind, count in judgement.count_verdicts().items()}),
    )


def _device(one: ScenarioJudgement) -> str:
    return one.subject.name if one.subject is not None else ""


def _row(one: ScenarioJudgement, seconds: float | None, anchor: str, flaky: Collection[str]) -> Row:
    worst = worst_verdict([v.kind for v in one.divergences]).value if one.divergences else ""
    reason = next(iter(one.reasons), "") if not one.as_stated else ""
    told = (one.state_reason or reason).strip().partition("\n")[0]
    return Row(one.name, _device(one), one.state, worst, told, seconds, anchor, one.name in flaky)


def _matrix(rows: Sequence[Row]) -> Matrix:
    devices = tuple(dict.fromkeys(row.device for row in rows))
    cells: dict[str, dict[str, Row]] = {}
    for row in rows:
        at = cells.setdefault(_generic(row.scenario, row.device), {})
        if row.device not in at or _BADNESS.get(row.state, 0) > _BADNESS.get(at[row.device].state, 0):
            at[row.device] = row
    room = CELLS // max(len(devices), 1)
    shown = list(cells)
    if len(shown) > room:
        bad = {name: max(_BADNESS.get(row.state, 0) for row in at.values()) for name, at in cells.items()}
        worst = frozenset(sorted(shown, key=lambda name: -bad[name])[:room])
        shown = [name for name in shown if name in worst]
    rows_shown = tuple((name, tuple(cells[name].get(device) for device in devices)) for name in shown)
    return Matrix(devices, rows_shown, len(cells) - len(shown))


_BADNESS: Final = {
    state: rank
    for rank, state in enumerate(
        ("as-stated", "NOT_APPLICABLE", "interrupted", "REFUSED", "BLOCKED", "INFRA", "not-as-stated", "BUG")
    )
}


def _generic(scenario: str, device: str) -> str:
    """Return a scenario's name without its device."""
    if not device:
        return scenario
    own = re.escape(device)
    return re.sub(rf"\[{own}\]$|(?<=\[){own}-|-{own}(?=[-\]])", "", scenario)


def _alike(found: Iterable[tuple[ScenarioJudgement, Finding]]) -> tuple[Group, ...]:
    groups: dict[object, list[Finding]] = {}
    for one, finding in found:
        said = frozenset((report.kind, report.reporter) for report in finding.reports)
        key = (_generic(one.name, _device(one)), finding.outcome, finding.state, said)
        groups.setdefault(key, []).append(finding)
    return tuple(Group(members[0], tuple(members[1:])) for members in groups.values())


# -- evidence ---------------------------------------------------------------------------------------------


def _finding(one: ScenarioJudgement, records: Sequence[Record], index: int) -> Finding:
    by_seq = {record.seq: record for record in records}
    diverging = sorted({str(v): v for v in one.divergences}.values(), key=lambda v: VERDICT_RANK[v.kind])
    rests_on = [seq for verdict in diverging for seq in verdict.records]
    reports = tuple(
        _report(v, one.expected.verdicts.get(v.reporter, VerdictKind.MATCH), by_seq, one.states(v))
        for v in diverging
    )
    bad = [o for o in one.outcomes if o.outcome is not Outcome.AS_INTENDED]
    return Finding(
        anchor=f"s{index}",
        scenario=one.name,
        device=str(one.subject) if one.subject is not None else _about(diverging, one),
        state=one.state,
        outcome=one.outcome.value if one.outcome is not None else "",
        stated_outcome=one.expected.outcome.value,
        reports=reports,
        outcomes=tuple(f"{o.outcome.value}: {o.subject}: {o.reason}" for o in bad),
        reasons=one.reasons if not one.as_stated else (),
        replay=f"hil run {shlex.quote(one.name)}",
        timeline=timeline([r for r in records if not isinstance(r, _BOUNDS)], rests_on),
    )


_BOUNDS: Final = (ScenarioStarted, ScenarioEnded)


def _about(diverging: Sequence[Verdict], one: ScenarioJudgement) -> str:
    """Return what a scenario that is for no card was about, what is worst first."""
    subjects = [str(v.subject) for v in diverging] + [str(o.subject) for o in one.outcomes]
    first, *more = [*dict.fromkeys(subjects)] or ["no device"]
    return f"{first} and {len(more)} more" if more else first


def _report(
    verdict: Verdict, stated: VerdictKind, records: Mapping[int, Record], as_stated: bool = False
) -> Report:
    own = [records[seq] for seq in dict.fromkeys(verdict.records) if seq in records]
    return Report(
        verdict.kind.value,
        verdict.reporter,
        str(verdict.subject),
        verdict.claimed,
        verdict.truth,
        verdict.how_read,
        stated.value,
        as_stated,
        tuple(map(piece_of, own)),
    )


def piece_of(record: Record) -> Piece:
    """Return a record as people read evidence; very long text is cut, which is said."""
    said = to_json(record)
    match record:
        case Claim():
            evidence = record.evidence
            code = "" if evidence.exit_code is None else f"\n(exit code {evidence.exit_code})"
            asked = f"$ {evidence.command}\n" if evidence.command else ""
            title, text = f"claim of {record.reporter}", f"{asked}{evidence.text}{code}"
        case Observation():
            title = f"observation by {record.probe} {record.moment}".rstrip()
            text = _pretty({"values": said["values"], "read from": said["sources"]})
        case Intent():
            title, text = f"intent: {record.operation}", _pretty(said["parameters"])
        case Fault():
            title, text = f"fault {record.action} at {record.point}", f"{record.state} {record.detail}"
        case _:
            title, text = record.kind, _pretty(said)
    more = f"\n... {len(text) - _RAW} characters more" if len(text) > _RAW else ""
    return Piece(title, text[:_RAW] + more, record.seq)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str)

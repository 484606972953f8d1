"""What a sweep gave, for people: a table per action, and in plain words what was caught."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from rich.console import Console
from rich.table import Table

from harness.judgement.model import Outcome, VerdictKind
from harness.report.printable import printable
from harness.scenarios.sweep_results import NOT_REACHED, Kind, LaneResult, SweepResult, Trial

#: Columns that a table may have besides its points, so that it is readable in 120.
_LANES_A_TABLE = 6
_STYLES = {
    VerdictKind.FALSE_SUCCESS.value: "bold red",
    VerdictKind.LOST.value: "bold magenta",
    VerdictKind.FALSE_FAILURE.value: "yellow",
    VerdictKind.UNVERIFIABLE.value: "yellow",
    NOT_REACHED: "dim",
}


def render(result: SweepResult, *, colour: bool, width: int = 120) -> str:
    """Return the tables and the closing paragraph of a sweep."""
    written = io.StringIO()
    console = Console(
        file=written, width=width, force_terminal=colour, no_color=not colour, highlight=False, emoji=False
    )
    lanes = [lane for lane in result.lanes if lane.trials]
    for of, action in dict.fromkeys((trial.of, trial.action) for trial in result.trials):
        for first in range(0, len(lanes), _LANES_A_TABLE):
            console.print(_table(result.kind, of, action, lanes[first : first + _LANES_A_TABLE]))
    for line in closing(result):
        console.print(printable(line), markup=False)
    return "\n".join(line.rstrip() for line in written.getvalue().rstrip().splitlines())


def _table(kind: Kind, of: str, action: str, lanes: Sequence[LaneResult]) -> Table:
    title = f"\n{of}: {action}" if of else f"\n{action}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("point", no_wrap=True)
    for lane in lanes:
        table.add_column(lane.lane)
    trials = [[t for t in lane.trials if (t.of, t.action) == (of, action)] for lane in lanes]
    for point in dict.fromkeys(trial.point for own in trials for trial in own):
        cells = [_cell(kind, [trial for trial in own if trial.point == point]) for own in trials]
        table.add_row(point.removesuffix("#1"), *cells)
    return table


def _cell(kind: Kind, trials: Sequence[Trial]) -> str:
    """Return what the trials of one lane at one point left, and the verdict, each once."""
    counts = Counter(
        (t.truth if kind.good else t.outcome, t.verdict, t.reached, _diverging(kind, t)) for t in trials
    )
    lines = []
    for (left, verdict, reached, others), count in counts.items():
        times = f"{count} x " if len(counts) > 1 else ""
        words = "\n".join((left, verdict, *others)) if reached else verdict
        style = _STYLES.get(verdict, "")
        lines.append(f"[{style}]{times}{words}[/]" if style else f"{times}{words}")
    return "\n".join(lines)


def _diverging(kind: Kind, trial: Trial) -> tuple[str, ...]:
    """Return what other reporters said that is not so, where a trial is judged by all that was said."""
    said = trial.others.items() if kind.whole else ()
    return tuple(f"{who} {word}" for who, word in said if word != VerdictKind.MATCH.value)


def closing(result: SweepResult) -> Iterator[str]:
    """Yield what was caught, what was not tested and why, and what it cost, a sentence each."""
    yield ""
    right = []
    for lane in result.lanes:
        tested = [trial for trial in lane.trials if trial.reached]
        yield from _told(result.kind, lane.lane, tested)
        match = VerdictKind.MATCH.value
        if tested and all(t.verdict == match and not _diverging(result.kind, t) for t in tested):
            right.append(f"{lane.lane} ({len(tested)})")
    if right:
        yield f"Right in every trial: {', '.join(right)}."
    for trial in result.broken:
        yield f"BROKEN {trial.lane}, {trial.action} at {trial.point}: it is {trial.truth}."
    for trial in result.unstated:
        words = ", ".join(f"{who} {word}" for who, word in trial.unstated(result.kind).items())
        yield f"NOT STATED {trial.lane}, {trial.action} at {trial.point}: {words}."
    yield from _untested(result)
    for lane in result.lanes:
        if lane.excluded:
            yield f"NOT_APPLICABLE {lane.lane}: {lane.excluded}."
        if lane.left:
            yield f"PARTIAL {lane.lane}: {lane.left_why}: {lane.left} left out."
        if lane.blocked or lane.failed:
            state = "BLOCKED" if lane.blocked else "INFRA"
            yield f"{state} {lane.lane}: {lane.blocked or lane.failed}"
            if lane.hint:
                yield f"  hint: {lane.hint}"
    yield from _cost(result)


def _told(kind: Kind, lane: str, tested: Sequence[Trial]) -> Iterator[str]:
    for verdict, words in kind.lies.items():
        found = [trial for trial in tested if trial.verdict == verdict.value]
        if found:
            where = Counter(trial.action for trial in found)
            told = words.format(n=_times(len(found)))
            by = ", ".join(f"{action} {count}" for action, count in where.items())
            known = kind.weak & {found[0].by, lane} and verdict is VerdictKind.FALSE_SUCCESS
            weak = "; it is known for that" if known else ""
            yield f"{lane} {told}, of {len(tested)} trials ({by}){weak}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _untested(result: SweepResult) -> Iterator[str]:
    """Yield where nothing was tested; of cards also by which action, and why: it is not the same for all."""
    missed: dict[tuple[str, str, str], dict[str, None]] = {}
    for trial in result.trials:
        if not trial.reached:
            why = f"{trial.action}: {trial.reason}" if result.kind.good else ""
            missed.setdefault((trial.outcome, trial.lane, why), {})[trial.point] = None
    for (state, lane, why), points in missed.items():
        told = f" ({why.strip().rstrip('.')})" if why else ""
        yield f"{state} {lane}, nothing was tested there: {', '.join(points)}{told}."


def _cost(result: SweepResult) -> Iterator[str]:
    tested = [trial for trial in result.trials if trial.reached]
    if not tested:
        yield "Nothing was tested."
        return
    landed = sum(trial.outcome == Outcome.AS_INTENDED.value for trial in tested)
    pace = 60 * (len(result.trials) - result.earlier) / max(result.seconds, 0.001)
    before = f", {result.earlier} of them before it was cut off," if result.earlier else ""
    what = result.kind.landed.format(n=landed)
    yield f"{len(tested)} trials{before} in {result.seconds:.0f} s ({pace:.0f} a minute); {what}."
    if costs := [f"{lane.lane} {median(lane.costs):.2f}" for lane in result.lanes if lane.costs]:
        yield (
            "A disturbed push, the client's own waits apart, took so many times the same push and one bare "
            f"restart (median): {', '.join(costs)}."
        )
    if result.interrupted:
        yield "It was interrupted: the same command goes on with what is missing."

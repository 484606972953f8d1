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
from harness.scenarios.sweep_results import NOT_REACHED, WEAK, LaneResult, SweepResult, Trial

#: Columns that a table may have besides its points, so that it is readable in 120.
_CLIENTS_A_TABLE = 6
_STYLES = {
    VerdictKind.FALSE_SUCCESS.value: "bold red",
    VerdictKind.LOST.value: "bold magenta",
    VerdictKind.FALSE_FAILURE.value: "yellow",
    VerdictKind.UNVERIFIABLE.value: "yellow",
    NOT_REACHED: "dim",
}
_LIES = {
    VerdictKind.FALSE_SUCCESS: "reported done {n} while the image was lost",
    VerdictKind.FALSE_FAILURE: "reported failed {n} while the image was there",
    VerdictKind.LOST: "said nothing {n} by its deadline",
    VerdictKind.MISREPORT: "named a wrong digest {n}",
    VerdictKind.CONTRADICTION: "contradicted itself {n}",
    VerdictKind.STALE: "reported done {n} what was not there any more later",
    VerdictKind.UNVERIFIABLE: "could not be held to the truth {n}",
}


def render(result: SweepResult, *, colour: bool, width: int = 120) -> str:
    """Return the tables and the closing paragraph of a sweep."""
    written = io.StringIO()
    console = Console(
        file=written, width=width, force_terminal=colour, no_color=not colour, highlight=False, emoji=False
    )
    lanes = [lane for lane in result.lanes if lane.trials]
    for action in dict.fromkeys(trial.action for trial in result.trials):
        for first in range(0, len(lanes), _CLIENTS_A_TABLE):
            console.print(_table(action, lanes[first : first + _CLIENTS_A_TABLE]))
    for line in closing(result):
        console.print(printable(line), markup=False)
    return "\n".join(line.rstrip() for line in written.getvalue().rstrip().splitlines())


def _table(action: str, lanes: Sequence[LaneResult]) -> Table:
    table = Table(title=f"\n{action}", title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("point", no_wrap=True)
    for lane in lanes:
        table.add_column(lane.client)
    points = dict.fromkeys(t.point for lane in lanes for t in lane.trials if t.action == action)
    for point in points:
        cells = [_cell([t for t in lane.trials if t.action == action and t.point == point]) for lane in lanes]
        table.add_row(point.removesuffix("#1"), *cells)
    return table


def _cell(trials: Sequence[Trial]) -> str:
    """Return outcome and verdict of the trials of one client at one point, each once."""
    counts = Counter((trial.outcome, trial.verdict) for trial in trials)
    lines = []
    for (outcome, verdict), count in counts.items():
        times = f"{count} x " if len(counts) > 1 else ""
        words = verdict if outcome == NOT_REACHED else f"{outcome}\n{verdict}"
        style = _STYLES.get(verdict, "")
        lines.append(f"[{style}]{times}{words}[/]" if style else f"{times}{words}")
    return "\n".join(lines)


def closing(result: SweepResult) -> Iterator[str]:
    """Yield what was caught, what was not tested and why, and what it cost, a sentence each."""
    yield ""
    right = []
    for lane in result.lanes:
        tested = [trial for trial in lane.trials if trial.reached]
        told = list(_told(lane.client, tested))
        yield from told
        if tested and all(trial.verdict == VerdictKind.MATCH.value for trial in tested):
            right.append(f"{lane.client} ({len(tested)})")
    if right:
        yield f"Right in every trial: {', '.join(right)}."
    yield from _untested(result)
    for lane in result.lanes:
        if lane.blocked or lane.failed:
            state = "BLOCKED" if lane.blocked else "INFRA"
            yield f"{state} {lane.client}: {lane.blocked or lane.failed}"
            if lane.hint:
                yield f"  hint: {lane.hint}"
    yield from _cost(result)


def _told(client: str, tested: Sequence[Trial]) -> Iterator[str]:
    for kind, words in _LIES.items():
        found = [trial for trial in tested if trial.verdict == kind.value]
        if found:
            where = Counter(trial.action for trial in found)
            told = words.format(n=_times(len(found)))
            by = ", ".join(f"{action} {count}" for action, count in where.items())
            weak = "; it is known for that" if client in WEAK and kind is VerdictKind.FALSE_SUCCESS else ""
            yield f"{client} {told}, of {len(tested)} trials ({by}){weak}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _untested(result: SweepResult) -> Iterator[str]:
    missed: dict[str, list[str]] = {}
    for trial in result.trials:
        if not trial.reached and trial.point not in missed.setdefault(trial.client, []):
            missed[trial.client].append(trial.point)
    for client, points in missed.items():
        if points:
            yield f"NOT_REACHED {client}, nothing was tested there: {', '.join(points)}."


def _cost(result: SweepResult) -> Iterator[str]:
    tested = [trial for trial in result.trials if trial.reached]
    if not tested:
        yield "Nothing was tested."
        return
    landed = sum(trial.outcome == Outcome.AS_INTENDED.value for trial in tested)
    yield (
        f"{len(tested)} trials in {result.seconds:.0f} s "
        f"({60 * len(tested) / max(result.seconds, 0.001):.0f} a minute); the image landed in {landed}."
    )
    costs = [f"{lane.client} {median(lane.costs):.2f}" for lane in result.lanes if lane.costs]
    yield (
        "A disturbed push, the client's own waits apart, took so many times the same push and one bare "
        f"restart (median): {', '.join(costs)}."
    )
    if result.interrupted:
        yield "It was interrupted: what was not begun by then is missing."

"""The summary at the end of a run: what diverged, where, who claimed what, what is true, how it was read."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.judgement.judge import Judgement, ScenarioJudgement
from harness.judgement.model import (
    OUTCOME_RANK,
    VERDICT_RANK,
    Outcome,
    OutcomeOf,
    RunState,
    Verdict,
    VerdictKind,
    worst_verdict,
)
from harness.report.page.writing import FILE_NAME as PAGE
from harness.report.printable import printable, printable_parts
from harness.report.results import FILE_NAME

#: More scenarios than this are left to results.json, with their number said.
SHOWN = 20
_WIDTH = 110
_INDENT = 21

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}

#: The order in which scenarios without a result are listed.
_STATES = (RunState.BUG, RunState.INFRA, RunState.BLOCKED, RunState.REFUSED, RunState.NOT_APPLICABLE)


@dataclass(frozen=True, slots=True)
class _Paint:
    colour: bool

    def __call__(self, text: str, *names: str) -> str:
        if not self.colour:
            return text
        return f"\x1b[{';'.join(_COLOURS[name] for name in names)}m{text}\x1b[0m"


#: What may have line ends; everything else is a name, and one with a line end could forge a line.
_PROSE = frozenset({"claimed", "truth", "how_read", "reason", "reasons", "state_reason"})

#: Lines after which the headline is told again, because it may have scrolled away.
_SCREEN = 24


def render(judgement: Judgement, history: Path, *, colour: bool = False) -> str:
    """Return the summary as plain text, with ANSI colours if ``colour``.

    :param history: the folder of the run, or a history file.

    First what is not as its scenario states, in full; then the divergences that scenarios state (as a
    reproduction does), one line each; then what gave no result and why; then counts and where to look.
    """
    paint = _Paint(colour)
    judgement = printable_parts(judgement, _PROSE)
    sections = [
        [_headline(judgement, paint)],
        _not_as_stated(judgement, paint),
        _outside(judgement, paint),
        _as_stated(judgement, paint),
        _without_result(judgement.scenarios, paint),
        _footer(judgement, history),
    ]
    if sum(map(len, sections)) > _SCREEN:
        sections.append([_headline(judgement, paint)])
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _headline(judgement: Judgement, paint: _Paint) -> str:
    states = Counter(one.state for one in judgement.scenarios)
    wrong = states.pop("not-as-stated", 0) + sum(1 for s in judgement.scenarios if _found_before_end(s))
    good = states.pop("as-stated", 0)
    diverging = sum(1 for s in judgement.scenarios if s.as_stated and _shows_divergence(s))
    parts = [f"{wrong} not as stated"] if wrong else []
    strays = len(judgement.outside_divergences)
    parts += [f"{_number(strays, 'divergence')} outside of scenarios"] if strays else []
    parts += [f"{good} as stated" + (f" ({diverging} of them with a divergence)" if diverging else "")]
    parts += [f"{count} {state}" for state, count in sorted(states.items())]
    if not judgement.scenarios:
        word, colour = "NOTHING WAS JUDGED", "yellow"
    elif wrong or strays:
        word, colour = "NOT AS STATED", "red"
    elif judgement.as_stated and judgement.finished:
        word, colour = "ALL AS STATED", "green"
    elif judgement.as_stated:
        word, colour = "AS STATED SO FAR, BUT THE RUN DID NOT FINISH", "yellow"
    else:
        word, colour = "NOT COMPLETE", "yellow"
    return f"{paint(word, 'bold', colour)}: {', '.join(parts)}"


def _shows_divergence(scenario: ScenarioJudgement) -> bool:
    return bool(scenario.divergences) or scenario.outcome in (Outcome.BREACH, Outcome.FAILED)


def _found_before_end(scenario: ScenarioJudgement) -> bool:
    """Whether a scenario that gave no result had found something before it was cut short."""
    return bool(scenario.reasons) and scenario.state not in ("as-stated", "not-as-stated")


def _not_as_stated(judgement: Judgement, paint: _Paint) -> list[str]:
    wrong = [s for s in judgement.scenarios if s.reasons and not s.as_stated]
    if not wrong:
        return []
    lines = [paint(f"NOT AS STATED ({len(wrong)})", "bold", "red")]
    groups = _alike(sorted(wrong, key=_severity))
    for group in groups[:SHOWN]:
        scenario = group[0]
        cut_short = f"  [{scenario.state}]" if _found_before_end(scenario) else ""
        lines.append(f"  {_where(scenario)}  {scenario.name}{cut_short}")
        lines += _details(scenario, paint)
        lines += _same_elsewhere(group)
    return lines + _left_out(groups)


def _alike(scenarios: Iterable[ScenarioJudgement]) -> list[list[ScenarioJudgement]]:
    """Group what is the same scenario on several devices and went the same way, in the given order."""
    groups: dict[object, list[ScenarioJudgement]] = {}
    for scenario in scenarios:
        found = frozenset((verdict.kind, verdict.reporter) for verdict in scenario.divergences)
        key = (_generic(scenario.name, scenario), scenario.outcome, found, scenario.state)
        groups.setdefault(key, []).append(scenario)
    return list(groups.values())


def _generic(text: str, scenario: ScenarioJudgement) -> str:
    """Return ``text`` without the names of the scenario's device."""
    if scenario.subject is None:
        return text
    text = text.replace(scenario.subject.name, "CARD")
    return re.sub(rf"\b{re.escape(scenario.subject.host)}\b", "HOST", text) if scenario.subject.host else text


def _same_elsewhere(group: Sequence[ScenarioJudgement]) -> list[str]:
    if len(group) == 1:
        return []
    return _wrapped("", f"the same on {', '.join(_device(s) for s in group[1:])}", indent=4)


def _device(scenario: ScenarioJudgement) -> str:
    return scenario.subject.name if scenario.subject is not None else scenario.name


def _left_out(groups: Sequence[Sequence[ScenarioJudgement]]) -> list[str]:
    more = sum(len(group) for group in groups[SHOWN:])
    return [f"  ... and {more} more, in {FILE_NAME}"] if more else []


def _severity(scenario: ScenarioJudgement) -> tuple[int, int]:
    """Worst first, so that what is left to results.json is never worse than what is shown."""
    surprises = [v.kind for v in scenario.divergences if not scenario.states(v)]
    outcome = scenario.outcome if scenario.outcome is not scenario.expected.outcome else None
    return OUTCOME_RANK.get(outcome or Outcome.AS_INTENDED, 0), VERDICT_RANK[
        worst_verdict(surprises) if surprises else VerdictKind.MATCH
    ]


def _details(scenario: ScenarioJudgement, paint: _Paint) -> list[str]:
    lines: list[str] = []
    covered: list[str] = []
    for verdict in {str(v): v for v in scenario.divergences}.values():
        covered.append(f"{verdict};")
        if _is_open_end(verdict.kind, scenario):
            continue
        stated = scenario.expected.verdicts.get(verdict.reporter, VerdictKind.MATCH)
        expected = verdict.kind is stated
        colour = "yellow" if expected else "red"
        lines.append(
            f"    {_padded(verdict.kind.value, paint, colour)} {verdict.reporter} on {verdict.subject}"
        )
        lines += _wrapped("claimed", verdict.claimed)
        lines += _wrapped("true", verdict.truth)
        lines += _wrapped("read", _short_paths(verdict.how_read))
        lines += _wrapped("stated", stated.value + (" (as found)" if expected else ""))
    for outcome in scenario.outcomes:
        if _is_open_end(outcome.outcome, scenario):
            continue
        if outcome.outcome not in (Outcome.AS_INTENDED, scenario.expected.outcome):
            covered.append(f"the outcome is {outcome.outcome.value},")
            lines += _outcome(outcome, scenario, paint)
    # What is missing has no verdict of its own: a stated divergence that did not show, a fault that
    # never came to its point.
    for reason in scenario.reasons:
        if not reason.startswith(tuple(covered)):
            lines += _wrapped("", reason, indent=4)
    return lines


def _is_open_end(kind: Outcome | VerdictKind, scenario: ScenarioJudgement) -> bool:
    """Whether something is only not known because the scenario did not come to its end."""
    cut_short = scenario.state not in ("as-stated", "not-as-stated")
    return cut_short and kind in (Outcome.UNKNOWN, VerdictKind.UNVERIFIABLE)


def _outcome(outcome: OutcomeOf, scenario: ScenarioJudgement, paint: _Paint) -> list[str]:
    kind = _padded(outcome.outcome.value, paint, "red")
    lines = [f"    {kind} the operation on {outcome.subject}"]
    # The reports that diverge are shown with their verdicts; these are the ones that are right.
    right = [v for v in scenario.judged if v.intent == outcome.intent and v.kind is VerdictKind.MATCH]
    for verdict in right:
        lines += _wrapped("claimed", f"{verdict.reporter}: {verdict.claimed}")
    lines += _wrapped("true", outcome.reason)
    for how in dict.fromkeys(verdict.how_read for verdict in right):
        lines += _wrapped("read", _short_paths(how))
    return [*lines, *_wrapped("stated", scenario.expected.outcome.value)]


def _outside(judgement: Judgement, paint: _Paint) -> list[str]:
    strays = judgement.outside_divergences
    if not strays:
        return []
    lines = [paint(f"DIVERGED BETWEEN SCENARIOS ({len(strays)})", "bold", "red")]
    return lines + [_one_line(verdict, "", paint, "red") for verdict in strays[:SHOWN]]


def _as_stated(judgement: Judgement, paint: _Paint) -> list[str]:
    """Divergences that their scenarios state: a reproduction shows one, and that is its success."""
    shown = [s for s in judgement.scenarios if s.as_stated and _shows_divergence(s)]
    if not shown:
        return []
    lines = [paint(f"DIVERGED AS STATED ({len(shown)})", "bold", "green")]
    cases: dict[object, list[list[ScenarioJudgement]]] = {}
    for group in _alike(shown):
        worst = tuple(sorted((v.reporter, v.kind.value) for v in _worst_divergences(group[0])))
        cases.setdefault((group[0].name.partition("[")[0], worst), []).append(group)
    folded = [groups[0] for groups in cases.values()]
    for (first, *others), _ in zip(cases.values(), range(SHOWN), strict=False):
        scenario = first[0]
        lines += [
            _one_line(verdict, scenario.name, paint, "green") for verdict in _worst_divergences(scenario)
        ]
        if not scenario.divergences and scenario.outcome is not None:
            kind = _padded(scenario.outcome.value, paint, "green")
            lines.append(f"  {kind} {_where(scenario)}  {scenario.name}")
        lines += _same_elsewhere(first)
        if others:
            lines.append(f"    and so in {_number(len(others), 'more case')} of this scenario")
    return lines + _left_out(folded)


def _worst_divergences(scenario: ScenarioJudgement) -> list[Verdict]:
    """Return the first verdict of each reporter that diverged, of its worst kind."""
    worst: dict[str, Verdict] = {}
    for verdict in scenario.divergences:
        if verdict.kind is scenario.verdicts[verdict.reporter]:
            worst.setdefault(verdict.reporter, verdict)
    return list(worst.values())


def _one_line(verdict: Verdict, scenario: str, paint: _Paint, colour: str) -> str:
    head = f"  {_padded(verdict.kind.value, paint, colour)} {verdict.reporter} on {verdict.subject}"
    told = f"claimed: {verdict.claimed}; true: {verdict.truth}"
    name = f"  {scenario}" if scenario else ""
    return "\n".join((head + name, *_wrapped("", told)))


def _without_result(scenarios: Iterable[ScenarioJudgement], paint: _Paint) -> list[str]:
    """Scenarios without a result, grouped by reason, so that a whole lab's worth is one line."""
    groups: dict[tuple[str, str], list[ScenarioJudgement]] = {}
    for scenario in scenarios:
        word = scenario.state
        if word not in ("as-stated", "not-as-stated"):
            reason = _generic(_first_line(scenario.state_reason), scenario)
            groups.setdefault((word, reason), []).append(scenario)
    order = [*(state.value for state in _STATES), "interrupted"]
    lines: list[str] = []
    for (word, generic), members in sorted(groups.items(), key=lambda item: order.index(item[0][0])):
        reasons = {_first_line(scenario.state_reason) for scenario in members}
        reason = reasons.pop() if len(reasons) == 1 else generic
        colour = "dim" if word == RunState.NOT_APPLICABLE.value else "yellow"
        lines.append(f"{paint(word, 'bold', colour)} ({len(members)}) {reason or 'no reason given'}")
        hints = {_hint(scenario.state_reason) for scenario in members}
        if len(hints) == 1 and (hint := hints.pop()):
            lines += _wrapped("hint", hint, indent=4)
        shown = 2 if word == RunState.NOT_APPLICABLE.value else 4
        lines.append(paint(textwrap.indent(_names(members, shown), "    "), "dim"))
    return lines


def _names(members: Sequence[ScenarioJudgement], shown: int) -> str:
    names = [scenario.name for scenario in members[:shown]]
    more = len(members) - shown
    return "\n".join([*names, f"... and {more} more, in {FILE_NAME}"] if more > 0 else names)


def _footer(judgement: Judgement, history: Path) -> list[str]:
    outcomes = _counts({kind.value: count for kind, count in judgement.count_outcomes().items()})
    verdicts = _counts({kind.value: count for kind, count in judgement.count_verdicts().items()})
    rows = [
        f"operations  {outcomes or 'none'}",
        f"reports     {verdicts or 'none'}",
        f"history     {history}",
    ]
    rows += [f"results     {history / FILE_NAME}"] if (history / FILE_NAME).is_file() else []
    rows += [f"report      {history / PAGE}"] if (history / PAGE).is_file() else []
    rows += [f"again       hil judge {shlex.quote(str(history))}"]
    return [printable(row, layout="") for row in rows]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _short_paths(text: str) -> str:
    """Return ``text`` with the end of each long path; results.json has them whole."""
    return re.sub(r"(?:/[^/\s]+){3,}(?=(?:/[^/\s]+){2}(?:\s|$))", "...", text)


def _where(scenario: ScenarioJudgement) -> str:
    """Return the device of a scenario; where it has none, what it was about, what failed of it first."""
    if scenario.subject is not None:
        return str(scenario.subject)
    worst_first = sorted(scenario.outcomes, key=lambda each: each.outcome is Outcome.AS_INTENDED)
    first, *more = [*dict.fromkeys(str(each.subject) for each in worst_first)] or ["no device"]
    return f"{first} and {len(more)} more" if more else first


def _padded(word: str, paint: _Paint, colour: str) -> str:
    # Padding is added outside of the colour, whose codes have no width.
    return paint(word, "bold", colour) + " " * max(0, len(VerdictKind.UNKNOWN_AS_VALUE.value) - len(word))


def _wrapped(label: str, text: str, indent: int = _INDENT) -> list[str]:
    start, head = " " * indent, f"{label}: ".ljust(9) if label else ""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=start + head,
        subsequent_indent=start + " " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _hint(text: str) -> str:
    """Return what an error says that can be done about it (see :class:`harness.errors.HarnessError`)."""
    return text.partition("\n  hint: ")[2].partition("\n")[0]


def _first_line(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return textwrap.shorten(line, 160, placeholder=" ...") if line else ""


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"

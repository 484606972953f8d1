"""A judgement as a table for spreadsheets (CSV), and as a summary for people's texts (Markdown)."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import Final

from harness.judgement.judge import Judgement, ScenarioJudgement
from harness.judgement.model import worst_verdict
from harness.report.printable import printable

_COLUMNS: Final = ("scenario", "device", "state", "outcome", "worst_verdict", "reason")
#: What a spreadsheet takes for a formula where a cell begins with it.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def results_csv(judgement: Judgement) -> str:
    """Return one line for each scenario, with a head. No cell is a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in judgement.scenarios:
        writer.writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in _cells(one)])
    return out.getvalue()


def _cells(one: ScenarioJudgement) -> tuple[str, ...]:
    worst = worst_verdict([v.kind for v in one.judged]).value if one.judged else ""
    reason = next(iter(one.reasons), "") if not one.as_stated else ""
    return (
        printable(one.name, ""),
        printable(one.subject.name, "") if one.subject else "",
        one.state,
        one.outcome.value if one.outcome else "",
        worst,
        printable((reason or one.state_reason).partition("\n")[0], ""),
    )


def results_markdown(judgement: Judgement) -> str:
    """Return counts, and a table of what diverged or gave no result."""
    counts = Counter(one.state for one in judgement.scenarios)
    run = judgement.runs[0] if judgement.runs else None
    lines = [f"# {_markdown(printable(run.run, '')) if run else 'No run'}", ""]
    if run:
        lab, version = (
            printable(str(text), "") for text in (run.lab, run.versions.get("harness", "unknown"))
        )
        lines += [f"Lab {_markdown(lab)}, harness {_markdown(version)}.", ""]
    lines += [f"- {count} {state}" for state, count in counts.most_common()] or ["- no scenario"]
    shown = [one for one in judgement.scenarios if one.divergences or one.state != "as-stated"]
    if shown:
        lines += [
            "",
            "| scenario | device | state | outcome | worst verdict | why |",
            "| - | - | - | - | - | - |",
        ]
        lines += [f"| {' | '.join(_markdown(cell) for cell in _cells(one))} |" for one in shown]
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    for char in "\\|`<>*_[]#":
        text = text.replace(char, f"\\{char}")
    return text

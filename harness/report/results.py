"""The machine-readable results of a run: one JSON document, schema ``hil-results/2``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.judgement.judge import Judgement, ScenarioJudgement
from harness.judgement.model import (
    VERDICT_RANK,
    Outcome,
    OutcomeOf,
    Verdict,
    VerdictKind,
    worst_outcome,
)
from harness.judgement.records import Subject, to_json
from harness.report.files import write_whole

SCHEMA = "hil-results/2"
FILE_NAME = "results.json"


def write_results(run_dir: Path, judgement: Judgement) -> Path:
    """Write ``results.json`` into ``run_dir``, whole or not at all; return its path.

    :raises InfrastructureError: it cannot be written. The history is on disk; `hil judge` makes it again.
    """
    return write_whole(
        run_dir / FILE_NAME,
        json.dumps(results_json(judgement), indent=1, sort_keys=False) + "\n",
        what="The results",
        hint=f"The history is whole: make room, then `hil judge {run_dir} -o json`.",
    )


def results_json(judgement: Judgement) -> dict[str, Any]:
    """Return a judgement as plain data.

    ``scenarios``: name, subject, state (``as-stated``, ``not-as-stated``, ``interrupted`` or a run
    state), reason, what was stated, outcome and worst verdict per reporter, reasons, and every outcome
    and every verdict other than MATCH in full. ``outside``: verdicts from between the scenarios.
    Sequence numbers are those of the history that the scenario is in. ``verdicts`` (since 2): of each
    scenario the worst verdict on what each reporter said of each subject, the last one where there are
    several, MATCH too: ``subject`` (its name), ``verdict``, ``claims`` (each statement that it rests on),
    ``truth``; where the subject has an outcome, that.
    """
    return {
        "schema": SCHEMA,
        "runs": [
            {name: to_json(run)[name] for name in ("run", "lab", "versions", "options")}
            for run in judgement.runs
        ],
        "finished": judgement.finished,
        "as_stated": judgement.as_stated,
        "exit_codes": sorted(judgement.exit_codes),
        "counts": {
            "scenarios": dict(sorted(Counter(one.state for one in judgement.scenarios).items())),
            "outcomes": {kind.value: count for kind, count in judgement.count_outcomes().items()},
            "verdicts": {kind.value: count for kind, count in judgement.count_verdicts().items()},
        },
        "scenarios": [_scenario(scenario) for scenario in judgement.scenarios],
        "verdicts": [said for scenario in judgement.scenarios for said in _said(scenario)],
        "outside": [_verdict(v) for v in judgement.outside if v.kind is not VerdictKind.MATCH],
    }


def _scenario(scenario: ScenarioJudgement) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "subject": _subject(scenario.subject),
        "state": scenario.state,
        "reason": scenario.state_reason,
        "as_stated": scenario.as_stated,
        "stated": scenario.expected.to_json(),
        "outcome": scenario.outcome.value if scenario.outcome else None,
        "verdicts": {reporter: kind.value for reporter, kind in scenario.verdicts.items()},
        "reasons": list(scenario.reasons),
        "outcomes": [_outcome(outcome) for outcome in scenario.outcomes],
        "divergences": [
            {"as_stated": scenario.states(verdict), **_verdict(verdict)} for verdict in scenario.divergences
        ],
    }


def _said(scenario: ScenarioJudgement) -> Iterator[dict[str, Any]]:
    worst: dict[tuple[str, str], Verdict] = {}
    for verdict in scenario.judged:
        key = verdict.reporter, verdict.subject.name
        if key not in worst or VERDICT_RANK[verdict.kind] <= VERDICT_RANK[worst[key].kind]:
            worst[key] = verdict
    outcomes: dict[str, list[Outcome]] = {}
    for outcome in scenario.outcomes:
        outcomes.setdefault(outcome.subject.name, []).append(outcome.outcome)
    for (reporter, name), verdict in worst.items():
        yield {
            "scenario": scenario.name,
            "subject": name,
            "reporter": reporter,
            "verdict": verdict.kind.value,
            "claims": list(verdict.claims) or [verdict.claimed],
            "truth": verdict.truth,
            "how_read": verdict.how_read,
            "as_stated": scenario.states(verdict),
        } | ({"outcome": worst_outcome(outcomes[name]).value} if name in outcomes else {})


def _subject(subject: Subject | None) -> dict[str, str] | None:
    return None if subject is None else asdict(subject)


def _outcome(outcome: OutcomeOf) -> dict[str, Any]:
    return {
        "outcome": outcome.outcome.value,
        "subject": _subject(outcome.subject),
        "reason": outcome.reason,
        "intent": outcome.intent,
        "records": list(outcome.records),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.kind.value,
        "checker": verdict.checker,
        "reporter": verdict.reporter,
        "subject": _subject(verdict.subject),
        "claimed": verdict.claimed,
        "truth": verdict.truth,
        "how_read": verdict.how_read,
        "intent": verdict.intent,
        "records": list(verdict.records),
    }

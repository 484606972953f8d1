"""Judges a history, scenario by scenario, into outcomes and verdicts. Pure: records in, judgement out."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.errors import ConfigurationError
from harness.judgement.checkers import check_block
from harness.judgement.grouping import Block
from harness.judgement.model import (
    OUTCOME_RANK,
    VERDICT_RANK,
    Expectation,
    Outcome,
    OutcomeOf,
    RunState,
    Verdict,
    VerdictKind,
    worst_outcome,
    worst_verdict,
)
from harness.judgement.records import (
    Fault,
    Record,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Subject,
)

#: Where the records of a history are cut; all others belong to what lies between two of these.
_BOUNDARIES: frozenset[type[Record]] = frozenset({ScenarioStarted, ScenarioEnded, RunStarted, RunEnded})
#: The exit code of `hil run` that a run state stands for (design, "Words"); NOT_APPLICABLE has none.
_EXIT_OF_STATE = {RunState.INFRA: 3, RunState.BLOCKED: 3, RunState.REFUSED: 4, RunState.BUG: 5}


@dataclass(frozen=True, slots=True)
class ScenarioJudgement:
    """One scenario held to what it states.

    ``outcome``: the worst of its operations, None where it had none. ``verdicts``: reporter -> worst
    verdict. ``as_stated``: outcome and verdicts are what ``expected`` says, and every fault came to its
    point. ``reasons``: why not, one sentence each. ``run_state`` and ``state_reason``: why it gave no
    result. ``interrupted``: the run ended in the middle of it. ``outcomes`` and ``judged``: every single
    outcome and verdict.
    """

    name: str
    subject: Subject | None
    expected: Expectation
    outcome: Outcome | None
    verdicts: Mapping[str, VerdictKind]
    as_stated: bool
    reasons: tuple[str, ...]
    run_state: RunState | None = None
    state_reason: str = ""
    interrupted: bool = False
    outcomes: tuple[OutcomeOf, ...] = ()
    judged: tuple[Verdict, ...] = ()

    @property
    def state(self) -> str:
        """The one word for how it ended: as-stated, not-as-stated, interrupted, or its run state."""
        if self.run_state is not None:
            return self.run_state.value
        if self.interrupted:
            return "interrupted"
        return "as-stated" if self.as_stated else "not-as-stated"

    @property
    def divergences(self) -> tuple[Verdict, ...]:
        """The verdicts other than MATCH."""
        return tuple(v for v in self.judged if v.kind is not VerdictKind.MATCH)

    def states(self, verdict: Verdict) -> bool:
        """Whether the scenario states a divergence as bad as ``verdict`` of that reporter."""
        stated = self.expected.verdicts.get(verdict.reporter, VerdictKind.MATCH)
        return worst_verdict([stated, verdict.kind]) is stated

    @property
    def exit_codes(self) -> frozenset[int]:
        """The exit codes of `hil run` that this scenario gives cause for.

        A scenario that a run state kept from its end may still have found a divergence before.
        """
        codes = {_EXIT_OF_STATE[self.run_state]} if self.run_state in _EXIT_OF_STATE else set()
        if self.reasons and not self.as_stated:
            codes.add(1)
        return frozenset(codes)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A whole run, judged. ``outside``: verdicts from between the scenarios (set-up, restoring).

    ``runs``: the first record of each history that was judged; ``finished``: each ended by itself.
    """

    outcomes: tuple[OutcomeOf, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    scenarios: tuple[ScenarioJudgement, ...] = ()
    outside: tuple[Verdict, ...] = ()
    runs: tuple[RunStarted, ...] = ()
    finished: bool = False

    @property
    def as_stated(self) -> bool:
        """Whether everything is as its scenarios state, and nothing diverged outside of them."""
        return all(scenario.as_stated for scenario in self.scenarios) and not self.outside_divergences

    @property
    def outside_divergences(self) -> tuple[Verdict, ...]:
        """What diverged between the scenarios, where nothing is stated."""
        mild = (VerdictKind.MATCH, VerdictKind.UNVERIFIABLE)
        return tuple(verdict for verdict in self.outside if verdict.kind not in mild)

    @property
    def exit_codes(self) -> frozenset[int]:
        """The exit codes of `hil run` that the judgement gives cause for; empty where it is green."""
        codes = frozenset[int]().union(*(scenario.exit_codes for scenario in self.scenarios))
        return codes | {1} if self.outside_divergences else codes

    def count_outcomes(self) -> dict[Outcome, int]:
        """Return how many operations had each outcome, in the order of precedence."""
        counts = Counter(outcome.outcome for outcome in self.outcomes)
        return {outcome: counts[outcome] for outcome in Outcome if counts[outcome]}

    def count_verdicts(self) -> dict[VerdictKind, int]:
        """Return how many reports had each verdict, in the order of precedence."""
        counts = Counter(verdict.kind for verdict in self.verdicts)
        return {kind: counts[kind] for kind in VerdictKind if counts[kind]}


@dataclass(slots=True)
class _Part:
    """The records of one scenario, or of what lies between two."""

    started: ScenarioStarted | None = None
    ended: ScenarioEnded | None = None
    records: list[Record] = field(default_factory=list)


def judge(records: Iterable[Record]) -> Judgement:
    """Judge the records of a run: of one history, or of several one after the other.

    The same records give the same judgement, live or read back from disk, in linear time.

    :raises ConfigurationError: a scenario states an outcome or a verdict that there is not.
    """
    # What is made here refers to nothing that refers back, so that the search for such circles, which
    # also goes through all the records, finds nothing; it would take a third of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _judge(records)
    finally:
        if collecting:
            gc.enable()


def _judge(records: Iterable[Record]) -> Judgement:
    outcomes: list[OutcomeOf] = []
    verdicts: list[Verdict] = []
    scenarios: list[ScenarioJudgement] = []
    outside: list[Verdict] = []
    runs: list[RunStarted] = []
    ended = 0
    for part in _parts(records, runs):
        if isinstance(part, RunEnded):
            ended += part.how == "finished"
        elif part.started is not None:
            judged = _judge_part(part, part.started)
            scenarios.append(judged)
            outcomes.extend(judged.outcomes)
            verdicts.extend(judged.judged)
        else:
            between_outcomes, between = check_block(Block(part.records, ended=False))
            outcomes.extend(between_outcomes)
            verdicts.extend(between)
            outside.extend(between)
    return Judgement(
        tuple(outcomes),
        tuple(verdicts),
        tuple(scenarios),
        tuple(outside),
        tuple(runs),
        finished=bool(runs) and ended == len(runs),
    )


def judge_scenario(records: Iterable[Record]) -> ScenarioJudgement:
    """Judge the first scenario among ``records``, ended or not.

    :raises ValueError: no scenario starts among them.
    """
    for part in _parts(records, []):
        if isinstance(part, _Part) and part.started is not None:
            return _judge_part(part, part.started)
    raise ValueError("no scenario starts among these records")


def scenario_records(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield the records of each scenario, its start and its end with them.

    In the order of :attr:`Judgement.scenarios` of the same records.
    """
    for part in _parts(records, []):
        if isinstance(part, _Part) and part.started is not None:
            ended = [part.ended] if part.ended is not None else []
            yield [part.started, *part.records, *ended]


def _parts(records: Iterable[Record], runs: list[RunStarted]) -> Iterator[_Part | RunEnded]:
    """Cut the records where scenarios start and end, and where another history begins."""
    part = _Part()
    for record in records:
        if type(record) not in _BOUNDARIES:
            part.records.append(record)
        elif isinstance(record, ScenarioEnded):
            if part.started is not None and part.started.scenario == record.scenario:
                part.ended = record
                yield part
                part = _Part()
        else:
            if part.started or part.records:
                yield part
            part = _Part(started=record) if isinstance(record, ScenarioStarted) else _Part()
            if isinstance(record, RunStarted):
                runs.append(record)
            elif isinstance(record, RunEnded):
                yield record
    if part.started or part.records:
        yield part


def _judge_part(part: _Part, started: ScenarioStarted) -> ScenarioJudgement:
    state = part.ended.state if part.ended is not None else "interrupted"
    run_state = RunState(state) if state in RunState.__members__ else None
    block = Block(part.records, ended=state == "finished")
    outcomes, verdicts = check_block(block)
    by_reporter = _by_reporter(verdicts)
    expected = _expectation(started)
    outcome = worst_outcome([o.outcome for o in outcomes]) if outcomes else None
    reasons = _outcome_reasons(expected, outcomes, verdicts, complete=state == "finished")
    reasons += _verdict_reasons(expected, by_reporter, verdicts, complete=state == "finished")
    reasons += _fault_reasons(block.faults) if state == "finished" else []
    if state == "finished" and part.ended is not None and part.ended.reason:
        reasons.append(part.ended.reason)  # what the scenario itself asserts, and is not so
    interrupted = state == "interrupted"
    without_result = interrupted or (run_state is not None and run_state is not RunState.NOT_APPLICABLE)
    return ScenarioJudgement(
        started.scenario,
        started.subject,
        expected,
        outcome,
        by_reporter,
        not reasons and not without_result,
        tuple(reasons),
        run_state,
        part.ended.reason if part.ended is not None else "the history ends in the middle of it",
        interrupted,
        tuple(outcomes),
        tuple(verdicts),
    )


def _expectation(started: ScenarioStarted) -> Expectation:
    try:
        return Expectation.from_json(started.expects)
    except (ValueError, AttributeError) as error:
        raise ConfigurationError(
            f"The scenario {started.scenario!r} states what cannot be judged: {error}",
            hint="docs/verdicts.md lists the outcomes and verdicts that there are.",
        ) from error


def _by_reporter(verdicts: Sequence[Verdict]) -> dict[str, VerdictKind]:
    kinds: dict[str, list[VerdictKind]] = {}
    for verdict in verdicts:
        kinds.setdefault(verdict.reporter, []).append(verdict.kind)
    return {reporter: worst_verdict(found) for reporter, found in kinds.items()}


def _outcome_reasons(
    expected: Expectation, outcomes: Sequence[OutcomeOf], verdicts: Sequence[Verdict], *, complete: bool
) -> list[str]:
    """Say where the outcome is not the stated one.

    A scenario that did not come to its end is only held to what it found bad: it may have stopped
    before the operation that states the rest.
    """
    stated = expected.outcome
    if not outcomes:
        if not complete or (verdicts and stated is Outcome.AS_INTENDED):
            return []
        return [f"nothing was judged: no operation was recorded, and the stated outcome is {stated.value}"]
    worst = min(outcomes, key=lambda o: OUTCOME_RANK[o.outcome])
    if worst.outcome is stated or (not complete and not _worse(worst.outcome, stated)):
        return []
    return [f"the outcome is {worst.outcome.value}, stated is {stated.value}: {worst.reason}"]


def _worse(found: Outcome, stated: Outcome) -> bool:
    """Whether a scenario cut short has found something worse; not having found out is no finding."""
    return found is not Outcome.UNKNOWN and OUTCOME_RANK[found] < OUTCOME_RANK[stated]


def _verdict_reasons(
    expected: Expectation,
    by_reporter: Mapping[str, VerdictKind],
    verdicts: Sequence[Verdict],
    *,
    complete: bool,
) -> list[str]:
    reasons = []
    for reporter, found in by_reporter.items():
        stated = expected.verdicts.get(reporter, VerdictKind.MATCH)
        if found is stated:
            continue
        milder = VERDICT_RANK[found] > VERDICT_RANK[stated]
        if not complete and (milder or found is VerdictKind.UNVERIFIABLE):
            continue
        culprit = next(v for v in verdicts if v.reporter == reporter and v.kind is found)
        reasons.append(f"{culprit}; stated: {stated.value}")
    if complete:
        reasons += [
            f"{reporter} said nothing that could be judged; stated: {stated.value}"
            for reporter, stated in expected.verdicts.items()
            if reporter not in by_reporter
        ]
    return reasons


def _fault_reasons(faults: Sequence[Fault]) -> list[str]:
    """Say which faults never came to their point: what was tested is then not what is stated."""
    last = {(fault.point, fault.action, fault.subject.name): fault for fault in faults}
    return [
        f"the fault {fault.action} at {fault.point} was NOT_REACHED on {fault.subject.name}"
        for fault in last.values()
        if fault.state in ("armed", "not-reached")
    ]
